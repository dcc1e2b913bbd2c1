//! What is kept of what data planes say of themselves. A peer with the cluster's certificate may say anything under any
//! number of ids, and its rows stay when it has gone.

use super::Member;
use std::collections::BTreeMap;

/// Rows kept; a control plane serves as many connections.
const ROWS: usize = 20_000;

/// Names or labels kept of one node, and the bytes each may have. Kong itself has 45 plugins, and allows ten labels of 63
/// letters.
const WORDS: usize = 1000;
const WORD: usize = 255;

/// Letters kept of an explanation.
const EXPLANATION: usize = 1000;

/// The names that are kept.
pub(super) fn names<'a>(said: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    said.into_iter().filter(|name| name.len() <= WORD).take(WORDS).cloned().collect()
}

/// The labels that are kept.
pub(super) fn labels(said: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let short = said.iter().filter(|(name, value)| name.len() <= WORD && value.len() <= WORD);
    short.take(WORDS).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// As much of an explanation, an id or a digest as is kept.
pub(super) fn explanation(said: &str) -> String {
    said.chars().take(EXPLANATION).collect()
}

/// Makes room for one more row: of the nodes that are away, the one unheard of for longest is forgotten.
pub(super) fn make_room(members: &mut BTreeMap<String, Member>) {
    while members.len() >= ROWS {
        let away = members.iter().filter(|(_, member)| member.connections == 0);
        let Some(oldest) = away.min_by_key(|(_, member)| member.last_seen_millis).map(|(id, _)| id.clone()) else {
            return;
        };
        members.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_nodes_that_are_away_give_way_and_the_oldest_first() {
        let member = |seen: u64, connections| Member { last_seen_millis: seen, connections, ..Member::default() };
        let mut members: BTreeMap<String, Member> =
            (0..ROWS as u64).map(|number| (format!("{number:05}"), member(9, 1))).collect();
        make_room(&mut members);
        assert_eq!(members.len(), ROWS, "none that is connected is forgotten");
        for (id, seen) in [("00007", 5), ("00003", 4), ("00005", 6)] {
            members.insert(id.to_owned(), member(seen, 0));
        }
        make_room(&mut members);
        assert!(members.len() == ROWS - 1 && !members.contains_key("00003"));
    }

    #[test]
    fn what_is_too_long_is_not_kept() {
        let (short, long) = ("x".repeat(WORD), "x".repeat(WORD + 1));
        assert_eq!(names([&short, &long]).concat(), short);
        assert_eq!(names(&vec![short.clone(); WORDS + 1]).len(), WORDS);
        let said = [("a", &short), ("b", &long), (long.as_str(), &short)];
        let said = said.map(|(name, value)| (name.to_owned(), value.clone())).into();
        assert_eq!(labels(&said), BTreeMap::from([("a".to_owned(), short)]));
        assert_eq!(explanation(&"ä".repeat(EXPLANATION + 1)).chars().count(), EXPLANATION);
    }
}
