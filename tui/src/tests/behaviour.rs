//! What keys, ticks and answers do.

use super::{after, answered, fleet, keys, member, model, sized};
use crate::keys::{BINDINGS, Command};
use crate::state::State;
use crate::{Action, Event, Fault, Key, Model, frame_text, update};
use gwctl_entities::fleet::Fleet;

fn failed(now: u64) -> Event {
    Event::Answer { now, fleet: Err(Fault { reason: "connection refused".into() }) }
}

/// Times at which the model asks, ticking every 100 ms, when every question fails at once.
fn asks_when_failing(model: &mut Model, until: u64) -> Vec<u64> {
    let mut asked = Vec::new();
    for now in (0..until).step_by(100) {
        if update(model, Event::Tick { now }) == [Action::Fetch] {
            asked.push(now);
            update(model, failed(now));
        }
    }
    asked
}

#[test]
fn it_asks_at_once_and_then_every_interval() {
    let mut model = model();
    assert_eq!(update(&mut model, Event::Tick { now: 0 }), [Action::Fetch]);
    assert_eq!(update(&mut model, Event::Tick { now: 5000 }), [], "one question at a time");
    update(&mut model, answered(5100, fleet()));
    assert_eq!(update(&mut model, Event::Tick { now: 7000 }), []);
    assert_eq!(update(&mut model, Event::Tick { now: 7100 }), [Action::Fetch]);
}

#[test]
fn it_tries_again_by_itself_ever_less_often_but_every_ten_seconds() {
    let asked = asks_when_failing(&mut model(), 60_000);
    let waits: Vec<u64> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits[..4], [2000, 2000, 4000, 8000]);
    assert!(waits[4..].iter().all(|&wait| wait == 10_000), "{waits:?}");
}

#[test]
fn an_answer_takes_the_banner_away() {
    let lost = after(model(), [answered(0, fleet()), failed(30_000)]);
    assert!(frame_text(&lost, 80, 24).contains("NO ANSWER, last data 30s ago: connection refused"));
    let back = after(lost, [answered(40_000, fleet())]);
    assert!(!frame_text(&back, 80, 24).contains("NO ANSWER"));
}

#[test]
fn paused_it_asks_nothing_and_says_how_old_the_data_is() {
    let mut paused = after(model(), [answered(0, fleet())].into_iter().chain(keys(" ")));
    assert_eq!(update(&mut paused, Event::Tick { now: 9000 }), []);
    assert!(frame_text(&paused, 80, 24).contains("PAUSED, data is 9s old"));
    assert_eq!(update(&mut paused, Event::Key(Key::Char(' '))), [Action::Fetch]);
}

#[test]
fn the_selection_follows_its_data_plane() {
    let mut model = after(model(), [answered(0, fleet())].into_iter().chain(keys("jj")));
    let chosen = model.selected_id.clone().unwrap();
    for key in "><>>r<".chars() {
        update(&mut model, Event::Key(Key::Char(key)));
        assert_eq!(model.member().unwrap().id, chosen);
    }
    let mut smaller = fleet();
    smaller.items.retain(|member| member.id == chosen || member.name == "dp-1");
    let model = after(model, [answered(2000, smaller)]);
    assert_eq!(model.member().unwrap().id, chosen);
}

#[test]
fn only_problems_hides_the_online_ones() {
    let model = after(model(), [answered(0, fleet())].into_iter().chain(keys("e")));
    let fleet = model.fleet.as_ref().unwrap();
    assert_eq!(model.rows.len(), 4);
    assert!(model.rows.iter().all(|&row| State::of(&fleet.items[row], fleet) != State::Online));
}

#[test]
fn a_label_filter_is_typed_live_and_cleared_by_escape() {
    let mut fleet = fleet();
    fleet.items[0].labels.insert("region".into(), "us".into());
    let mut model = after(model(), [answered(0, fleet)].into_iter().chain(keys("/region=us")));
    assert_eq!(model.rows.len(), 1);
    update(&mut model, Event::Key(Key::Esc));
    assert_eq!((model.rows.len(), model.typing), (6, false));
}

#[test]
fn q_leaves_one_level_and_ctrl_c_everything() {
    let mut model = after(model(), [answered(0, fleet())].into_iter().chain(keys("?")));
    assert_eq!(update(&mut model, Event::Key(Key::Char('q'))), []);
    assert_eq!(update(&mut model, Event::Key(Key::Char('q'))), [Action::Quit]);
    let mut typing = after(model, keys("/q"));
    assert_eq!(update(&mut typing, Event::Key(Key::Ctrl('c'))), [Action::Quit]);
}

#[test]
fn the_interval_moves_between_its_bounds() {
    let mut model = model();
    let slowest = after(model.clone(), keys("++++++++++"));
    assert_eq!(slowest.interval, 60_000);
    for _ in 0..10 {
        update(&mut model, Event::Key(Key::Char('-')));
    }
    assert_eq!(model.interval, 250);
}

#[test]
fn the_last_row_is_on_the_screen_when_selected() {
    let items = (0..500).map(|number| member(&format!("dp-{number:03}"), 0)).collect();
    let many = Fleet { items, ..fleet() };
    let model = after(model(), [sized(80, 24), answered(0, many)].into_iter().chain(keys("G")));
    assert!(frame_text(&model, 80, 24).contains("dp-499"));
    let model = after(model, keys("g"));
    assert!(frame_text(&model, 80, 24).contains("dp-000"));
}

#[test]
fn every_bound_key_does_something_somewhere() {
    let items = (0..50).map(|number| member(&format!("dp-{number:02}"), 0)).collect();
    let base = after(model(), [answered(0, Fleet { items, ..fleet() })].into_iter().chain(keys("jll")));
    for binding in BINDINGS {
        for &key in binding.keys {
            // Leaving a level needs one to leave.
            let start = if binding.command == Command::Back { after(base.clone(), keys("\n")) } else { base.clone() };
            let mut changed = start.clone();
            let actions = update(&mut changed, Event::Key(key));
            let differs = format!("{changed:?}") != format!("{start:?}");
            assert!(differs || !actions.is_empty(), "{key:?} of {}", binding.label);
        }
    }
}

#[test]
fn names_cannot_command_the_terminal() {
    let mut hostile = fleet();
    hostile.items[0].name = "\x1b[2Jboo\u{7}".into();
    hostile.items[0].last_error = Some("line\nbreak\x1b]0;title\x07".into());
    let model = after(model(), [answered(0, hostile)]);
    for (width, height) in [(120, 40), (40, 10)] {
        assert!(!frame_text(&model, width, height).contains('\x1b'));
    }
}
