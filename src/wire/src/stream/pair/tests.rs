//! What both ends come to, whatever happens between them.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn withheld() -> Option<Withheld> {
    Some(Withheld { status: "plugin_set_incompatible".to_owned(), words: "lacks acl".to_owned() })
}

#[test]
fn a_node_without_anything_gets_a_copy_and_then_only_changes() {
    let mut pair = Pair::new(1);
    (1..20).for_each(|row| pair.change(row, Some(row + 50)));
    pair.run(SECOND * 3);
    assert!(pair.is_in_sync());
    assert_eq!((pair.copies, pair.applies), (1, 1));
    for row in 0..10 {
        pair.change(row, Some(100 + row));
        pair.run(SECOND);
        assert!(pair.is_in_sync());
    }
    assert_eq!((pair.copies, pair.applies), (1, 11), "a change each");
}

#[test]
fn a_change_arrives_within_a_trip_of_the_network() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    let begun = pair.now;
    pair.change(1, Some(1));
    while !pair.is_in_sync() {
        pair.run(Duration::from_millis(1));
    }
    let took = pair.now - begun;
    let trip = pair.latency * 2 + pair.work_time;
    assert!(took <= trip + Duration::from_millis(5), "{took:?}");
}

#[test]
fn a_burst_is_joined_while_the_node_is_busy() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    for number in 0..1000 {
        pair.change(number % 7, Some(20 + number));
        pair.run(Duration::from_millis(1));
    }
    pair.run(SECOND);
    assert!(pair.is_in_sync());
    assert!(pair.applies < 60, "{} applies of 1000 changes", pair.applies);
    assert_eq!(pair.copies, 1);
}

#[test]
fn a_node_that_comes_back_gets_what_it_lacks() {
    for (keeps_disk, copies) in [(true, 1), (false, 2)] {
        let mut pair = Pair::new(1);
        pair.run(SECOND);
        pair.kill_data_plane(keeps_disk);
        (0..9).for_each(|row| pair.change(row, Some(row + 50)));
        pair.run(SECOND * 3);
        assert!(pair.is_in_sync());
        assert_eq!(pair.copies, copies);
    }
}

#[test]
fn a_bad_change_is_refused_and_the_next_good_one_leads_on() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    pair.change(1, Some(BAD));
    pair.run(SECOND);
    assert_eq!((pair.refusals, pair.disk.held.as_ref().unwrap().version), (1, 1));
    pair.run(SECOND * 60);
    assert_eq!(pair.refusals, 1, "it is not sent again and again");
    pair.change(2, Some(2));
    pair.run(SECOND);
    assert_eq!(pair.refusals, 2, "joined, so still bad");
    pair.change(1, Some(1));
    pair.run(SECOND);
    assert!(pair.is_in_sync());
    assert_eq!(pair.copies, 1);
}

#[test]
fn a_full_disk_is_tried_again_by_itself() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    pair.disk_full = true;
    pair.change(1, Some(1));
    pair.run(SECOND * 25);
    assert!((2..5).contains(&pair.refusals), "{}", pair.refusals);
    pair.disk_full = false;
    pair.run(SECOND * 11);
    assert!(pair.is_in_sync());
}

#[test]
fn damage_is_healed_by_a_copy() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    pair.disk.rows.insert(99, 99);
    pair.disk.damaged = true;
    pair.change(1, Some(1));
    pair.run(COPY_PAUSE + SECOND);
    assert!(pair.is_in_sync());
    assert_eq!(pair.copies, 2);
}

#[test]
fn a_store_that_was_restored_under_its_name_is_noticed_by_the_digest() {
    let mut pair = Pair::new(1);
    pair.change(1, Some(1));
    let older = pair.store.clone();
    pair.change(2, Some(2));
    pair.run(SECOND);
    pair.restore(older);
    // Version 3 again, but another one.
    pair.change(3, Some(3));
    pair.run(SECOND * 3);
    assert!(pair.is_in_sync());
    assert_eq!(pair.copies, 2);
}

#[test]
fn another_store_with_the_same_rows_costs_no_copy() {
    let mut pair = Pair::new(1);
    pair.change(1, Some(1));
    pair.run(SECOND);
    let mut other = Store::new(2);
    (0..2).for_each(|row| other.change(row, Some(7)));
    (0..2).for_each(|row| other.change(row, Some(row)));
    pair.restore(other);
    pair.run(SECOND * 3);
    assert!(pair.is_in_sync());
    assert_eq!(pair.copies, 1);
    pair.change(5, Some(5));
    pair.run(SECOND);
    assert!(pair.is_in_sync());
}

#[test]
fn what_is_withheld_is_sent_once_it_may_be() {
    let mut pair = Pair::new(1);
    pair.judge(withheld());
    pair.run(SECOND * 2);
    assert_eq!(pair.disk.held, None);
    pair.judge(None);
    pair.run(SECOND);
    assert!(pair.is_in_sync());
    pair.judge(withheld());
    pair.change(1, Some(1));
    pair.run(SECOND * 30);
    assert!(!pair.is_in_sync());
    pair.judge(None);
    pair.run(SECOND);
    assert!(pair.is_in_sync());
    assert_eq!(pair.copies, 1);
}

#[test]
fn a_half_open_connection_is_given_up_after_four_heartbeats() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    pair.vanish();
    pair.change(1, Some(1));
    pair.run(HEARTBEAT * 4 + SECOND * 3);
    assert!(pair.is_in_sync());
}

#[test]
fn a_quiet_connection_is_kept() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    let store = pair.store.name();
    pair.run(SECOND * 3600);
    assert!(pair.dp.is_some() && pair.cp.is_some());
    assert_eq!((pair.applies, store), (1, pair.store.name()));
}

#[test]
fn a_node_keeps_away_for_as_long_as_it_is_asked_to() {
    let mut pair = Pair::new(1);
    pair.run(SECOND);
    pair.stop_control_plane(SECOND * 7);
    pair.run(SECOND);
    assert_eq!(pair.farewell, Some(SECOND * 7));
    pair.run(SECOND * 5);
    assert!(pair.dp.is_none());
    pair.run(SECOND * 3);
    assert!(pair.dp.is_some());
    pair.stop_control_plane(SECOND * 100_000);
    pair.run(SECOND);
    assert_eq!(pair.farewell, Some(super::super::LONGEST_FAREWELL));
}

#[test]
fn what_a_connection_before_still_brings_says_nothing_about_the_node() {
    let mut pair = Pair::new(3);
    pair.run(SECOND);
    pair.change(1, Some(1));
    pair.run(Duration::from_millis(70));
    // The report of version 2 is on its way and will be for long.
    for (at, _) in &mut pair.to_cp {
        *at += SECOND * 10;
    }
    pair.cut_for_data_plane();
    pair.run(SECOND * 3);
    pair.change(1, Some(2));
    pair.run(SECOND);
    assert!(pair.is_in_sync() && pair.late_reports == 0);
    pair.run(SECOND * 20);
    assert!(pair.is_in_sync() && pair.late_reports == 1, "{}", pair.late_reports);
    assert!(pair.past.is_empty());
}

#[test]
fn a_clock_that_jumps_ends_a_connection_at_most() {
    for of_data_plane in [true, false] {
        let mut pair = Pair::new(1);
        pair.run(SECOND);
        pair.jump(of_data_plane, SECOND * 86_400);
        pair.change(1, Some(1));
        pair.run(SECOND * 3);
        assert!(pair.is_in_sync());
        assert_eq!(pair.copies, 1);
    }
}
