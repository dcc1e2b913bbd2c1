//! What is kept of what data planes say of themselves. A peer with the cluster's certificate may say anything under any
//! number of ids, and its rows stay when it has gone.

use super::Member;
use std::collections::BTreeMap;

/// Rows kept; a control plane serves as many connections.
const ROWS: usize = 20_000;

/// Bytes of each name or label that is kept, and of all plugins, labels or capabilities of a node together. Kong's own
/// plugins take 600, its labels 1260 at most.
const WORD: usize = 255;
const WORDS: usize = 4096;

/// Letters kept of an explanation.
const EXPLANATION: usize = 1000;

/// The names that are kept.
pub(super) fn names<'a>(said: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let mut room = WORDS;
    said.into_iter().filter(|name| name.len() <= WORD && takes(&mut room, name.len())).cloned().collect()
}

/// The labels that are kept.
pub(super) fn labels(said: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut room = WORDS;
    let short = said.iter().filter(|(name, value)| name.len() <= WORD && value.len() <= WORD);
    let kept = short.filter(|(name, value)| takes(&mut room, name.len() + value.len()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Takes so much of the room if there is as much; nothing takes no room at all.
fn takes(room: &mut usize, length: usize) -> bool {
    let left = room.checked_sub(length.max(1));
    *room = left.unwrap_or(0);
    left.is_some()
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
        assert_eq!(names(&vec![short.clone(); 100]).len(), WORDS / WORD);
        assert_eq!(names(&vec![String::new(); WORDS + 1]).len(), WORDS);
        let said = [("a", &short), ("b", &long), (long.as_str(), &short)];
        let said = said.map(|(name, value)| (name.to_owned(), value.clone())).into();
        assert_eq!(labels(&said), BTreeMap::from([("a".to_owned(), short)]));
        let many = (0..1000).map(|number| (format!("{number:08}"), "12345678".to_owned())).collect();
        assert_eq!(labels(&many).len(), WORDS / 16);
        assert_eq!(explanation(&"ä".repeat(EXPLANATION + 1)).chars().count(), EXPLANATION);
    }
}
