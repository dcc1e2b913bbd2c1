//! `gwctl get`.

use super::args::GetArgs;
use super::connect::{client, failure, registry, run};
use super::names::schema_name;
use super::table::table;
use crate::cli::Output;
use crate::failure::{Failure, USAGE};
use gwctl_admin_client::{Client, ListQuery};
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Columns of the tables; entities not listed show their label and id. No secret is ever a column.
const COLUMNS: &[(&str, &[&str])] = &[
    ("services", &["name", "protocol", "host", "port", "path", "enabled", "tags"]),
    ("routes", &["name", "methods", "hosts", "paths", "service", "tags"]),
    ("consumers", &["username", "custom_id", "tags"]),
    ("plugins", &["name", "enabled", "service", "route", "consumer", "tags"]),
    ("upstreams", &["name", "algorithm", "hash_on", "tags"]),
    ("targets", &["target", "weight", "upstream", "tags"]),
    ("certificates", &["snis", "tags"]),
    ("ca_certificates", &["cert_digest", "tags"]),
    ("snis", &["name", "certificate", "tags"]),
    ("vaults", &["prefix", "name", "tags"]),
    ("keys", &["name", "kid", "set", "tags"]),
    ("key_sets", &["name", "tags"]),
    ("filter_chains", &["name", "enabled", "service", "route", "tags"]),
    ("acls", &["group", "consumer", "tags"]),
    ("basicauth_credentials", &["username", "consumer", "tags"]),
    ("hmacauth_credentials", &["username", "consumer", "tags"]),
    ("jwt_secrets", &["algorithm", "consumer", "tags"]),
    ("keyauth_credentials", &["consumer", "ttl", "tags"]),
    ("oauth2_credentials", &["name", "client_id", "consumer", "tags"]),
    ("tags", &["tag", "entity_name", "entity_id"]),
];

pub fn get(args: &GetArgs) -> Result<ExitCode, Failure> {
    let registry = registry("traditional_compatible");
    let schema = schema_name(&args.entity).and_then(|name| registry.entity(name));
    let schema = schema.ok_or_else(|| Failure::new(format!("unknown entity {}", args.entity)).code(USAGE))?;
    let client = client(&args.connect)?;
    run(async {
        let rows = match &args.name {
            Some(name) => vec![one(&client, &registry, schema, args, name).await?],
            None => all(&client, &registry, schema, args).await?,
        };
        let text = match (args.output, args.name.is_some()) {
            (Output::Table, _) => rows_text(schema, &rows),
            (output, true) => value_text(output, &json!(rows.first())),
            (output, false) => value_text(output, &json!({ "kind": schema.name, "version": 1, "items": rows })),
        };
        // A reader that closed the pipe early has what it wanted.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(ExitCode::SUCCESS)
    })
}

fn value_text(output: Output, value: &Value) -> String {
    if output == Output::Yaml { gwctl_declarative::to_yaml(value) } else { format!("{value:#}\n") }
}

async fn all(
    client: &Client,
    registry: &Registry,
    schema: &EntitySchema,
    args: &GetArgs,
) -> Result<Vec<Record>, Failure> {
    let query = ListQuery { tags: args.tags.clone() };
    let mut rows = Vec::new();
    for collection in collections(client, registry, schema, args).await? {
        rows.extend(client.list(&collection, &query).await.map_err(|error| failure(&error))?);
    }
    Ok(rows)
}

async fn one(
    client: &Client,
    registry: &Registry,
    schema: &EntitySchema,
    args: &GetArgs,
    name: &str,
) -> Result<Record, Failure> {
    for collection in collections(client, registry, schema, args).await? {
        let found = client.record(collection.trim_start_matches('/'), name).await.map_err(|error| failure(&error))?;
        if let Some(Value::Object(record)) = found {
            return Ok(record);
        }
    }
    let key = schema.endpoint_key.as_deref().map_or_else(|| "id".to_owned(), |key| format!("{key} or id"));
    Err(Failure::new(format!("no {} with the {key} {name:?} at {}", schema.name, client.address()))
        .hint(format!("`gwctl get {}` lists what is there", args.entity)))
}

/// Paths of the lists to read: one, or one per upstream for targets, which have no list of their own.
async fn collections(
    client: &Client,
    registry: &Registry,
    schema: &EntitySchema,
    args: &GetArgs,
) -> Result<Vec<String>, Failure> {
    if let Some(of) = &args.of {
        return Ok(vec![below(registry, schema, of)?]);
    }
    if let Some(endpoint) = &schema.endpoint {
        return Ok(vec![format!("/{endpoint}")]);
    }
    let upstreams = client.list("/upstreams", &ListQuery::default()).await.map_err(|error| failure(&error))?;
    let ids = upstreams.iter().filter_map(|upstream| upstream.get("id")?.as_str());
    Ok(ids.map(|id| format!("/upstreams/{id}/{}", schema.nested_name)).collect())
}

/// `service/orders` or, where only one parent is possible, `orders`.
fn below(registry: &Registry, schema: &EntitySchema, of: &str) -> Result<String, Failure> {
    let parents: Vec<&EntitySchema> =
        schema.foreign_keys.iter().filter_map(|key| registry.entity(&key.references)).collect();
    let (parent, name) = match (of.split_once('/'), parents.as_slice()) {
        (Some((entity, name)), _) => {
            (parents.iter().copied().find(|parent| schema_name(entity) == Some(parent.name.as_str())), name)
        }
        (None, [parent]) => (Some(*parent), of),
        (None, _) => (None, of),
    };
    let endpoint = parent.and_then(|parent| parent.endpoint.as_deref()).filter(|_| !name.is_empty());
    let Some(endpoint) = endpoint else {
        let known: Vec<String> = parents.iter().map(|parent| format!("{}/NAME", parent.name)).collect();
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(" or ") };
        return Err(Failure::new(format!("{} hang below {known}, not below {of:?}", schema.name)).code(USAGE));
    };
    Ok(format!("/{endpoint}/{}/{}", gwctl_admin_client::escape(name), schema.nested_name))
}

fn rows_text(schema: &EntitySchema, rows: &[Record]) -> String {
    let known = COLUMNS.iter().find(|(entity, _)| *entity == schema.name).map(|(_, columns)| *columns);
    let mut columns: Vec<&str> = known.unwrap_or_default().to_vec();
    if schema.name != "tags" {
        columns.push("id");
    }
    let heads: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row.get(*column))).collect());
    table(&heads, &cells.collect::<Vec<_>>())
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) if list.is_empty() => "-".to_owned(),
        Some(Value::Array(list)) => list.iter().map(|value| cell(Some(value))).collect::<Vec<_>>().join(","),
        Some(Value::Object(foreign)) => cell(foreign.get("id")),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_column_is_a_secret_and_all_exist() {
        let registry = registry("traditional_compatible");
        for (entity, columns) in COLUMNS {
            let schema = registry.entity(entity).expect("listed entities exist");
            for column in *columns {
                let field = schema.schema.field(column);
                // The Admin API adds `snis` to certificates; a time to live is no field of the schema.
                let added = *column == "snis" || (*column == "ttl" && schema.ttl);
                assert!(field.is_some() || added, "{entity} {column}");
                assert!(field.is_none_or(|field| !field.encrypted), "{entity} {column}");
            }
        }
    }

    #[test]
    fn parents_are_guessed_only_where_there_is_one() {
        let registry = registry("traditional_compatible");
        let path = |entity: &str, of: &str| below(&registry, registry.entity(entity).expect("exists"), of).ok();
        assert_eq!(path("targets", "pool").as_deref(), Some("/upstreams/pool/targets"));
        assert_eq!(path("plugins", "svc/a b").as_deref(), Some("/services/a%20b/plugins"));
        assert_eq!(path("plugins", "a"), None);
        assert_eq!(path("routes", "consumer/a"), None);
        assert_eq!(path("targets", ""), None);
    }
}
