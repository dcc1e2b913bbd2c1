//! Names of the records that others refer to.

use gwctl_admin_client::{Client, ListQuery};
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Names by id; what is not in it is shown by its id.
pub type Parents = BTreeMap<String, String>;

/// So many are asked for one by one, more by the pages of their list.
const SINGLY: usize = 8;

/// The names of all records that the rows refer to. One that cannot be read has none.
pub async fn read(client: &Client, registry: &Registry, schema: &EntitySchema, rows: &[Record]) -> Parents {
    let mut parents = Parents::new();
    for key in &schema.foreign_keys {
        let endpoint = registry.entity(&key.references).and_then(|parent| parent.endpoint.as_deref());
        let id = |row: &Record| Some(row.get(&key.field)?.get("id")?.as_str()?.to_owned());
        let ids: BTreeSet<String> = rows.iter().filter_map(id).collect();
        let Some(endpoint) = endpoint.filter(|_| !ids.is_empty()) else { continue };
        if ids.len() > SINGLY {
            let all = client.list(&format!("/{endpoint}"), &ListQuery::default()).await.unwrap_or_default();
            parents.extend(all.iter().filter_map(named).filter(|(id, _)| ids.contains(id)));
            continue;
        }
        for id in ids {
            if let Ok(Some(Value::Object(record))) = client.record(endpoint, &id).await {
                parents.extend(named(&record));
            }
        }
    }
    parents
}

fn named(record: &Record) -> Option<(String, String)> {
    let text = |field: &str| record.get(field).and_then(Value::as_str);
    let name = ["name", "username", "custom_id"].into_iter().find_map(text)?;
    Some((text("id")?.to_owned(), name.to_owned()))
}
