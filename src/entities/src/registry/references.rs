//! References by a unique field of their target (`{"name": "x"}`) become ids.

use super::{EntitySchema, Registry};
use crate::engine::lua_text;
use crate::{EntityError, Read, Record};
use serde_json::{Map, Value};

/// The id a reference by unique field stands for, or what is wrong with it.
type Resolution = Result<String, Map<String, Value>>;

impl Registry {
    /// Replaces references by unique field with ids; all that resolve to nothing are reported together.
    pub(super) fn resolve_references(
        &self,
        entity: &EntitySchema,
        record: &mut Record,
        read: &dyn Read,
    ) -> Result<(), EntityError> {
        let mut unresolved = Map::new();
        for key in &entity.foreign_keys {
            let Some(Value::Object(reference)) = record.get(&key.field) else { continue };
            if reference.get("id").is_some_and(|id| !id.is_null()) {
                let id = reference.get("id").cloned().unwrap_or_default();
                let id = id.as_str().map(str::to_ascii_lowercase).map_or(id, Value::from);
                record.insert(key.field.clone(), Value::Object(Map::from_iter([("id".to_owned(), id)])));
                continue;
            }
            match self.resolve(&key.references, reference, read)? {
                Some(Ok(id)) => {
                    let id = Map::from_iter([("id".to_owned(), Value::from(id))]);
                    record.insert(key.field.clone(), Value::Object(id));
                }
                Some(Err(fault)) => {
                    unresolved.insert(key.field.clone(), Value::Object(fault));
                }
                None => {}
            }
        }
        if unresolved.is_empty() { Ok(()) } else { Err(EntityError::ForeignKeysUnresolved { fields: unresolved }) }
    }

    /// None when the reference holds no unique field of the target.
    fn resolve(
        &self,
        target: &str,
        reference: &Map<String, Value>,
        read: &dyn Read,
    ) -> Result<Option<Resolution>, EntityError> {
        let Some(entity) = self.entity(target) else { return Ok(None) };
        for unique in &entity.unique_fields {
            let Some(value) = reference.get(&unique.field).filter(|value| !value.is_null()) else { continue };
            let fault = |text: Value| Ok(Some(Err(Map::from_iter([(unique.field.clone(), text)]))));
            if let Err(error) = self.validate_field(target, &unique.field, value) {
                return fault(error);
            }
            let text = lua_text(value);
            let found = read.get_by(target, &unique.field, &text)?;
            return match found.and_then(|found| entity.id_of(&found)) {
                Some(id) => Ok(Some(Ok(id))),
                None => fault(Value::from(format!(
                    "the foreign key cannot be resolved with '{{{}=\"{text}\"}}' for an existing '{target}' entity",
                    unique.field
                ))),
            };
        }
        Ok(None)
    }
}
