//! The table as an older node can read it.

use super::Version;
use super::removed::REMOVED;
use super::steps::STEPS;
use crate::ConfigTable;
use crate::table::text;
use gwctl_entities::Record;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Versions that brought something older nodes do not know, ascending.
const THRESHOLDS: [Version; 10] = [
    Version::new(3, 1, 0),
    Version::new(3, 2, 0),
    Version::new(3, 3, 0),
    Version::new(3, 4, 0),
    Version::new(3, 5, 0),
    Version::new(3, 6, 0),
    Version::new(3, 7, 0),
    Version::new(3, 8, 0),
    Version::new(3, 9, 0),
    Version::new(3, 9, 1),
];

/// A group of node versions that are sent the same bytes. Make one payload for each variant in use, not for each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant {
    /// The lowest threshold above the nodes; None: they know everything.
    below: Option<Version>,
}

impl Variant {
    /// The table as it is.
    pub const CURRENT: Self = Self { below: None };

    /// The variant for a node of this version.
    pub fn of(node: Version) -> Self {
        Self { below: THRESHOLDS.into_iter().find(|threshold| node < *threshold) }
    }

    /// Whether its nodes are older than a version, which must be one of the thresholds.
    fn is_before(self, threshold: Version) -> bool {
        self.below.is_some_and(|below| below <= threshold)
    }
}

/// A table for older nodes, and what they miss.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewritten {
    /// The table. Entities that were not touched are shared with the original.
    pub table: ConfigTable,
    /// What was changed, in words, each once.
    pub notices: BTreeSet<String>,
}

/// Rewrites the table for a variant; None if it needs no change, so that the shared bytes can be sent.
///
/// The hashes stay those of the original table: every node reports the same one. What is left out of an older node's
/// table is left out in silence there, so a control plane should log the notices.
///
/// Source: Kong 3.9.1 `kong/clustering/compat/init.lua`, `update_compatible_payload`.
pub fn rewrite(table: &ConfigTable, variant: Variant) -> Option<Rewritten> {
    if variant == Variant::CURRENT {
        return None;
    }
    let mut rewritten = Rewritten { table: table.clone(), notices: BTreeSet::new() };
    for step in STEPS.iter().filter(|step| variant.is_before(step.below)) {
        let rows = rewritten.table.rows(step.entity);
        let Some(first) = rows.iter().position(step.concerns) else { continue };
        let subject = text(&rows[first], "name").filter(|_| step.entity == "plugins").unwrap_or(step.entity);
        rewritten.notices.insert(format!("{subject}: {}", step.what));
        let rows = rewritten.table.rows_mut(step.entity);
        rows[first..].iter_mut().filter(|row| (step.concerns)(row)).for_each(step.rewrite);
    }
    remove_settings(&mut rewritten, variant);
    (!rewritten.notices.is_empty()).then_some(rewritten)
}

fn remove_settings(rewritten: &mut Rewritten, variant: Variant) {
    let mut removed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, plugins) in REMOVED.iter().filter(|(below, _)| variant.is_before(*below)) {
        for (plugin, fields) in *plugins {
            removed.entry(plugin).or_default().extend(*fields);
        }
    }
    let fields_of = |row: &Record| text(row, "name").and_then(|name| removed.get(name)).map_or(&[][..], Vec::as_slice);
    let rows = rewritten.table.rows("plugins");
    let has_any = |row: &Record| fields_of(row).iter().any(|field| has(row.get("config"), field));
    let Some(first) = rows.iter().position(has_any) else { return };
    for row in &mut rewritten.table.rows_mut("plugins")[first..] {
        for field in fields_of(row) {
            if remove(row, field) {
                let name = text(row, "name").unwrap_or_default();
                rewritten.notices.insert(format!("{name}: {field} is left out"));
            }
        }
    }
}

fn has(config: Option<&Value>, path: &str) -> bool {
    path.split('.').try_fold(config, |value, key| value?.get(key).map(Some)).flatten().is_some()
}

fn remove(row: &mut Record, path: &str) -> bool {
    let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut value = row.get_mut("config");
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        value = value.and_then(|value| value.get_mut(key));
    }
    value.and_then(Value::as_object_mut).is_some_and(|record| record.remove(last).is_some())
}
