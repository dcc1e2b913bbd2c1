//! What a control plane has now, read over its Admin API.

use super::connect::failure;
use crate::failure::{Failure, NOT_ALLOWED};
use futures_util::future::join_all;
use gwctl_admin_client::{Client, ClientError, ListQuery};
use gwctl_declarative::Table;
use gwctl_declarative::secret::MASK;
use gwctl_entities::{Record, Registry, Value};

/// Entities that the gateway writes by itself while it runs; reading them would only cost time.
const OWN: [&str; 6] =
    ["tags", "sessions", "acme_storage", "oauth2_tokens", "oauth2_authorization_codes", "clustering_data_planes"];

/// Lists of targets that are read at the same time.
const AT_ONCE: usize = 8;

/// Every record of every entity; `progress` is told how many there are so far.
pub async fn tables(
    client: &Client,
    registry: &Registry,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<Vec<Table>, Failure> {
    let mut tables: Vec<Table> = Vec::new();
    let mut total = 0;
    for entity in registry.entities().filter(|entity| !OWN.contains(&entity.name.as_str())) {
        let records = match &entity.endpoint {
            Some(endpoint) => rows(client, &format!("/{endpoint}"), total, progress).await?,
            None if entity.name == "targets" => targets(client, &tables, total, progress).await?,
            None => continue,
        };
        total += records.len();
        unmasked(&entity.name, &records)?;
        tables.push(Table { entity: entity.name.clone(), records });
    }
    Ok(tables)
}

/// Whoever may only read is shown masks for secrets: a dump of them would put the masks in the place of the secrets
/// where it is applied, and a comparison with them would find differences that there are not.
fn unmasked(entity: &str, records: &[Record]) -> Result<(), Failure> {
    if !records.iter().any(|record| record.values().any(holds_mask)) {
        return Ok(());
    }
    let message = format!(
        "the Admin API masks secrets for this token: {entity} cannot be written to a file, nor compared with one"
    );
    Err(Failure::new(message).code(NOT_ALLOWED).hint("use a token with the role write"))
}

fn holds_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => items.iter().any(holds_mask),
        Value::Object(members) => members.values().any(holds_mask),
        _ => false,
    }
}

/// Targets have no collection of their own: all at once where the node tells what it had at a version, else one list
/// per upstream.
async fn targets(
    client: &Client,
    tables: &[Table],
    total: usize,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<Vec<Record>, Failure> {
    if let Some(version) = client.version_read() {
        match client.get(&format!("/gwctl/versions/{version}?entity=targets")).await {
            Ok(mut answer) => return Ok(records(answer["entities"]["targets"].take())),
            // Of a version that is forgotten meanwhile, or not for this token, nothing is told.
            Err(ClientError::PeerRefused { .. }) => {}
            Err(error) => return Err(failure(&error)),
        }
    }
    let upstreams = tables.iter().find(|table| table.entity == "upstreams").map(|table| table.records.as_slice());
    let ids: Vec<&str> = upstreams.unwrap_or_default().iter().filter_map(|record| record.get("id")?.as_str()).collect();
    let mut targets = Vec::new();
    for ids in ids.chunks(AT_ONCE) {
        let lists =
            ids.iter().map(|id| async move { rows(client, &format!("/upstreams/{id}/targets"), 0, &mut |_| ()).await });
        for list in join_all(lists).await {
            targets.extend(list?);
        }
        progress(total + targets.len());
    }
    Ok(targets)
}

fn records(list: Value) -> Vec<Record> {
    let Value::Array(list) = list else { return Vec::new() };
    let record = |value| if let Value::Object(record) = value { Some(record) } else { None };
    list.into_iter().filter_map(record).collect()
}

/// A collection that the node does not have, as its plugin or WebAssembly is not enabled there, is empty.
async fn rows(
    client: &Client,
    path: &str,
    before: usize,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<Vec<Record>, Failure> {
    let mut count = |rows: usize| progress(before + rows);
    match client.list_pages(path, &ListQuery::default(), &mut count).await {
        Ok(rows) => Ok(rows),
        Err(ClientError::PeerRefused { status: 404, .. }) => Ok(Vec::new()),
        Err(ClientError::PeerRefused { status: 400, .. }) if path == "/filter-chains" => Ok(Vec::new()),
        Err(error) => Err(failure(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn masks_are_noticed_at_every_depth_and_nothing_else_is() {
        let records = |value: Value| vec![value.as_object().cloned().unwrap_or_default()];
        for masked in [json!({"key": MASK}), json!({"config": {"redis": [{"password": MASK}]}})] {
            assert!(unmasked("plugins", &records(masked)).is_err());
        }
        assert!(unmasked("plugins", &records(json!({"key": "secret", "config": {"note": "a •••• b"}}))).is_ok());
    }
}
