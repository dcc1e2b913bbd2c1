//! Every schema a node knows, and the operations of the engine on records.

use crate::{EntityError, Fill, Read, Record};
use serde_json::Value;
use std::collections::BTreeSet;

/// What kind of node the schemas are for: some enumerations and endpoints depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Store and proxy in one.
    Traditional,
    /// Proxy and read-only Admin API, configuration by `POST /config`.
    DbLess,
    /// Store and Admin API, no proxy.
    ControlPlane,
    /// Proxy only.
    DataPlane,
}

/// Node settings that change schemas.
#[derive(Debug, Clone)]
pub struct RegistryOptions {
    /// See [`NodeKind`].
    pub kind: NodeKind,
    /// `traditional_compatible` (default), `traditional` or `expressions`.
    pub router_flavor: String,
    /// Names of the enabled plugins; None means all that are bundled.
    pub plugins: Option<BTreeSet<String>>,
}

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
    pub field: String,
    pub references: String,
    pub required: bool,
    pub on_delete: OnDelete,
}

/// A field whose values may occur once.
#[derive(Debug, Clone)]
pub struct UniqueField {
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
    pub unique_fields: Vec<UniqueField>,
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
}

impl EntitySchema {
    /// The id (primary key text) of a record of this entity; composite keys are joined by `:`.
    pub fn id_of(&self, record: &Record) -> Option<String> {
        let parts: Option<Vec<&str>> =
            self.primary_key.iter().map(|field| record.get(field).and_then(Value::as_str)).collect();
        parts.map(|parts| parts.join(":"))
    }

    /// The id a foreign field holds, None when null.
    pub fn foreign_id<'a>(&self, record: &'a Record, field: &str) -> Option<&'a str> {
        record.get(field)?.get("id")?.as_str()
    }

    /// Text of the cache key, None when the entity has none: `<entity>:` and the values (foreign: id, null: empty)
    /// joined by `:`. Equal texts collide.
    pub fn cache_key_of(&self, _record: &Record) -> Option<String> {
        unimplemented!()
    }
}

/// Every schema a node knows. Cheap to share behind an `Arc`; immutable.
#[derive(Debug)]
pub struct Registry {}

impl Registry {
    /// The schemas of Kong 3.9.1's open-source edition for such a node.
    pub fn bundled(_options: &RegistryOptions) -> Registry {
        unimplemented!()
    }

    /// All entities, parents before children (safe order to insert); reverse it to delete.
    pub fn entities(&self) -> impl Iterator<Item = &EntitySchema> {
        std::iter::empty()
    }

    pub fn entity(&self, _name: &str) -> Option<&EntitySchema> {
        unimplemented!()
    }

    /// By collection path without slash (`key-auths`).
    pub fn by_endpoint(&self, _endpoint: &str) -> Option<&EntitySchema> {
        unimplemented!()
    }

    /// Entities and their fields that refer to this one.
    pub fn referenced_by(&self, _entity: &str) -> &[(String, ForeignKey)] {
        unimplemented!()
    }

    /// Names of the enabled plugins, ascending.
    pub fn plugin_names(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    /// Version and priority of a plugin as `GET /` shows them.
    pub fn plugin_facts(&self, _name: &str) -> Option<(&str, Value)> {
        unimplemented!()
    }

    /// A new record from client input (POST, and PUT with its id set): shorthands, automatic fields, defaults,
    /// references by unique field (looked up in `read`), validation, entity checks, transformations. All errors at once.
    pub fn process_insert(
        &self,
        _entity: &str,
        _input: Record,
        _fill: &mut dyn Fill,
        _read: &dyn Read,
    ) -> Result<Record, EntityError> {
        unimplemented!()
    }

    /// PATCH: `input` merged over `stored` by section 5.4 rules, then validated like an insert.
    pub fn process_update(
        &self,
        _entity: &str,
        _stored: &Record,
        _input: Record,
        _fill: &mut dyn Fill,
        _read: &dyn Read,
    ) -> Result<Record, EntityError> {
        unimplemented!()
    }

    /// What the Admin API shows of a stored record: remaining `ttl`, echoed deprecated fields, no write-only ones.
    pub fn present(&self, _entity: &str, _stored: &Record, _now_millis: u64) -> Record {
        unimplemented!()
    }

    /// The row a v1 data plane is sent: flat foreign ids, absolute `ttl`, deprecated fields beside their replacement.
    /// Source: cluster protocol, section 3.6.
    pub fn export_row(&self, _entity: &str, _stored: &Record) -> Record {
        unimplemented!()
    }

    /// The reverse of [`Registry::export_row`] for a row received from a control plane: unknown null fields are
    /// dropped, defaults filled, foreign ids made objects, everything validated.
    pub fn import_row(&self, _entity: &str, _row: Record, _fill: &mut dyn Fill) -> Result<Record, EntityError> {
        unimplemented!()
    }

    /// Answer of `GET /schemas/{entity}`.
    pub fn schema_json(&self, _entity: &str) -> Option<Value> {
        unimplemented!()
    }

    /// Answer of `GET /schemas/plugins/{name}`.
    pub fn plugin_schema_json(&self, _name: &str) -> Option<Value> {
        unimplemented!()
    }
}
