//! Credentials that change hands: the riskiest line of a plan.

use super::{Action, Operation, Plan};
use gwctl_entities::{Record, Registry};
use std::collections::BTreeMap;

/// How such a warning begins.
pub(crate) const MOVES: &str = "MOVES ";

impl Plan {
    /// Adds a warning for every credential that goes from one consumer to another, be it by a change or because it is
    /// deleted and made again under another id.
    pub(super) fn tell_moves(&mut self, registry: &Registry) {
        let mut gone: BTreeMap<(&str, String), &Operation> = BTreeMap::new();
        for operation in self.operations.iter().filter(|operation| operation.action == Action::Delete) {
            let key = operation.before.as_ref().and_then(|record| key_of(registry, &operation.entity, record));
            gone.extend(key.map(|key| ((operation.entity.as_str(), key), operation)));
        }
        let mut told = Vec::new();
        for operation in &self.operations {
            let Some(after) = &operation.after else { continue };
            let made_again = || {
                let key = key_of(registry, &operation.entity, after)?;
                gone.get(&(operation.entity.as_str(), key))?.before.as_ref()
            };
            let Some(before) = operation.before.as_ref().or_else(made_again) else { continue };
            let Some((from, to)) = consumers(registry, &operation.entity, before, after) else { continue };
            let name = |id: &str| self.names.get(id).cloned().unwrap_or_else(|| id.to_owned());
            let (entity, from, to) = (&operation.entity, name(from), name(to));
            let who = if operation.name == operation.id { &operation.id } else { &operation.name };
            told.push(format!(
                "{MOVES}{entity} {who} from consumer {from} to consumer {to}: requests that carry it count as {to} \
                 from then on"
            ));
        }
        self.warnings.extend(told);
    }
}

/// Both consumers, when they differ.
fn consumers<'a>(
    registry: &Registry,
    entity: &str,
    before: &'a Record,
    after: &'a Record,
) -> Option<(&'a str, &'a str)> {
    let schema = registry.entity(entity).filter(|schema| schema.plugin.is_some())?;
    let (from, to) = (schema.foreign_id(before, "consumer")?, schema.foreign_id(after, "consumer")?);
    (from != to).then_some((from, to))
}

/// The unique value by which requests name a credential.
fn key_of(registry: &Registry, entity: &str, record: &Record) -> Option<String> {
    let schema = registry.entity(entity).filter(|schema| schema.plugin.is_some())?;
    let unique = schema.unique_fields.first()?;
    record.get(&unique.field)?.as_str().map(str::to_owned)
}
