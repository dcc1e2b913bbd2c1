//! From a path segment to a record: ids, endpoint keys, and the names that only count below a parent.

use crate::answer::{bare, not_found};
use crate::context::Context;
use gwctl_entities::{EntityError, EntitySchema, Map, Read, Record, Value};

/// What a path segment names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// Primary key, lower case.
    Id(String),
    /// Value of the endpoint key (or of a name that counts below the parent only).
    Named { field: String, value: String },
}

impl Key {
    /// The key as error bodies show it.
    fn fields(&self) -> Map<String, Value> {
        let (field, value) = match self {
            Self::Id(id) => ("id", id),
            Self::Named { field, value } => (field.as_str(), value),
        };
        Map::from_iter([(field.to_owned(), Value::from(value.as_str()))])
    }

    /// The coded "not found" (code 6).
    pub(crate) fn not_found(&self) -> EntityError {
        EntityError::NotFound { key: self.fields(), primary: matches!(self, Self::Id(_)) }
    }
}

/// Whether a text has the shape of a UUID, of any version and letter case.
pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// What a segment names at the top level of an entity. Fails with code 1 or 10 on a text that can name nothing, and
/// with a bare 404 on a server name no certificate has.
pub(crate) fn key(
    context: &Context<'_>,
    read: &dyn Read,
    schema: &EntitySchema,
    segment: &str,
) -> Result<Key, EntityError> {
    if is_uuid(segment) {
        return Ok(Key::Id(segment.to_ascii_lowercase()));
    }
    if schema.name == "certificates" {
        return certificate_by_sni(context, read, segment).map(Key::Id);
    }
    let Some(field) = &schema.endpoint_key else {
        let key = Map::from_iter([("id".to_owned(), Value::from("expected a valid UUID"))]);
        return Err(EntityError::InvalidPrimaryKey { key });
    };
    check_name(context, schema, field, segment)?;
    Ok(Key::Named { field: field.clone(), value: segment.to_owned() })
}

/// Refuses (code 10) a text that the field could never hold, whatever the rest of the record says.
pub(crate) fn check_name(
    context: &Context<'_>,
    schema: &EntitySchema,
    field: &str,
    text: &str,
) -> Result<(), EntityError> {
    context.registry.validate_field(&schema.name, field, &Value::from(text)).map_err(|reason| {
        let reason = reason.as_str().map_or_else(|| reason.to_string(), str::to_owned);
        EntityError::InvalidUnique { field: field.to_owned(), reason }
    })
}

/// Id of the certificate that has this server name.
fn certificate_by_sni(context: &Context<'_>, read: &dyn Read, name: &str) -> Result<String, EntityError> {
    let snis = context.schema("snis")?;
    check_name(context, snis, "name", name)?;
    let row = read.get_by("snis", "name", name)?;
    let id = row.as_ref().and_then(|row| snis.foreign_id(row, "certificate")).map(str::to_owned);
    id.ok_or_else(|| bare(404, "SNI not found"))
}

/// The record a key names.
pub(crate) fn find(read: &dyn Read, entity: &str, key: &Key) -> Result<Option<Record>, EntityError> {
    match key {
        Key::Id(id) => read.get(entity, id),
        Key::Named { field, value } => read.get_by(entity, field, value),
    }
}

/// The parent named by a nested path, or the bare 404.
pub(crate) fn parent(
    context: &Context<'_>,
    read: &dyn Read,
    entity: &str,
    segment: &str,
) -> Result<Record, EntityError> {
    let key = key(context, read, context.schema(entity)?, segment)?;
    find(read, entity, &key)?.ok_or_else(not_found)
}

/// A child below a parent: its key, and the record when there is one of that parent. A record of another parent is
/// given back too, with `false`, since a nested PUT takes it over.
pub(crate) fn child(
    context: &Context<'_>,
    read: &dyn Read,
    schema: &EntitySchema,
    (field, parent_id): (&str, &str),
    segment: &str,
) -> Result<(Key, Option<(Record, bool)>), EntityError> {
    let name_below_parent = match schema.name.as_str() {
        "acls" => Some("group"),
        "targets" => Some("target"),
        _ => None,
    };
    let (key, record) = match name_below_parent.filter(|_| !is_uuid(segment)) {
        Some(name) => {
            let mut probe = Record::from_iter([(name.to_owned(), Value::from(segment))]);
            probe.insert(field.to_owned(), reference(parent_id));
            let record = match schema.cache_key_of(&probe) {
                Some(cache_key) => read.get_by(&schema.name, "cache_key", &cache_key)?,
                None => None,
            };
            (Key::Named { field: name.to_owned(), value: segment.to_owned() }, record)
        }
        None => {
            let key = key(context, read, schema, segment)?;
            let record = find(read, &schema.name, &key)?;
            (key, record)
        }
    };
    let found = record.map(|record| {
        let own = schema.foreign_id(&record, field) == Some(parent_id);
        (record, own)
    });
    Ok((key, found))
}

/// `{"id": ...}` of a foreign field.
pub(crate) fn reference(id: &str) -> Value {
    serde_json::json!({ "id": id })
}

/// Id of a stored record; every stored record has one.
pub(crate) fn id_of(record: &Record) -> &str {
    record.get("id").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_of_the_shape_of_a_uuid_is_an_id() {
        assert!(is_uuid("BBBBBBBB-0000-4000-8000-000000000001"));
        assert!(is_uuid("00000000-0000-0000-0000-000000000000"));
        assert!(!is_uuid("bbbbbbbb-0000-4000-8000-00000000000"));
        assert!(!is_uuid("bbbbbbbb00004000800000000000000000000"));
        assert!(!is_uuid("é".repeat(18).as_str()));
    }
}
