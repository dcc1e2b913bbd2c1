//! Whole screens at fixed sizes, compared with the files in `screens/`.

use super::{after, answered, fleet, keys, model, options, sized};
use crate::{Event, Fault, Model, frame_text};
use std::path::PathBuf;

/// Compares a screen with its file; `GWCTL_ACCEPT=1` writes the file instead.
fn same(name: &str, model: Model, width: u16, height: u16) {
    let model = after(model, [sized(width, height)]);
    let text = frame_text(&model, width, height);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/tests/screens").join(format!("{name}.txt"));
    if std::env::var_os("GWCTL_ACCEPT").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} is now:\n{text}\nexpected:\n{expected}\nGWCTL_ACCEPT=1 accepts it");
}

fn seen() -> Model {
    after(model(), [answered(1000, fleet())])
}

fn lost() -> Model {
    let fault = Fault { reason: "connection refused".into() };
    let failed = Event::Answer { now: 35_000, fleet: Err(fault) };
    after(seen(), [failed])
}

#[test]
fn the_fleet_fits_eighty_columns() {
    same("fleet-80x24", seen(), 80, 24);
}

#[test]
fn the_fleet_shows_addresses_and_labels_where_there_is_room() {
    same("fleet-120x40", seen(), 120, 40);
}

#[test]
fn the_fleet_in_plain_ascii_has_no_other_characters() {
    let plain = Model::new(crate::Options { ascii: true, ..options() });
    let plain = after(plain, [answered(1000, fleet())]);
    assert!(frame_text(&plain, 200, 30).is_ascii());
    same("fleet-ascii-80x24", plain, 80, 24);
}

#[test]
fn the_reason_of_a_failure_is_there_to_its_end_in_a_narrow_terminal() {
    let reason = "no connection to the Admin API at http://control-plane.example:8001: Connection refused";
    for begun in [model(), seen()] {
        let fault = Fault { reason: reason.into() };
        let failed = after(begun, [sized(60, 15), Event::Answer { now: 35_000, fleet: Err(fault) }]);
        let text = frame_text(&failed, 60, 15);
        assert!(text.contains("Connection refused") && text.contains("q quit"), "{text}");
    }
}

#[test]
fn a_note_of_the_caller_stands_above_the_keys() {
    let noted = Model::new(crate::Options { note: Some("q stops the cluster".into()), ..options() });
    let noted = after(noted, [answered(1000, fleet()), sized(80, 12)]);
    let text = frame_text(&noted, 80, 12);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[10] == "q stops the cluster" && lines[11].contains("q quit"), "{text}");
}

#[test]
fn a_whole_model_cuts_nothing() {
    let mut fleet = fleet();
    let long = "a reason that is far longer than any column of the screen may be, to its very end";
    fleet.items[0].last_error = Some(long.into());
    let whole = Model::new(crate::Options { whole: true, ..options() });
    let whole = after(whole, [answered(1000, fleet)]);
    let text = frame_text(&whole, crate::whole_width(&whole), 30);
    assert!(text.contains(long) && !text.contains('…'), "{text}");
}

#[test]
fn a_narrow_terminal_shows_one_column_with_the_worst_first() {
    same("fleet-40x10", seen(), 40, 10);
}

#[test]
fn a_terminal_too_small_shows_the_counts() {
    same("fleet-30x2", seen(), 30, 2);
}

#[test]
fn lost_control_planes_leave_the_data_with_its_age() {
    same("lost-80x24", lost(), 80, 24);
}

#[test]
fn a_control_plane_that_never_answered_is_named_with_the_reason() {
    let failed = Event::Answer { now: 10, fleet: Err(Fault { reason: "connection refused".into() }) };
    same("never-80x24", after(model(), [failed]), 80, 24);
}

#[test]
fn the_detail_tells_all() {
    same("detail-80x24", after(seen(), keys("j\n")), 80, 24);
}

#[test]
fn the_help_lists_every_key() {
    same("help-80x40", after(seen(), keys("?")), 80, 40);
}

#[test]
fn a_filter_says_how_many_are_hidden() {
    same("filter-80x24", after(seen(), keys("/behind\n")), 80, 24);
}
