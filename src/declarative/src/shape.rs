//! Records as a document for people: children below their parents, references by name.

use crate::load::facts::Facts;
use gwctl_entities::{Record, Registry, Value};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Dialect of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Kong's declarative format.
    Kong,
    /// decK's: no flat targets, server names and credentials; references of routes and keys as objects.
    Deck,
}

/// A record with what it hangs below in the input.
pub(crate) struct Node {
    pub(crate) kind: usize,
    /// Foreign fields as `{"id": ...}`, name or id.
    pub(crate) record: Record,
    /// The node it is nested in and the field that links to it.
    pub(crate) parent: Option<(usize, String)>,
}

/// How a document is made.
pub(crate) struct Shape<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) dialect: Dialect,
    /// Leave ids out where nothing needs them.
    pub(crate) without_ids: bool,
}

/// A reference of a node: to another node, or to something that is not here.
enum Link {
    Here(usize),
    Elsewhere(String),
}

impl Shape<'_> {
    /// The entities as members of a document, in the order of the nodes. Warnings name what cannot be expressed.
    pub(crate) fn members(&self, nodes: Vec<Node>, warnings: &mut Vec<String>) -> Record {
        let facts = Facts::new(self.registry);
        let links = links(&facts, &nodes);
        let homes: Vec<Option<(usize, &str)>> =
            nodes.iter().zip(&links).map(|(node, links)| home(facts.kinds[node.kind].name(), links)).collect();
        let mut wanted = BTreeSet::new();
        let mut flat = Vec::with_capacity(nodes.len());
        for (node, (links, home)) in nodes.iter().zip(links.iter().zip(&homes)) {
            flat.push(self.flat(&facts, &nodes, node, links, *home, &mut wanted));
        }
        let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, home) in homes.iter().enumerate() {
            if let Some((parent, _)) = home {
                children.entry(*parent).or_default().push(index);
            }
        }
        if self.without_ids {
            // A hash of a password is made with the id of its consumer and is worth nothing with another.
            let salted = |node: &Node| {
                facts.kinds[node.kind].name() == "basicauth_credentials" && node.record.contains_key("password")
            };
            for (_, links) in nodes.iter().zip(&links).filter(|(node, _)| salted(node)) {
                if let Some(Link::Here(consumer)) = links.get("consumer") {
                    wanted.insert(*consumer);
                }
            }
            for (index, record) in flat.iter_mut().enumerate() {
                if !wanted.contains(&index) && facts.kinds[nodes[index].kind].may_lose_id(record) {
                    record.remove("id");
                }
            }
        }
        let mut members = Record::new();
        for (index, node) in nodes.iter().enumerate().filter(|(index, _)| homes[*index].is_none()) {
            let name = facts.kinds[node.kind].name();
            if self.dialect == Dialect::Deck && below(name).is_some_and(|fields| !fields.is_empty()) && never_flat(name)
            {
                let what = flat[index].get("id").and_then(Value::as_str).unwrap_or_default();
                warnings.push(format!("{name} {what}: left out, what it belongs to is not in the file"));
                continue;
            }
            let record = assembled(&facts, &nodes, &mut flat, &children, index);
            push(&mut members, name, record);
        }
        members
    }

    /// The record with its references as texts, without the one to the record it is nested in.
    fn flat(
        &self,
        facts: &Facts<'_>,
        nodes: &[Node],
        node: &Node,
        links: &BTreeMap<String, Link>,
        home: Option<(usize, &str)>,
        wanted: &mut BTreeSet<usize>,
    ) -> Record {
        let mut record = node.record.clone();
        let kind = &facts.kinds[node.kind];
        if let Some((_, link)) = &node.parent {
            record.remove(link);
        }
        for (field, link) in links {
            if home.is_some_and(|(_, nested)| nested == field) {
                record.remove(field);
                continue;
            }
            let (key, text) = match link {
                Link::Elsewhere(text) => ("id", text.clone()),
                Link::Here(target) => {
                    let named = &facts.kinds[nodes[*target].kind];
                    match named.named.then(|| named.endpoint_value(&nodes[*target].record)).flatten() {
                        Some(name) => ("name", name),
                        None => {
                            wanted.insert(*target);
                            ("id", id_of(&nodes[*target].record).unwrap_or_default().to_owned())
                        }
                    }
                }
            };
            let as_object = self.dialect == Dialect::Deck
                && matches!((kind.name(), field.as_str()), ("routes", "service") | ("keys", "set"));
            record.insert(field.clone(), if as_object { json!({ key: text }) } else { Value::from(text) });
        }
        record
    }
}

fn id_of(record: &Record) -> Option<&str> {
    record.get("id")?.as_str()
}

/// References of each node by field; null ones are left out.
fn links(facts: &Facts<'_>, nodes: &[Node]) -> Vec<BTreeMap<String, Link>> {
    let mut known: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if let Some(id) = id_of(&node.record) {
            known.entry((node.kind, id.to_owned())).or_insert(index);
        }
    }
    for (index, node) in nodes.iter().enumerate() {
        let kind = &facts.kinds[node.kind];
        if let Some(name) = kind.named.then(|| kind.endpoint_value(&node.record)).flatten() {
            known.insert((node.kind, name), index);
        }
    }
    let one = |node: &Node| {
        let mut links = BTreeMap::new();
        for (field, target) in &facts.kinds[node.kind].foreign {
            let text = match node.record.get(*field) {
                Some(Value::String(text)) => text.as_str(),
                Some(Value::Object(object)) => match object.get("id").and_then(Value::as_str) {
                    Some(id) => id,
                    None => continue,
                },
                _ => continue,
            };
            let link = known.get(&(*target, text.to_owned()));
            links.insert(
                (*field).to_owned(),
                link.map_or_else(|| Link::Elsewhere(text.to_owned()), |at| Link::Here(*at)),
            );
        }
        if let Some((parent, link)) = &node.parent {
            links.insert(link.clone(), Link::Here(*parent));
        }
        links
    };
    nodes.iter().map(one).collect()
}

/// Fields by which an entity may be nested in another one; None for entities that stand at the top.
fn below(entity: &str) -> Option<&'static [&'static str]> {
    match entity {
        "routes" => Some(&["service"]),
        "targets" => Some(&["upstream"]),
        "snis" => Some(&["certificate"]),
        "plugins" => Some(&["service", "route", "consumer"]),
        "filter_chains" => Some(&["service", "route"]),
        name if credential(name) => Some(&["consumer"]),
        _ => None,
    }
}

fn credential(entity: &str) -> bool {
    matches!(
        entity,
        "keyauth_credentials"
            | "basicauth_credentials"
            | "hmacauth_credentials"
            | "jwt_secrets"
            | "oauth2_credentials"
            | "acls"
    )
}

fn never_flat(entity: &str) -> bool {
    matches!(entity, "targets" | "snis") || credential(entity)
}

/// The node a node is nested in: the only record it hangs below, when that is here.
fn home<'a>(entity: &str, links: &'a BTreeMap<String, Link>) -> Option<(usize, &'a str)> {
    let fields = below(entity)?;
    let mut held = links.iter().filter(|(field, _)| fields.contains(&field.as_str()));
    match (held.next(), held.next()) {
        (Some((field, Link::Here(target))), None) => Some((*target, field)),
        _ => None,
    }
}

fn push(members: &mut Record, name: &str, record: Record) {
    if let Value::Array(list) = members.entry(name).or_insert_with(|| json!([])) {
        list.push(Value::Object(record));
    }
}

/// A record with all that is nested in it.
fn assembled(
    facts: &Facts<'_>,
    nodes: &[Node],
    flat: &mut [Record],
    children: &BTreeMap<usize, Vec<usize>>,
    index: usize,
) -> Record {
    let mut record = std::mem::take(&mut flat[index]);
    for &child in children.get(&index).into_iter().flatten() {
        let nested = assembled(facts, nodes, flat, children, child);
        push(&mut record, facts.kinds[nodes[child].kind].name(), nested);
    }
    record
}
