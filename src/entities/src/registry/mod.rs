//! Every schema a node knows, and the operations of the engine on records.

mod before;
mod entity;
mod plugin;
mod present;
mod process;
mod references;

pub use entity::{EntitySchema, ForeignKey, OnDelete, UniqueField};
pub use plugin::PluginSchema;
pub use process::ValidateMode;

use crate::Record;
use crate::schema::{FileOptions, Schema, SchemaError, entity_files, plugin_files, schema_json, vault_files};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

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

impl RegistryOptions {
    fn file_options<'a>(&'a self, default_token: Option<&'a str>) -> FileOptions<'a> {
        FileOptions {
            traditional: self.kind == NodeKind::Traditional,
            router_flavor: &self.router_flavor,
            default_token,
        }
    }
}

/// Every schema a node knows. Cheap to share behind an `Arc`; immutable.
#[derive(Debug)]
pub struct Registry {
    options: RegistryOptions,
    /// Parents before children.
    entities: Vec<EntitySchema>,
    referenced_by: BTreeMap<String, Vec<(String, ForeignKey)>>,
    plugins: BTreeMap<String, PluginSchema>,
    vaults: BTreeMap<String, Schema>,
    route_check: Option<RouteCheck>,
}

/// A check of routes from outside, see [`Registry::set_route_check`].
#[derive(Clone)]
struct RouteCheck(Arc<RouteJudge>);

/// Says why a route cannot be compiled.
pub type RouteJudge = dyn Fn(&Record) -> Result<(), String> + Send + Sync;

impl RouteCheck {
    fn judge(&self, route: &Record) -> Result<(), String> {
        (self.0)(route)
    }
}

impl fmt::Debug for RouteCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RouteCheck")
    }
}

impl Registry {
    /// The schemas of Kong 3.9.1's open-source edition for such a node.
    pub fn bundled(options: &RegistryOptions) -> Registry {
        Registry::read(options, None).expect("the embedded schema files are valid, a test reads each")
    }

    /// As [`Registry::bundled`], with the node's random text as default of secrets that have one (`config.secret` of
    /// session), so that every record and `GET /schemas` agree on it. Without it each record draws its own.
    pub fn bundled_with_secret(options: &RegistryOptions, secret: &str) -> Registry {
        Registry::read(options, Some(secret)).expect("the embedded schema files are valid, a test reads each")
    }

    fn read(options: &RegistryOptions, secret: Option<&str>) -> Result<Registry, SchemaError> {
        let file_options = options.file_options(secret);
        let enabled = |name: &str| options.plugins.as_ref().is_none_or(|plugins| plugins.contains(name));
        let mut registry = Registry {
            options: options.clone(),
            entities: Vec::new(),
            referenced_by: BTreeMap::new(),
            plugins: BTreeMap::new(),
            vaults: BTreeMap::new(),
            route_check: None,
        };
        for file in entity_files() {
            let entity = EntitySchema::from_file(file, file_options)?;
            if entity.plugin.as_deref().is_none_or(enabled) {
                registry.add_entity(entity);
            }
        }
        for file in vault_files() {
            let vault = PluginSchema::read(file.name, &file.value()?, file_options)?;
            registry.add_variant("vaults", file.name, &vault.schema);
            registry.vaults.insert(file.name.to_owned(), vault.schema);
        }
        for file in plugin_files().iter().filter(|file| enabled(file.name)) {
            registry.add_plugin(PluginSchema::read(file.name, &file.value()?, file_options)?);
        }
        Ok(registry)
    }

    /// Adds a plugin that is not bundled (a Lua plugin), or puts another schema in place of a bundled one.
    pub fn add_plugin(&mut self, plugin: PluginSchema) {
        self.add_variant("plugins", &plugin.name, &plugin.schema);
        self.plugins.insert(plugin.name.clone(), plugin);
    }

    /// Adds an entity (of a Lua plugin); entities it refers to must be there already.
    pub fn add_entity(&mut self, entity: EntitySchema) {
        for key in &entity.foreign_keys {
            let referring = self.referenced_by.entry(key.references.clone()).or_default();
            referring.push((entity.name.clone(), key.clone()));
        }
        self.entities.push(entity);
    }

    /// Has every valid route judged by the router (its expression must compile); the error goes to `@entity`.
    pub fn set_route_check(&mut self, check: Arc<RouteJudge>) {
        self.route_check = Some(RouteCheck(check));
    }

    fn add_variant(&mut self, entity: &str, name: &str, variant: &Schema) {
        if let Some(entity) = self.entities.iter_mut().find(|known| known.name == entity) {
            entity.variants.insert(name.to_owned(), Arc::new(entity.schema.overridden_by(variant)));
        }
    }

    /// The settings the schemas were read for.
    pub fn options(&self) -> &RegistryOptions {
        &self.options
    }

    /// All entities, parents before children (safe order to insert); reverse it to delete.
    pub fn entities(&self) -> impl Iterator<Item = &EntitySchema> {
        self.entities.iter()
    }

    /// The entity of this schema name (`keyauth_credentials`).
    pub fn entity(&self, name: &str) -> Option<&EntitySchema> {
        self.entities.iter().find(|entity| entity.name == name)
    }

    /// By collection path without slash (`key-auths`).
    pub fn by_endpoint(&self, endpoint: &str) -> Option<&EntitySchema> {
        self.entities.iter().find(|entity| entity.endpoint.as_deref() == Some(endpoint))
    }

    /// Entities and their fields that refer to this one.
    pub fn referenced_by(&self, entity: &str) -> &[(String, ForeignKey)] {
        self.referenced_by.get(entity).map(Vec::as_slice).unwrap_or_default()
    }

    /// Names of the enabled plugins, ascending.
    pub fn plugin_names(&self) -> impl Iterator<Item = &str> {
        self.plugins.keys().map(String::as_str)
    }

    /// A plugin's schema.
    pub fn plugin(&self, name: &str) -> Option<&PluginSchema> {
        self.plugins.get(name)
    }

    /// Version and priority of a plugin as `GET /` shows them.
    pub fn plugin_facts(&self, name: &str) -> Option<(&str, Value)> {
        self.plugins.get(name).map(|plugin| (plugin.version.as_str(), plugin.priority.clone()))
    }

    /// Answer of `GET /schemas/{entity}`.
    pub fn schema_json(&self, entity: &str) -> Option<Value> {
        self.entity(entity).map(|entity| schema_json(&entity.schema))
    }

    /// Answer of `GET /schemas/plugins/{name}`.
    pub fn plugin_schema_json(&self, name: &str) -> Option<Value> {
        self.plugins.get(name).map(|plugin| schema_json(&plugin.schema))
    }

    /// Answer of `GET /schemas/vaults/{name}`.
    pub fn vault_schema_json(&self, name: &str) -> Option<Value> {
        self.vaults.get(name).map(schema_json)
    }
}
