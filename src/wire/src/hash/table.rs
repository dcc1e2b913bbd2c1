//! The hashes of a configuration table.

use super::canonical::{Canonical, digest_of};
use super::{ConfigHash, Hashes, Record};
use serde_json::{Map, Value};
use std::borrow::Borrow;

/// Computes the hashes of a configuration table that is shown to it member by member, without owning a row.
///
/// Members come in ascending order of their names. The five parts a data plane rebuilds separately have their own
/// hash each; all others, `_format_version` and `_transform` too, go into a common one that is not published.
///
/// ```
/// # use gwctl_wire::hash::TableHasher;
/// let row = serde_json::json!({"id": "a", "name": "s"});
/// let rows = [row.as_object().expect("an object")];
/// let mut hasher = TableHasher::new();
/// hasher.member("_format_version", &"3.0".into());
/// hasher.rows("services", rows);
/// assert!(!hasher.finish().services.is_zero());
/// ```
pub struct TableHasher {
    hashes: Hashes,
    rest: Canonical,
    rest_is_empty: bool,
    last: String,
}

impl Default for TableHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl TableHasher {
    /// A hasher that has seen nothing.
    pub fn new() -> Self {
        let mut rest = Canonical::new();
        rest.enter();
        Self { hashes: Hashes::default(), rest, rest_is_empty: true, last: String::new() }
    }

    /// Adds a member of any kind.
    pub fn member(&mut self, name: &str, value: &Value) {
        self.add(name, |canonical| canonical.value(value));
    }

    /// Adds the rows of an entity, in the order in which they are exported.
    ///
    /// No rows at all is a present, empty list and hashes differently from a part that is never added.
    pub fn rows<R: Borrow<Record>>(&mut self, entity: &str, rows: impl IntoIterator<Item = R>) {
        self.add(entity, |canonical| canonical.rows(rows));
    }

    /// Adds one of the five parts whose hash is known from before. False if the name is not one of them.
    pub fn known_part(&mut self, entity: &str, hash: ConfigHash) -> bool {
        match part_of(&mut self.hashes, entity) {
            Some(part) => {
                *part = hash;
                true
            }
            None => false,
        }
    }

    /// The hashes of all that was added.
    pub fn finish(mut self) -> Hashes {
        if self.rest_is_empty {
            self.rest.empty();
        }
        let rest = self.rest.finish();
        let mut hashes = self.hashes;
        let parts = [&hashes.routes, &hashes.services, &hashes.plugins, &hashes.upstreams, &hashes.targets, &rest];
        hashes.config = digest_of(parts);
        hashes
    }

    fn add(&mut self, name: &str, write: impl FnOnce(&mut Canonical)) {
        debug_assert!(self.last.as_str() <= name, "members in ascending order: {name} after {}", self.last);
        name.clone_into(&mut self.last);
        if let Some(part) = part_of(&mut self.hashes, name) {
            let mut canonical = Canonical::new();
            write(&mut canonical);
            *part = canonical.finish();
        } else {
            self.rest_is_empty = false;
            self.rest.begin_member(name);
            write(&mut self.rest);
            self.rest.end_member();
        }
    }
}

fn part_of<'a>(hashes: &'a mut Hashes, name: &str) -> Option<&'a mut ConfigHash> {
    match name {
        "routes" => Some(&mut hashes.routes),
        "services" => Some(&mut hashes.services),
        "plugins" => Some(&mut hashes.plugins),
        "upstreams" => Some(&mut hashes.upstreams),
        "targets" => Some(&mut hashes.targets),
        _ => None,
    }
}

impl Hashes {
    /// The hashes of a whole table.
    ///
    /// Source: Kong 3.9.1 `kong/clustering/config_helper.lua`, `calculate_config_hash`.
    pub fn of(table: &Map<String, Value>) -> Self {
        let mut hasher = TableHasher::new();
        let mut members: Vec<_> = table.iter().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        for (name, value) in members {
            hasher.member(name, value);
        }
        hasher.finish()
    }

    /// The hash of one of the five parts; None for any other name.
    pub fn part(&self, entity: &str) -> Option<&ConfigHash> {
        match entity {
            "routes" => Some(&self.routes),
            "services" => Some(&self.services),
            "plugins" => Some(&self.plugins),
            "upstreams" => Some(&self.upstreams),
            "targets" => Some(&self.targets),
            _ => None,
        }
    }

    /// Changes when the router must be rebuilt.
    pub fn router(&self) -> ConfigHash {
        if self.routes.is_zero() { ConfigHash::zero() } else { digest_of([&self.services, &self.routes]) }
    }

    /// Changes when the balancer must be rebuilt.
    pub fn balancer(&self) -> ConfigHash {
        if self.upstreams.is_zero() && self.targets.is_zero() {
            ConfigHash::zero()
        } else {
            digest_of([&self.upstreams, &self.targets])
        }
    }
}

/// The hash of one value; zero when it is absent.
pub fn part(value: Option<&Value>) -> ConfigHash {
    let Some(value) = value else { return ConfigHash::zero() };
    let mut canonical = Canonical::new();
    canonical.value(value);
    canonical.finish()
}
