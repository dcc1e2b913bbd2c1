//! Which rows are shown.

use crate::state::{State, note};
use gwctl_entities::fleet::{Fleet, FleetMember};

/// A filter as typed: words that must all hold; `label=value` asks for a label, a leading `!` turns a word round.
///
/// A word without `=` is looked for in name, id, address, version, labels, state and note. Case does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) text: String,
}

impl Filter {
    pub(crate) fn matches(&self, member: &FleetMember, fleet: &Fleet) -> bool {
        self.text.split_whitespace().all(|word| match word.strip_prefix('!') {
            Some("") => true,
            Some(word) => !holds(word, member, fleet),
            None => holds(word, member, fleet),
        })
    }
}

fn holds(word: &str, member: &FleetMember, fleet: &Fleet) -> bool {
    let word = word.to_lowercase();
    if let Some((label, value)) = word.split_once('=') {
        let mut labels = member.labels.iter();
        return labels.any(|(key, found)| key.to_lowercase() == label && found.to_lowercase().starts_with(value));
    }
    let note = note(member).unwrap_or_default();
    let state = State::of(member, fleet).word();
    let texts = [&member.name, &member.id, &member.hostname, &member.address, &member.version, &note];
    let labels = member.labels.iter().flat_map(|(key, value)| [key, value]);
    state == word || texts.into_iter().chain(labels).any(|text| text.to_lowercase().contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> bool {
        let labels = [("region".to_owned(), "eu-west".to_owned())].into();
        let member = FleetMember { name: "Edge-1".into(), connected: false, labels, ..FleetMember::default() };
        Filter { text: text.into() }.matches(&member, &Fleet::default())
    }

    #[test]
    fn words_labels_and_inverses_must_all_hold() {
        for text in ["", "edge", "region=eu", "offline edge", "!online", "!"] {
            assert!(shown(text), "{text}");
        }
        for text in ["dp", "region=us", "zone=eu", "!edge", "edge !region=eu-west"] {
            assert!(!shown(text), "{text}");
        }
    }
}
