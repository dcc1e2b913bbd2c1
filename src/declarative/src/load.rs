//! A document to records.

mod errors;
pub(crate) mod existing;
pub(crate) mod facts;
mod links;
mod mistakes;
mod process;
#[cfg(test)]
pub(crate) mod tests;
mod validate;
mod version;
mod walk;

pub use existing::Existing;
pub use mistakes::{Mistake, MistakeKind};

use crate::share;
use crate::text::refused;
pub(crate) use errors::is_uuid;
use errors::refusal;
use facts::Facts;
use gwctl_entities::{DEFAULT_WORKSPACE, EntityError, Fill, Map, Record, Registry, Value};
use links::{dangling_errors, duplicate_errors, duplicates, late_duplicates, late_errors};
pub(crate) use mistakes::{flatten, path_of};
#[cfg(test)]
pub(crate) use process::NoRecords;
use process::Process;
use serde_json::json;
use std::collections::BTreeMap;
pub(crate) use version::convert_paths;
pub(crate) use walk::{Fault, Walk};

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
    /// Threads that may validate a large document together, for the time of the call; 0 and 1: the caller's alone.
    /// The result is the same. Not used for [`Mode::DataPlane`].
    pub threads: usize,
}

impl LoadOptions<'_> {
    /// Options of a mode: error tree, no stored records, one thread.
    pub fn of(mode: Mode) -> LoadOptions<'static> {
        LoadOptions { mode, flatten_errors: false, existing: None, threads: 1 }
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

/// A document that was refused.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// As the Admin API tells it.
    pub error: EntityError,
    /// All mistakes with their paths, for people.
    pub mistakes: Vec<Mistake>,
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
    load_located(registry, document, options, fill).map_err(|refusal| refusal.error)
}

/// As [`load()`]; a refusal also tells all mistakes, those of references and uniqueness included, by path.
pub fn load_located(
    registry: &Registry,
    document: Value,
    options: &LoadOptions<'_>,
    fill: &mut dyn Fill,
) -> Result<Loaded, Refusal> {
    let Value::Object(mut document) = document else {
        let mistakes = vec![Mistake::value(Vec::new(), "expected a map of entities at the top")];
        return Err(Refusal { error: refused("expected an object"), mistakes });
    };
    let facts = Facts::new(registry);
    let mut faults = Map::new();
    let head = version::head(&mut document, &mut faults);
    if head.old_paths {
        convert_paths(&mut document);
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
    judge(&facts, &process, &mut walk, options)?;
    let mut loaded = process.finish(&walk);
    // What was written is a million texts by now; to give them back takes a while.
    share::parts(&mut walk.items, options.threads, |item| drop(std::mem::take(&mut item.input)));
    if options.mode != Mode::Partial {
        add_workspace(registry, &mut loaded, fill).map_err(|error| Refusal { error, mistakes: Vec::new() })?;
    }
    Ok(loaded)
}

fn judge<'r>(
    facts: &Facts<'r>,
    process: &Process<'_, 'r>,
    walk: &mut Walk<'r>,
    options: &LoadOptions<'_>,
) -> Result<(), Refusal> {
    let (mut twice, late) = share::both(
        options.threads,
        || duplicates(facts, walk, &process.records),
        || late_duplicates(facts, walk, &process.records),
    );
    let faulty = !walk.faults.is_empty() || walk.items.iter().any(|item| !item.fault.is_none());
    if !faulty && process.dangling.is_empty() && twice.is_empty() && late.is_empty() {
        return Ok(());
    }
    let first = duplicate_errors(facts, walk, &twice);
    let last = late_errors(facts, walk, &late);
    twice.extend(late);
    let mistakes = mistakes::all(facts, walk, &process.all_dangling(), &twice);
    let error = if faulty {
        process.add_parent_errors(walk);
        refusal(facts, walk, options.flatten_errors)
    } else {
        let dangling = dangling_errors(facts, walk, &process.dangling);
        let fields = [dangling, first, last].into_iter().find(|fields| !fields.is_empty());
        refusal_of(fields.unwrap_or_default(), options)
    };
    Err(Refusal { error, mistakes })
}

/// The refusal of errors found after validation. In the flattened form those keyed by name are lost, as in Kong;
/// those of a place in a list stay as they are.
fn refusal_of(fields: Map<String, Value>, options: &LoadOptions<'_>) -> EntityError {
    if !options.flatten_errors {
        return EntityError::InvalidDeclarative { fields, flattened: None };
    }
    let fields = fields.into_iter().filter(|(_, errors)| errors.is_array()).collect();
    EntityError::InvalidDeclarative { fields, flattened: Some(Vec::new()) }
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
