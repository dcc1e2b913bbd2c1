//! From stored records to the table a data plane receives: what is left out, and what is always there.

use crate::table::{ConfigTable, text};
use gwctl_entities::{EntitySchema, Record};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Key of the row that every table has.
const CLUSTER_ID: &str = "cluster_id";

/// Builds the table from the rows of each entity.
///
/// `schemas` come parents first (`Registry::entities`). `rows` gives an entity's rows in exported form
/// (`Registry::export_row`), ascending by primary key; it is asked only for entities that data planes receive.
/// Left out are disabled services and plugins, the routes of such a service, and whatever refers to something left
/// out. `cluster_id` goes into `parameters` if the rows do not have it: without that row an empty configuration would
/// consist of workspaces only, which data planes take for no configuration at all.
///
/// Source: Kong 3.9.1 `kong/db/declarative/export.lua`.
pub fn build<'a, E>(
    schemas: impl IntoIterator<Item = &'a EntitySchema>,
    mut rows: impl FnMut(&EntitySchema) -> Result<Vec<Record>, E>,
    cluster_id: &str,
) -> Result<ConfigTable, E> {
    let mut table = ConfigTable::default();
    let mut omitted = Omitted::default();
    for schema in schemas.into_iter().filter(|schema| schema.db_export) {
        let mut rows = rows(schema)?;
        if omitted.concerns(schema) {
            rows.retain(|row| omitted.keeps(schema, row));
        }
        table.set(&schema.name, Arc::new(rows));
    }
    if table.rows("parameters").is_empty() {
        table.set("parameters", Arc::new(vec![cluster_id_row(cluster_id)]));
    }
    Ok(table)
}

fn cluster_id_row(cluster_id: &str) -> Record {
    let members = [("key", CLUSTER_ID.into()), ("value", cluster_id.into()), ("created_at", Value::Null)];
    members.map(|(key, value)| (key.to_owned(), value)).into_iter().collect::<Map<_, _>>()
}

/// Ids of the rows left out, by entity.
#[derive(Default)]
struct Omitted {
    ids: BTreeMap<String, BTreeSet<String>>,
}

impl Omitted {
    /// Whether any row of the entity could be left out.
    fn concerns(&self, schema: &EntitySchema) -> bool {
        can_be_disabled(schema) || schema.foreign_keys.iter().any(|key| self.ids.contains_key(&key.references))
    }

    /// Whether a row stays; if not, what refers to it goes too.
    fn keeps(&mut self, schema: &EntitySchema, row: &Record) -> bool {
        let disabled = can_be_disabled(schema) && row.get("enabled") == Some(&Value::Bool(false));
        if !disabled && !self.refers_to_omitted(schema, row) {
            return true;
        }
        if let Some(id) = text(row, "id") {
            self.ids.entry(schema.name.clone()).or_default().insert(id.to_owned());
        }
        false
    }

    fn refers_to_omitted(&self, schema: &EntitySchema, row: &Record) -> bool {
        schema.foreign_keys.iter().any(|key| {
            let ids = self.ids.get(&key.references);
            ids.is_some_and(|ids| text(row, &key.field).is_some_and(|id| ids.contains(id)))
        })
    }
}

/// Other things that can be disabled (filter chains, targets of weight 0) are exported as they are.
fn can_be_disabled(schema: &EntitySchema) -> bool {
    matches!(schema.name.as_str(), "services" | "plugins")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_entities::{NodeKind, Registry, RegistryOptions};
    use serde_json::json;
    use std::convert::Infallible;

    fn registry() -> Registry {
        Registry::bundled(&RegistryOptions {
            kind: NodeKind::ControlPlane,
            router_flavor: "traditional_compatible".to_owned(),
            plugins: None,
        })
    }

    fn built(rows: &Value) -> Value {
        let of = |schema: &EntitySchema| {
            let rows = rows.get(&schema.name).and_then(Value::as_array).cloned().unwrap_or_default();
            Ok::<_, Infallible>(rows.into_iter().map(|row| row.as_object().unwrap().clone()).collect())
        };
        let table = build(registry().entities(), of, "the-id").unwrap();
        serde_json::to_value(table).unwrap()
    }

    #[test]
    fn an_empty_configuration_has_its_cluster_id() {
        let expected = json!({
            "_format_version": "3.0", "_transform": false,
            "parameters": [{"key": "cluster_id", "value": "the-id", "created_at": null}],
        });
        assert_eq!(built(&json!({})), expected);
    }

    #[test]
    fn a_stored_cluster_id_is_not_doubled_and_internal_entities_stay_home() {
        let stored = json!({"key": "cluster_id", "value": "stored", "created_at": null});
        let table = built(&json!({"parameters": [stored], "clustering_data_planes": [{"id": "d"}]}));
        assert_eq!(table["parameters"], json!([stored]));
        assert!(table.get("clustering_data_planes").is_none());
    }

    #[test]
    fn a_disabled_service_takes_its_routes_and_all_that_refers_to_either_along() {
        let table = built(&json!({
            "services": [{"id": "off", "enabled": false}, {"id": "on", "enabled": true}],
            "routes": [{"id": "a", "service": "off"}, {"id": "b", "service": "on"}, {"id": "c", "service": null}],
            "filter_chains": [{"id": "f", "route": "a", "enabled": true}, {"id": "g", "route": "b", "enabled": false}],
            "plugins": [
                {"id": "p", "service": "off", "route": null, "enabled": true},
                {"id": "q", "service": null, "route": "a", "enabled": true},
                {"id": "r", "service": "on", "route": "b", "enabled": true},
                {"id": "s", "service": null, "route": null, "enabled": false},
            ],
        }));
        let ids = |entity: &str| -> Vec<&str> {
            table[entity].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
        };
        assert_eq!(ids("services"), ["on"]);
        assert_eq!(ids("routes"), ["b", "c"]);
        assert_eq!(ids("filter_chains"), ["g"]);
        assert_eq!(ids("plugins"), ["r"]);
    }

    #[test]
    fn a_failing_reader_ends_the_export() {
        let failed = build(registry().entities(), |_| Err("broken disk"), "the-id");
        assert_eq!(failed.unwrap_err(), "broken disk");
    }
}
