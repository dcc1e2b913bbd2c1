//! The wire fails.

use super::{Random, World, Writer, times};
use gwctl_testkit::wait_until;
use std::time::{Duration, Instant};

#[test]
fn a_link_cut_at_any_byte_while_writing_loses_and_doubles_nothing() {
    let world = World::start();
    let mut random = Random::new("cuts");
    let writer = Writer::start(world.cp.admin());
    for _ in 0..times() {
        // From the first bytes of a handshake to many changes later.
        let bytes = [1 + random.below(400), random.below(4000), random.below(40_000)][random.below(3) as usize];
        let dials = world.relay.connections();
        world.relay.cut_after(bytes);
        wait_until("the link to be cut", || world.relay.is_cut());
        wait_until("the data plane to dial again", || world.relay.connections() > dials);
    }
    world.holds(&writer.stop());
}

#[test]
fn a_link_that_looks_open_while_nothing_moves_is_given_up_and_made_up_for() {
    let world = World::start();
    for _ in 0..times().div_ceil(6) {
        let writer = Writer::start(world.cp.admin());
        world.relay.hold(true);
        wait_until("changes to be waiting", || writer.acknowledged() > 20);
        let (version, row) = world.row();
        assert!(row["applied_version"].as_u64() < Some(version), "nothing got through: {row}");
        let dials = world.relay.connections();
        wait_until("the data plane to give the link up", || {
            // The wire works again, but this link never will.
            world.relay.connections() > dials
        });
        world.relay.cut();
        world.relay.hold(false);
        world.holds(&writer.stop());
    }
}

#[test]
fn a_control_plane_that_cannot_be_reached_for_a_while_is_found_again() {
    let world = World::start();
    let writer = Writer::start(world.cp.admin());
    world.relay.refuse(true);
    world.relay.cut();
    let began = Instant::now();
    wait_until("changes to be waiting", || writer.acknowledged() > 50 && began.elapsed() > Duration::from_secs(3));
    world.relay.refuse(false);
    world.holds(&writer.stop());
}
