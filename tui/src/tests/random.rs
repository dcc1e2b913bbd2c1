//! Random sessions: nothing may panic, and the cursor stays inside the list.

use super::{NOW, fleet, member, options};
use crate::{Event, Fault, Key, Model, Options, frame_text, update};
use gwctl_entities::fleet::{Fleet, FleetMember};
use proptest::prelude::*;

fn a_key() -> impl Strategy<Value = Key> {
    prop_oneof![
        4 => prop::sample::select("jkhlgGe<>r +-?q/=!aé日\u{7}".chars().collect::<Vec<_>>()).prop_map(Key::Char),
        1 => prop::sample::select(vec![Key::Ctrl('c'), Key::Ctrl('f'), Key::Ctrl('u'), Key::Enter, Key::Esc]),
        1 => prop::sample::select(vec![Key::Up, Key::Down, Key::Left, Key::Right, Key::PageUp, Key::PageDown]),
        1 => prop::sample::select(vec![Key::Home, Key::End, Key::Backspace]),
    ]
}

fn a_member() -> impl Strategy<Value = FleetMember> {
    let text = "[ -~é日本\u{0}\u{1b}\u{301}]{0,40}";
    (text, text, any::<bool>(), any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<String>>())
        .prop_map(|(name, word, connected, seen, number, end, hash)| FleetMember {
            id: word.clone(),
            sync_status: word.clone(),
            sync_detail: number.map(|_| word.clone()),
            address: word,
            connected,
            last_seen_millis: seen,
            applied_version: number,
            target_version: end,
            lag_millis: number,
            certificate_expires_at: end,
            config_hash: hash,
            ..member(&name, 0)
        })
}

fn an_event() -> impl Strategy<Value = Event> {
    let some = prop::collection::vec(a_member(), 0..30)
        .prop_map(|items| Ok(Box::new(Fleet { items, now_millis: NOW, ..fleet() })));
    let none = "[ -~]{0,200}".prop_map(|reason| Err(Fault { reason }));
    let answer = (any::<u64>(), prop_oneof![3 => some, 1 => none]);
    prop_oneof![
        10 => a_key().prop_map(Event::Key),
        2 => (1..200_u16, 1..60_u16).prop_map(|(width, height)| Event::Resize { width, height }),
        1 => (1..4_u16, 1..4_u16).prop_map(|(width, height)| Event::Resize { width, height }),
        1 => any::<u64>().prop_map(|now| Event::Tick { now }),
        2 => answer.prop_map(|(now, fleet)| Event::Answer { now, fleet }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_session_panics_and_the_cursor_stays_inside(
        events in prop::collection::vec(an_event(), 1..60),
        (ascii, colour) in any::<(bool, bool)>(),
        (width, height) in (1..130_u16, 1..45_u16),
    ) {
        let mut model = Model::new(Options { ascii, colour, ..options() });
        for event in events {
            update(&mut model, event);
            prop_assert!(model.selected < model.rows.len().max(1));
            prop_assert!(model.top <= model.selected);
            // Drawn at the size the model knows, and at another one: a resize may not have been told yet.
            frame_text(&model, model.width, model.height);
        }
        frame_text(&model, width, height);
        frame_text(&model, 1, 1);
    }
}
