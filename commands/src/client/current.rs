//! What a control plane has now, read over its Admin API.

use super::connect::failure;
use crate::failure::Failure;
use futures_util::future::join_all;
use gwctl_admin_client::{Client, ClientError, ListQuery};
use gwctl_declarative::Table;
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
        tables.push(Table { entity: entity.name.clone(), records });
    }
    Ok(tables)
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
