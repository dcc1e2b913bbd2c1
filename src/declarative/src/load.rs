//! A document to records.

mod errors;
pub(crate) mod existing;
pub(crate) mod facts;
mod links;
mod process;
#[cfg(test)]
pub(crate) mod tests;
mod version;
mod walk;

pub use existing::Existing;

use crate::text::refused;
pub(crate) use errors::is_uuid;
use errors::refusal;
use facts::Facts;
use gwctl_entities::{DEFAULT_WORKSPACE, EntityError, Fill, Map, Record, Registry, Value};
use links::{dangling_errors, duplicates, late_duplicates};
use process::Process;
use serde_json::json;
use std::collections::BTreeMap;
use walk::Walk;

/// What a document is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The whole configuration of a node without a store (`POST /config`, `declarative_config`).
    DbLess,
    /// The `config_table` of a control plane: flat tables of stored records; unknown members holding null are skipped.
    DataPlane,
    /// Part of a configuration (`db_import`, `gwctl apply`): no default workspace is added.
    Partial,
}

/// How to read a document.
#[derive(Debug, Clone, Copy)]
pub struct LoadOptions<'a> {
    /// See [`Mode`].
    pub mode: Mode,
    /// Move the errors of entities into a flat list (`flatten_errors=1`).
    pub flatten_errors: bool,
    /// Records already stored: an entity without id takes the id of the one with the same key.
    pub existing: Option<&'a Existing>,
}

impl LoadOptions<'_> {
    /// Options of a mode: error tree, no stored records.
    pub fn of(mode: Mode) -> LoadOptions<'static> {
        LoadOptions { mode, flatten_errors: false, existing: None }
    }
}

/// The records of one entity.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Schema name.
    pub entity: String,
    /// Stored form: every field present, foreign fields as `{"id": ...}`.
    pub records: Vec<Record>,
}

/// A document that was accepted.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Entities that have records, parents before children.
    pub tables: Vec<Table>,
    /// Id of the default workspace.
    pub default_workspace: String,
    /// `_transform`: false when the values are stored ones already.
    pub transform: bool,
    /// Per entity and id the values that differ from the stored ones because they were transformed.
    pub(crate) as_written: BTreeMap<(String, String), Record>,
    /// Ids of the server names nested in a certificate.
    pub(crate) nested_names: BTreeMap<String, Vec<String>>,
}

impl Loaded {
    /// Records of an entity; empty when it has none.
    pub fn records(&self, entity: &str) -> &[Record] {
        self.tables.iter().find(|table| table.entity == entity).map_or(&[], |table| &table.records)
    }

    /// No records besides workspaces and parameters.
    pub fn is_empty(&self) -> bool {
        self.tables.iter().all(|table| matches!(table.entity.as_str(), "workspaces" | "parameters"))
    }
}

/// Reads a document: placement, references, ids, defaults, validation, uniqueness.
///
/// All mistakes at once in [`EntityError::InvalidDeclarative`]: first those of structure and fields; only without
/// such ones those of references, then those of uniqueness. Cost: linear in the number of records.
pub fn load(
    registry: &Registry,
    document: Value,
    options: &LoadOptions<'_>,
    fill: &mut dyn Fill,
) -> Result<Loaded, EntityError> {
    let Value::Object(mut document) = document else {
        return Err(refused("expected an object"));
    };
    let facts = Facts::new(registry);
    let mut faults = Map::new();
    let head = version::head(&mut document, &mut faults);
    if head.old_paths {
        version::convert_paths(&mut document);
    }
    let mut walk = Walk::document(&facts, &mut document);
    for (member, value) in document {
        if !(options.mode == Mode::DataPlane && value.is_null()) {
            walk.faults.insert(member, Value::from("unknown field"));
        }
    }
    walk.faults.extend(faults);

    let mut process = Process::new(registry, &facts, options, head.transform);
    process.run(&mut walk, fill);
    if !walk.faults.is_empty() || walk.items.iter().any(|item| !item.fault.is_none()) {
        process.add_parent_errors(&mut walk);
        return Err(refusal(&facts, &mut walk, options.flatten_errors));
    }
    let dangling = dangling_errors(&facts, &walk, &process.dangling);
    refuse(dangling, options)?;
    refuse(duplicates(&facts, &walk, &process.records), options)?;
    refuse(late_duplicates(&facts, &walk, &process.records), options)?;
    let mut loaded = process.finish(&walk);
    if options.mode != Mode::Partial {
        add_workspace(registry, &mut loaded, fill)?;
    }
    Ok(loaded)
}

/// Errors found after validation. In the flattened form those keyed by name are lost, as in Kong; those of a place
/// in a list stay as they are.
fn refuse(fields: Map<String, Value>, options: &LoadOptions<'_>) -> Result<(), EntityError> {
    if fields.is_empty() {
        return Ok(());
    }
    if !options.flatten_errors {
        return Err(EntityError::InvalidDeclarative { fields, flattened: None });
    }
    let fields = fields.into_iter().filter(|(_, errors)| errors.is_array()).collect();
    Err(EntityError::InvalidDeclarative { fields, flattened: Some(Vec::new()) })
}

/// Names the default workspace, and adds its record when the document has none.
fn add_workspace(registry: &Registry, loaded: &mut Loaded, fill: &mut dyn Fill) -> Result<(), EntityError> {
    let named = |record: &&Record| record.get("name").and_then(Value::as_str) == Some("default");
    let given = loaded.records("workspaces").iter().find(named).and_then(|record| record.get("id")?.as_str());
    if let Some(id) = given {
        loaded.default_workspace = id.to_owned();
        return Ok(());
    }
    loaded.default_workspace = DEFAULT_WORKSPACE.to_owned();
    let Value::Object(input) = json!({"id": DEFAULT_WORKSPACE, "name": "default"}) else { return Ok(()) };
    let record = registry.process_insert("workspaces", input, fill, &process::NoRecords)?;
    match loaded.tables.iter_mut().find(|table| table.entity == "workspaces") {
        Some(table) => table.records.push(record),
        None => loaded.tables.insert(0, Table { entity: "workspaces".to_owned(), records: vec![record] }),
    }
    Ok(())
}
