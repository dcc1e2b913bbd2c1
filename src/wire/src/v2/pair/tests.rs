//! What the two machines do together over hours and days.

use super::*;
use crate::backoff::LONGEST_DELAY;
use crate::v2::SILENCE_LIMIT;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// The Kong versions of a data plane that stand for the two dialects.
const DIALECTS: [&str; 2] = ["3.9.1", "3.10.0"];

fn synced() -> Pair {
    synced_as(DIALECTS[0])
}

fn synced_as(kong: &str) -> Pair {
    let mut pair = Pair::new(1, kong);
    pair.run(SECOND * 2);
    assert!(pair.is_in_sync());
    pair
}

#[test]
fn a_node_is_in_sync_within_two_seconds_of_its_start() {
    let pair = synced();
    assert_eq!(pair.tally, Tally { dials: 1, connects: 1, pulls: 2, notifications: 0, fulls: 1, applies: 1 });
}

#[test]
fn a_change_costs_one_notification_and_two_pulls() {
    let mut pair = synced();
    pair.change(1, Some(1));
    pair.run(SECOND);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally, Tally { dials: 1, connects: 1, pulls: 4, notifications: 1, fulls: 1, applies: 2 });
}

#[test]
fn a_node_of_kong_3_10_is_sent_everything_at_each_change_and_nothing_between() {
    let mut pair = synced_as(DIALECTS[1]);
    pair.change(1, Some(1));
    pair.run(SECOND);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally, Tally { dials: 1, connects: 1, pulls: 4, notifications: 1, fulls: 2, applies: 2 });
    pair.run(DAY);
    assert_eq!((pair.tally.connects, pair.tally.fulls, pair.tally.applies), (1, 2, 2));
}

#[test]
fn an_idle_day_keeps_one_connection_and_pulls_twice_in_half_a_minute() {
    let mut pair = synced();
    pair.run(DAY);
    assert_eq!((pair.tally.connects, pair.tally.applies), (1, 1));
    assert!((2 * 86_400 / 35..=2 * 86_400 / 25).contains(&pair.tally.pulls), "{:?}", pair.tally);
}

#[test]
fn a_burst_of_changes_arrives_in_few_pulls() {
    let mut pair = synced();
    for row in 1..=100 {
        pair.change(row, Some(row));
    }
    pair.run(SECOND * 3);
    assert!(pair.is_in_sync());
    assert!(pair.tally.pulls <= 8 && pair.tally.notifications <= 3, "{:?}", pair.tally);
    assert_eq!(pair.tally.fulls, 1);
}

#[test]
fn changes_while_the_node_is_away_arrive_as_changes_or_at_once_if_the_log_forgot_them() {
    for forgotten in [false, true] {
        let mut pair = synced();
        pair.cut();
        pair.change(1, Some(1));
        pair.change(0, None);
        if forgotten {
            pair.store.forget();
        }
        pair.run(SECOND * 12);
        assert!(pair.is_in_sync());
        assert_eq!((pair.tally.connects, pair.tally.fulls), (2, 1 + u32::from(forgotten)));
    }
}

#[test]
fn both_ends_notice_a_connection_that_vanished() {
    let mut pair = synced();
    pair.network.vanish();
    pair.change(1, Some(1));
    pair.run(SILENCE_LIMIT + SECOND * 12);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally.connects, 2);
}

#[test]
fn an_apply_that_takes_longer_than_a_call_may_still_counts() {
    let mut pair = synced();
    pair.apply_time = SECOND * 40;
    pair.change(1, Some(1));
    pair.run(SECOND * 45);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally.connects, 1);
}

#[test]
fn a_control_plane_gone_for_days_is_asked_for_at_most_once_a_half_minute() {
    let mut pair = synced();
    pair.set_control_plane(false);
    pair.run(DAY * 3);
    assert!((3 * 1440..=3 * 2880 + 5).contains(&pair.tally.dials), "{:?}", pair.tally);
    pair.set_control_plane(true);
    pair.change(1, Some(1));
    pair.run(LONGEST_DELAY + SECOND * 2);
    assert!(pair.is_in_sync());
}

#[derive(Debug, Clone)]
enum Act {
    Change(u64, Option<u64>),
    Forget,
    Cut,
    Vanish,
    Stall(u64),
    ControlPlane(bool),
    Latency(u64),
    ApplyTime(u64),
    Run(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0_u64..9, proptest::option::of(0_u64..9)).prop_map(|(row, value)| Act::Change(row, value)),
        1 => Just(Act::Forget),
        1 => Just(Act::Cut),
        1 => Just(Act::Vanish),
        1 => (0_u64..90_000).prop_map(Act::Stall),
        1 => any::<bool>().prop_map(Act::ControlPlane),
        1 => (1_u64..3_000).prop_map(Act::Latency),
        1 => (1_u64..70_000).prop_map(Act::ApplyTime),
        6 => (0_u64..60_000).prop_map(Act::Run),
    ]
}

proptest! {
    /// Whatever happened, a few minutes of a working network bring both ends together.
    #[test]
    fn both_ends_agree_once_the_network_works_again(
        seed: u64,
        kong in proptest::sample::select(&DIALECTS),
        acts in proptest::collection::vec(act(), 0..60),
    ) {
        let mut pair = Pair::new(seed, kong);
        for act in acts {
            match act {
                Act::Change(row, value) => pair.change(row, value),
                Act::Forget => pair.store.forget(),
                Act::Cut => pair.cut(),
                Act::Vanish => pair.network.vanish(),
                Act::Stall(millis) => pair.network.stall(Duration::from_millis(millis)),
                Act::ControlPlane(up) => pair.set_control_plane(up),
                Act::Latency(millis) => pair.network.latency = Duration::from_millis(millis),
                Act::ApplyTime(millis) => pair.apply_time = Duration::from_millis(millis),
                Act::Run(millis) => pair.run(Duration::from_millis(millis)),
            }
        }
        // A configuration without any row carries no version; real ones have the default workspace.
        pair.change(99, Some(99));
        pair.control_plane_up = true;
        pair.network.latency = Duration::from_millis(20);
        pair.apply_time = Duration::from_millis(300);
        // An apply that began with a long time may still run, and a stall may still last.
        pair.run(SECOND * 90);
        pair.run(SILENCE_LIMIT + LONGEST_DELAY + SECOND * 40);
        prop_assert!(pair.is_in_sync(), "seed {}: {:?}, {:?}, dp {}", seed, pair.tally, pair.seen, pair.dp.version());
    }
}
