//! The ordered operations that lead from one configuration to another.

use crate::{Loaded, Table};
use gwctl_entities::{EntityError, Fill, Record, Registry, Value};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `+`: the record is new.
    Create,
    /// `~`: the record exists and changes.
    Update,
    /// `-`: the record goes.
    Delete,
}

/// One field that changes; nested fields are dotted (`config.minute`).
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Dotted path.
    pub field: String,
    /// Value before; null when absent.
    pub before: Value,
    /// Value after; null when absent.
    pub after: Value,
    /// The values are secret and must not be shown.
    pub secret: bool,
}

/// One request to an Admin API.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// See [`Action`].
    pub action: Action,
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// What people call it: name, username, target ...; else the id.
    pub name: String,
    /// Entity, id and name of the record it hangs below, if any.
    pub parent: Option<(String, String, String)>,
    /// Stored record before; None for a create.
    pub before: Option<Record>,
    /// Record after; None for a delete.
    pub after: Option<Record>,
    /// Fields that change (all of them for a create, none for a delete).
    pub changes: Vec<Change>,
    /// `PUT` and `DELETE` go to this path (`/services/<id>`, `/consumers/<id>/acls/<id>`).
    pub path: String,
    /// Where `POST` creates it when the `PUT` answers 404 (targets: `/upstreams/<id>/targets`).
    pub post_path: Option<String>,
    /// Body of the `PUT` (or `POST`): values as written in the file, without timestamps.
    pub body_for_put: Option<Record>,
}

/// What to compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// Only records that carry all of these tags are touched; records of the file get them.
    pub select_tags: Vec<String>,
    /// Delete what the file does not name.
    pub prune: bool,
}

/// Ordered operations: creates and updates parents first, then deletes children first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// See [`Operation`].
    pub operations: Vec<Operation>,
    /// Records that exist, are not in the file and stay because pruning was not asked for: entity and name.
    pub left: Vec<(String, String)>,
    /// Things to know before applying.
    pub warnings: Vec<String>,
}

impl Plan {
    /// Number of operations of this kind.
    pub fn count(&self, action: Action) -> usize {
        self.operations.iter().filter(|operation| operation.action == action).count()
    }

    /// Nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// Reads `document` against the stored records (ids of the same names are kept) and compares.
pub fn plan(
    _registry: &Registry,
    _current: &[Table],
    _document: Value,
    _options: &DiffOptions,
    _fill: &mut dyn Fill,
) -> Result<Plan, EntityError> {
    Ok(Plan::default())
}

/// Compares stored records with a loaded document by id. Load it with [`crate::Existing`] so that ids are kept.
pub fn diff(_registry: &Registry, _current: &[Table], _target: &Loaded, _options: &DiffOptions) -> Plan {
    Plan::default()
}
