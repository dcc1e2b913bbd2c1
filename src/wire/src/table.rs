//! The configuration table a data plane receives.

use crate::compat::PayloadProfile;
use crate::hash::{Hashes, TableHasher};
use gwctl_entities::Record;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Format of the table; data planes migrate older ones.
pub const FORMAT_VERSION: &str = "3.0";

/// The configuration as it is sent: rows by entity, in the form of `Registry::export_row`.
///
/// In JSON: `_format_version`, `_transform` (false: secrets are stored as they are used) and a list for each entity
/// that has rows. A clone shares the rows; an edited copy owns only the entities it edits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigTable {
    entities: BTreeMap<String, Arc<Vec<Record>>>,
}

impl ConfigTable {
    /// Sets the rows of an entity, ascending by primary key. Without rows the entity is left out.
    pub fn set(&mut self, entity: &str, rows: Arc<Vec<Record>>) {
        if rows.is_empty() {
            self.entities.remove(entity);
        } else {
            self.entities.insert(entity.to_owned(), rows);
        }
    }

    /// The rows of an entity; none if it is absent.
    pub fn rows(&self, entity: &str) -> &[Record] {
        self.entities.get(entity).map_or(&[], |rows| rows)
    }

    /// The rows of an entity to be changed; copied first if another table shares them.
    pub fn rows_mut(&mut self, entity: &str) -> &mut [Record] {
        match self.entities.get_mut(entity) {
            Some(rows) => Arc::make_mut(rows).as_mut_slice(),
            None => &mut [],
        }
    }

    /// Names and rows of all entities, ascending by name.
    pub fn entities(&self) -> impl Iterator<Item = (&str, &[Record])> {
        self.entities.iter().map(|(entity, rows)| (entity.as_str(), rows.as_slice()))
    }

    /// The hashes of the table. Reads every row once.
    pub fn hashes(&self) -> Hashes {
        self.hashes_after(None)
    }

    /// The hashes of the table, taking parts whose rows are shared with an earlier table from there.
    ///
    /// What has no part of its own (consumers, credentials, certificates ...) is read again in any case.
    pub fn hashes_after(&self, earlier: Option<(&ConfigTable, &Hashes)>) -> Hashes {
        let mut hasher = TableHasher::new();
        hasher.member("_format_version", &FORMAT_VERSION.into());
        hasher.member("_transform", &false.into());
        for (entity, rows) in &self.entities {
            let known = earlier.and_then(|(table, hashes)| {
                let same = table.entities.get(entity).is_some_and(|before| Arc::ptr_eq(before, rows));
                hashes.part(entity).filter(|_| same)
            });
            match known {
                Some(hash) => {
                    hasher.known_part(entity, hash.clone());
                }
                None => hasher.rows(entity, rows.iter()),
            }
        }
        hasher.finish()
    }

    /// What the table asks of the nodes it is sent to.
    ///
    /// `plugin_version` is what the control plane knows of a plugin; `filters` are its wasm filters;
    /// `expressions` says that its router flavor is `expressions`.
    pub fn profile(
        &self,
        plugin_version: impl Fn(&str) -> Option<String>,
        filters: BTreeSet<String>,
        expressions: bool,
    ) -> PayloadProfile {
        let names = self.rows("plugins").iter().filter_map(|row| row.get("name")?.as_str());
        let plugins = names.collect::<BTreeSet<_>>();
        let with_expression = |row: &Record| row.get("expression").is_some_and(|value| !value.is_null());
        let routes = self.rows("routes");
        let count = if expressions { routes.iter().filter(|row| with_expression(row)).count() } else { 0 };
        PayloadProfile {
            plugins: plugins.into_iter().map(|name| (name.to_owned(), plugin_version(name))).collect(),
            filters,
            mixed_routes: count > 0 && count < routes.len(),
        }
    }
}

impl Serialize for ConfigTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.entities.len() + 2))?;
        map.serialize_entry("_format_version", FORMAT_VERSION)?;
        map.serialize_entry("_transform", &false)?;
        for (entity, rows) in &self.entities {
            map.serialize_entry(entity, &**rows)?;
        }
        map.end()
    }
}

impl FromIterator<(String, Vec<Record>)> for ConfigTable {
    fn from_iter<I: IntoIterator<Item = (String, Vec<Record>)>>(entities: I) -> Self {
        let mut table = Self::default();
        for (entity, rows) in entities {
            table.set(&entity, Arc::new(rows));
        }
        table
    }
}

/// Reads a member of a record that is a text.
pub(crate) fn text<'a>(record: &'a Record, field: &str) -> Option<&'a str> {
    record.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table(value: &Value) -> ConfigTable {
        let rows =
            |value: &Value| value.as_array().unwrap().iter().map(|row| row.as_object().unwrap().clone()).collect();
        value.as_object().unwrap().iter().map(|(entity, value)| (entity.clone(), rows(value))).collect()
    }

    #[test]
    fn the_json_form_has_no_entity_without_rows_and_hashes_to_the_same() {
        let table = table(&json!({"services": [{"id": "a"}], "routes": [], "consumers": [{"id": "c"}]}));
        let value = serde_json::to_value(&table).unwrap();
        let expected = json!({
            "_format_version": "3.0", "_transform": false, "services": [{"id": "a"}], "consumers": [{"id": "c"}],
        });
        assert_eq!(value, expected);
        assert_eq!(table.hashes(), Hashes::of(value.as_object().unwrap()));
    }

    #[test]
    fn shared_parts_keep_their_hashes_and_changed_ones_do_not() {
        let earlier = table(&json!({"services": [{"id": "a"}], "routes": [{"id": "r"}], "consumers": [{"id": "c"}]}));
        let hashes = earlier.hashes();
        let mut later = earlier.clone();
        later.rows_mut("routes")[0].insert("name".to_owned(), "n".into());
        assert!(earlier.rows("routes")[0].get("name").is_none());
        assert_eq!(later.hashes_after(Some((&earlier, &hashes))), later.hashes());
        assert_ne!(later.hashes().routes, hashes.routes);
        assert_eq!(later.hashes().services, hashes.services);
    }

    #[test]
    fn the_profile_names_configured_plugins_and_mixed_routes() {
        let table = table(&json!({
            "plugins": [{"name": "acl"}, {"name": "mine"}, {"name": "acl"}],
            "routes": [{"id": "r", "expression": "x"}, {"id": "s", "expression": null}],
        }));
        let version = |name: &str| (name == "acl").then(|| "3.9.1".to_owned());
        let profile = table.profile(version, BTreeSet::new(), true);
        let expected = BTreeMap::from([("acl".to_owned(), Some("3.9.1".to_owned())), ("mine".to_owned(), None)]);
        assert_eq!(profile.plugins, expected);
        assert!(profile.mixed_routes);
        assert!(!table.profile(version, BTreeSet::new(), false).mixed_routes);
    }
}
