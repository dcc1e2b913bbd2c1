//! One entity: its names, keys, fields and variants.

use crate::schema::{EntityFile, FileOptions, Schema, SchemaError, schema_from};
use crate::{Record, schema};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What happens to the referring record when the referred one is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// The delete is refused.
    Restrict,
    /// The referring record is deleted too.
    Cascade,
}

/// A field that refers to another entity.
#[derive(Debug, Clone)]
pub struct ForeignKey {
    /// Name of the field.
    pub field: String,
    /// Entity it refers to.
    pub references: String,
    /// May not be null.
    pub required: bool,
    /// What a delete of the referred record does.
    pub on_delete: OnDelete,
}

/// A field whose values may occur once.
#[derive(Debug, Clone)]
pub struct UniqueField {
    /// Name of the field.
    pub field: String,
    /// Unique over all workspaces rather than in one.
    pub across_workspaces: bool,
}

/// One entity's schema: names, keys, fields and checks.
#[derive(Debug)]
pub struct EntitySchema {
    /// Schema name, for example `keyauth_credentials`.
    pub name: String,
    /// Path of the collection without slash (`key-auths`); None when it has no top-level endpoint.
    pub endpoint: Option<String>,
    /// Name below a parent (`key-auth` in `/consumers/{}/key-auth`).
    pub nested_name: String,
    /// Table name as `/tags` shows it (`sm_vaults` for vaults).
    pub table: String,
    /// Primary key fields; `["id"]` for all but a few internal entities.
    pub primary_key: Vec<String>,
    /// Field that may stand in a path in place of the id.
    pub endpoint_key: Option<String>,
    /// Fields whose combination is unique (plugins: name, route, service, consumer); empty when none.
    pub cache_key: Vec<String>,
    /// Fields unique by themselves; null never collides.
    pub unique_fields: Vec<UniqueField>,
    /// Fields that refer to other entities, in schema order.
    pub foreign_keys: Vec<ForeignKey>,
    /// Rows may carry a time to live.
    pub ttl: bool,
    /// Has generated Admin API endpoints.
    pub generate_admin_api: bool,
    /// Part of what data planes receive.
    pub db_export: bool,
    /// Belongs to a workspace.
    pub workspaceable: bool,
    /// Name of the plugin that brings the entity, None for core entities.
    pub plugin: Option<String>,
    /// Fields and checks every record of the entity has.
    pub schema: Schema,
    /// Field whose value picks one of the variants (`name` of plugins and vaults, `protocols` of routes).
    pub subschema_key: Option<String>,
    /// Complete schemas by value of the subschema key: the common fields with the variant's laid over them.
    pub(crate) variants: BTreeMap<String, Arc<Schema>>,
}

impl EntitySchema {
    /// The id (primary key text) of a record of this entity; composite keys are joined by `:`.
    pub fn id_of(&self, record: &Record) -> Option<String> {
        let part = |field: &String| match record.get(field)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let parts: Option<Vec<String>> = self.primary_key.iter().map(part).collect();
        parts.map(|parts| parts.join(":"))
    }

    /// The id a foreign field holds, None when null.
    pub fn foreign_id<'a>(&self, record: &'a Record, field: &str) -> Option<&'a str> {
        record.get(field)?.get("id")?.as_str()
    }

    /// Text of the cache key, None when the entity has none: `<entity>:` and the values (foreign: id, null: empty)
    /// joined by `:`. Equal texts collide. Also None when every part is empty: nulls never collide.
    pub fn cache_key_of(&self, record: &Record) -> Option<String> {
        if self.cache_key.is_empty() {
            return None;
        }
        let part = |field: &String| match record.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(foreign)) => foreign.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        let parts: Vec<String> = self.cache_key.iter().map(part).collect();
        let any = parts.iter().any(|part| !part.is_empty());
        any.then(|| format!("{}:{}", self.name, parts.join(":")))
    }

    /// The variant's schema for this record (a plugin's with its `config`), the common one when none is chosen.
    pub fn schema_of(&self, record: &Record) -> &Schema {
        self.variant_of(record).unwrap_or(&self.schema)
    }

    /// Names of the variants: plugins, vault types, route protocols.
    pub fn variant_names(&self) -> impl Iterator<Item = &str> {
        self.variants.keys().map(String::as_str)
    }

    pub(crate) fn variant_of(&self, record: &Record) -> Option<&Schema> {
        let variant = |text: &str| self.variants.get(text).map(Arc::as_ref);
        match record.get(self.subschema_key.as_ref()?)? {
            Value::String(text) => variant(text),
            // The first of a set that names one: what else is in the set is told by its own field.
            Value::Array(list) => list.iter().filter_map(Value::as_str).find_map(variant),
            _ => None,
        }
    }

    /// Reads an embedded entity file.
    pub(crate) fn from_file(file: &EntityFile, options: FileOptions<'_>) -> Result<EntitySchema, SchemaError> {
        EntitySchema::from_json(file.name, &file.value()?, options)
    }

    /// Reads an entity definition.
    pub(crate) fn from_json(name: &str, value: &Value, options: FileOptions<'_>) -> Result<EntitySchema, SchemaError> {
        let Some(object) = value.as_object() else {
            return Err(SchemaError { path: name.to_owned(), fault: "an entity must be an object".to_owned() });
        };
        let text = |member: &str| object.get(member).and_then(Value::as_str).map(str::to_owned);
        let flag = |member: &str| object.get(member).and_then(Value::as_bool).unwrap_or(false);
        let list = |member: &str| -> Vec<String> {
            let list = object.get(member).and_then(Value::as_array);
            list.map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
        };
        let schema = schema_from(object, name, options)?;
        let unique_fields = schema.fields().filter(|field| field.unique);
        let foreign_keys = schema.fields().filter_map(|field| {
            Some(ForeignKey {
                field: field.name.clone(),
                references: field.reference.clone()?,
                required: field.required,
                on_delete: field.on_delete.unwrap_or(OnDelete::Restrict),
            })
        });
        let primary_key = list("primary_key");
        Ok(EntitySchema {
            name: name.to_owned(),
            endpoint: text("endpoint"),
            nested_name: text("nested_name").unwrap_or_else(|| name.to_owned()),
            table: text("table").unwrap_or_else(|| name.to_owned()),
            primary_key: if primary_key.is_empty() { vec!["id".to_owned()] } else { primary_key },
            endpoint_key: text("endpoint_key"),
            cache_key: list("cache_key"),
            unique_fields: unique_fields
                .map(|field| UniqueField {
                    field: field.name.clone(),
                    across_workspaces: field.unique_across_workspaces,
                })
                .collect(),
            foreign_keys: foreign_keys.collect(),
            ttl: flag("ttl"),
            generate_admin_api: flag("generate_admin_api"),
            db_export: flag("db_export"),
            workspaceable: flag("workspaceable"),
            plugin: text("plugin"),
            subschema_key: text("subschema_key"),
            variants: route_variants(name, object, options)?,
            schema,
        })
    }
}

/// Variants written inside the entity's own file (routes by protocol): attributes laid over the common fields.
fn route_variants(
    name: &str,
    object: &Map<String, Value>,
    options: FileOptions<'_>,
) -> Result<BTreeMap<String, Arc<Schema>>, SchemaError> {
    let flavored = format!("subschemas_{}", options.router_flavor);
    let Some(Value::Object(groups)) = object.get(&flavored).or(object.get("subschemas")) else {
        return Ok(BTreeMap::new());
    };
    let mut variants = BTreeMap::new();
    for (group, overrides) in groups {
        let mut whole = object.clone();
        for (over, field) in pairs(overrides.get("fields"), whole.get_mut("fields")) {
            field.extend(over);
        }
        let added = overrides.get("entity_checks").and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(Value::Array(checks)) = whole.get_mut("entity_checks") {
            checks.extend(added);
        }
        let schema = Arc::new(schema::schema_from(&whole, &format!("{name}.{group}"), options)?);
        let selectors = overrides.get("selected_by").and_then(Value::as_array);
        for selector in selectors.into_iter().flatten().filter_map(Value::as_str) {
            variants.insert(selector.to_owned(), Arc::clone(&schema));
        }
    }
    Ok(variants)
}

/// Each override with the field it is laid over.
fn pairs<'a>(overrides: Option<&Value>, fields: Option<&'a mut Value>) -> Vec<(Map<String, Value>, &'a mut Record)> {
    let overrides = overrides.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let fields = fields.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut);
    fields
        .filter_map(|field| {
            let over = overrides.iter().find(|over| over.get("name") == field.get("name"))?;
            Some((over.as_object()?.clone(), field))
        })
        .collect()
}
