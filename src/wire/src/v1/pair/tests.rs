//! What the two machines do together over hours and days.

use super::*;
use crate::backoff::LONGEST_DELAY;
use crate::v1::dp_link::SILENCE_LIMIT;
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

fn synced() -> Pair {
    let mut pair = Pair::new(1);
    pair.run(SECOND * 2);
    assert!(pair.is_in_sync());
    pair
}

#[test]
fn a_node_is_in_sync_within_two_seconds_of_its_start() {
    let pair = synced();
    let expected = Tally { dials: 1, connects: 1, pings: 2, pongs: 2, pushes: 1, applies: 1 };
    assert_eq!(pair.tally, expected);
}

#[test]
fn a_day_of_heartbeats_keeps_one_connection() {
    let mut pair = synced();
    pair.run(DAY);
    assert_eq!((pair.tally.connects, pair.tally.pushes), (1, 1));
    assert_eq!(pair.tally.pings, 2 + 2880);
    assert_eq!(pair.tally.pongs, pair.tally.pings);
}

#[test]
fn a_burst_of_changes_arrives_as_its_last_one_in_few_applies() {
    let mut pair = synced();
    pair.network.stall(SECOND);
    for name in 1..=100 {
        pair.change(name);
    }
    pair.run(SECOND * 3);
    assert!(pair.is_in_sync());
    assert!(pair.tally.pushes <= 3 && pair.tally.applies <= 3, "{:?}", pair.tally);
}

#[test]
fn a_change_while_the_node_is_away_is_there_when_it_comes_back() {
    let mut pair = synced();
    pair.cut();
    pair.change(1);
    pair.run(SECOND * 11);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally.connects, 2);
}

#[test]
fn both_ends_notice_a_connection_that_vanished() {
    let mut pair = synced();
    pair.run(SECOND * 60);
    pair.network.vanish();
    pair.change(1);
    pair.run(SILENCE_LIMIT + SECOND * 12);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally.connects, 2);
}

#[test]
fn a_stall_shorter_than_the_limits_is_waited_out() {
    let mut pair = synced();
    pair.change(1);
    pair.network.stall(SECOND * 14);
    pair.run(SECOND * 20);
    assert!(pair.is_in_sync());
    assert_eq!(pair.tally.connects, 1);
}

#[test]
fn a_control_plane_gone_for_days_is_asked_for_at_most_once_a_half_minute() {
    let mut pair = synced();
    pair.set_control_plane(false);
    pair.run(DAY * 3);
    let most = 3 * 2880 + 5;
    assert!((3 * 1440..=most).contains(&pair.tally.dials), "{:?}", pair.tally);
    pair.set_control_plane(true);
    pair.change(1);
    pair.run(LONGEST_DELAY + SECOND * 2);
    assert!(pair.is_in_sync());
}

#[derive(Debug, Clone)]
enum Act {
    Change(u32),
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
        6 => (0_u32..9).prop_map(Act::Change),
        1 => Just(Act::Cut),
        1 => Just(Act::Vanish),
        1 => (0_u64..90_000).prop_map(Act::Stall),
        1 => any::<bool>().prop_map(Act::ControlPlane),
        1 => (1_u64..2_000).prop_map(Act::Latency),
        1 => (1_u64..70_000).prop_map(Act::ApplyTime),
        6 => (0_u64..60_000).prop_map(Act::Run),
    ]
}

proptest! {
    /// Whatever happened, two minutes of a working network bring both ends together: the longest silence, the longest
    /// delay, and some seconds for the payload.
    #[test]
    fn both_ends_agree_once_the_network_works_again(seed: u64, acts in proptest::collection::vec(act(), 0..60)) {
        let mut pair = Pair::new(seed);
        for act in acts {
            match act {
                Act::Change(name) => pair.change(name),
                Act::Cut => pair.cut(),
                Act::Vanish => pair.network.vanish(),
                Act::Stall(millis) => pair.network.stall(Duration::from_millis(millis)),
                Act::ControlPlane(up) => pair.set_control_plane(up),
                Act::Latency(millis) => pair.network.latency = Duration::from_millis(millis),
                Act::ApplyTime(millis) => pair.apply_time = Duration::from_millis(millis),
                Act::Run(millis) => pair.run(Duration::from_millis(millis)),
            }
        }
        pair.control_plane_up = true;
        pair.network.latency = Duration::from_millis(20);
        pair.apply_time = Duration::from_millis(300);
        // An apply that began with a long time may still run, and a stall may still last.
        pair.run(SECOND * 90);
        pair.run(SILENCE_LIMIT + LONGEST_DELAY + SECOND * 15);
        prop_assert!(pair.is_in_sync(), "seed {}: {:?}, {:?}", seed, pair.tally, pair.seen);
    }
}
