//! `gwctl get`.

use super::args::{GetArgs, ListOutput};
use super::connect::{client, failure, registry, run};
use super::names::{plural, schema_name};
use super::parents::{self, Parents};
use super::table::table;
use crate::failure::{Failure, USAGE};
use gwctl_admin_client::{Client, ListQuery};
use gwctl_entities::{EntitySchema, Record, Registry, Value};
use gwctl_tui::format::plain;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Columns of the tables; entities not listed show their label and id. No secret is ever a column.
const COLUMNS: &[(&str, &[&str])] = &[
    ("services", &["name", "protocol", "host", "port", "path", "enabled", "tags"]),
    ("routes", &["name", "methods", "hosts", "paths", "headers", "service", "tags"]),
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
    let (entity, name) = match args.entity.split_once('/') {
        Some((entity, name)) => (entity, Some(name.to_owned())),
        None => (args.entity.as_str(), None),
    };
    let schema = schema_name(entity).and_then(|name| registry.entity(name));
    let schema = schema.ok_or_else(|| Failure::new(format!("unknown entity {entity}")).code(USAGE))?;
    let names: Vec<String> = name.into_iter().chain(args.names.iter().cloned()).collect();
    let client = client(&args.connect)?;
    run(async {
        let mut rows = if names.is_empty() { all(&client, &registry, schema, args).await? } else { Vec::new() };
        for name in &names {
            rows.push(one(&client, &registry, schema, args, name).await?);
        }
        let text = match args.output {
            ListOutput::Table | ListOutput::Wide => {
                let parents = parents::read(&client, &registry, schema, &rows).await;
                rows.sort_by_cached_key(|row| label(row).to_lowercase());
                rows_text(schema, &rows, &parents, args.output == ListOutput::Wide)
            }
            ListOutput::Name => {
                rows.sort_by_cached_key(|row| label(row).to_lowercase());
                rows.iter().map(|row| plain(&format!("{}/{}", plural(&schema.name), label(row))) + "\n").collect()
            }
            ListOutput::Json | ListOutput::Yaml if names.len() == 1 => value_text(args.output, &json!(rows.first())),
            output => value_text(output, &json!({ "kind": schema.name, "version": 1, "items": rows })),
        };
        // A reader that closed the pipe early has what it wanted.
        let _ = std::io::stdout().write_all(text.as_bytes());
        if rows.is_empty() {
            tell!("{}", nothing(schema, args));
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// That there is none, with what was asked for.
fn nothing(schema: &EntitySchema, args: &GetArgs) -> String {
    let mut text = format!("no {} found", plural(&schema.name));
    if let Some(of) = &args.of {
        text += &format!(" below {of}");
    }
    if !args.tags.is_empty() {
        text += &format!(" with {} {}", if args.tags.len() == 1 { "tag" } else { "tags" }, args.tags.join(", "));
    }
    plain(&text)
}

/// What people call a record, else its id. No secret: a credential's key is none of these.
fn label(record: &Record) -> &str {
    let text = |field: &&str| record.get(*field).and_then(Value::as_str);
    ["name", "username", "custom_id", "target", "group", "prefix", "tag", "id"].iter().find_map(text).unwrap_or("-")
}

fn value_text(output: ListOutput, value: &Value) -> String {
    if output == ListOutput::Yaml { gwctl_declarative::to_yaml(value) } else { format!("{value:#}\n") }
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
        .hint(format!("`gwctl get {}` lists what is there", plural(&schema.name))))
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

fn rows_text(schema: &EntitySchema, rows: &[Record], parents: &Parents, wide: bool) -> String {
    let known = COLUMNS.iter().find(|(entity, _)| *entity == schema.name).map(|(_, columns)| *columns);
    let mut columns: Vec<&str> = known.unwrap_or_default().to_vec();
    // Records without a name of their own are told apart by their id only.
    let named = columns.iter().any(|column| ["name", "username", "target", "group", "prefix"].contains(column));
    if schema.name != "tags" && (wide || !named) {
        columns.push("id");
    }
    let heads: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row.get(*column), parents)).collect());
    table(&heads, &cells.collect::<Vec<_>>())
}

fn cell(value: Option<&Value>, parents: &Parents) -> String {
    let join = |texts: Vec<String>| if texts.is_empty() { "-".to_owned() } else { texts.join(",") };
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => join(list.iter().map(|value| cell(Some(value), parents)).collect()),
        Some(Value::Object(map)) => match map.get("id").and_then(Value::as_str) {
            Some(id) => parents.get(id).cloned().unwrap_or_else(|| id.to_owned()),
            None => join(map.iter().map(|(key, value)| format!("{key}={}", values(value))).collect()),
        },
        Some(other) => other.to_string(),
    }
}

/// The values of a header: `a|b`.
fn values(value: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    value.as_array().map_or_else(|| text(value), |list| list.iter().map(text).collect::<Vec<_>>().join("|"))
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
    fn foreign_records_are_shown_by_name_and_headers_by_value() {
        let registry = registry("traditional_compatible");
        let routes = registry.entity("routes").expect("exists");
        let row = json!({"name": "r", "id": "own", "headers": {"x-a": ["1", "2"]}, "service": {"id": "known"}});
        let other = json!({"name": "q", "id": "own", "service": {"id": "lost"}});
        let rows: Vec<Record> = [row, other].iter().filter_map(|row| row.as_object().cloned()).collect();
        let parents = Parents::from([("known".to_owned(), "orders".to_owned())]);
        let text = rows_text(routes, &rows, &parents, false);
        assert!(text.contains("x-a=1|2  orders") && text.contains("lost") && !text.contains("own"), "{text}");
        assert!(rows_text(routes, &rows, &parents, true).contains("own"));
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
