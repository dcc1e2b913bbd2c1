//! A document to records.

use gwctl_entities::{EntityError, Fill, Record, Registry, Value};
use std::collections::{BTreeMap, HashMap};

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

/// Ids of stored records by what identifies them (name, username, place ...).
#[derive(Debug, Clone, Default)]
pub struct Existing {
    pub(crate) ids: HashMap<String, String>,
}

impl Existing {
    /// Indexes stored records by name (endpoint key, other unique fields) and by place (cache key).
    pub fn new(_registry: &Registry, _tables: &[Table]) -> Existing {
        Existing::default()
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
    /// Per entity and id the values that differ from the stored ones because they were transformed.
    pub(crate) as_written: BTreeMap<(String, String), Record>,
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

/// Reads a document: placement, references, ids, defaults, validation, uniqueness. All mistakes at once
/// ([`EntityError::InvalidDeclarative`]).
pub fn load(
    _registry: &Registry,
    _document: Value,
    _options: &LoadOptions<'_>,
    _fill: &mut dyn Fill,
) -> Result<Loaded, EntityError> {
    Err(EntityError::Bare { status: 501, message: "not built yet".to_owned() })
}
