//! The wire fails.

use super::{Link, World, Writer, environment, random, times};
use gwctl_testkit::wait_until;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::{Duration, Instant};

/// Data planes whose links are cut at the same time: a link that was cut before it worked is dialed again only after
/// some seconds.
const LINKS: usize = 32;

/// Cuts one link after another until so many were cut in all.
fn cut(link: &Link, left: &AtomicIsize, mut random: gwctl_testkit::Random) {
    while left.fetch_sub(1, Ordering::Relaxed) > 0 {
        // In the handshakes, in the first frames, or some changes later.
        let bytes = match random.below(8) {
            0 => 1 + random.below(4000),
            1..=3 => 4000 + random.below(4000),
            _ => 8000 + random.below(16_000),
        };
        let dials = link.relay.connections();
        link.relay.cut_after(u32::try_from(bytes).unwrap());
        wait_until("the link to be cut", || link.relay.is_cut());
        wait_until("the data plane to dial again", || link.relay.connections() > dials);
    }
}

#[test]
fn a_link_cut_at_any_byte_while_writing_loses_and_doubles_nothing() {
    let cuts = environment("GWCTL_CUTS").unwrap_or(200);
    let world = World::start(LINKS.min(cuts.div_ceil(8)));
    let writer = Writer::paced(world.cp.admin(), Duration::from_millis(30));
    let left = AtomicIsize::new(cuts as isize);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for link in &world.links {
            scope.spawn(|| cut(link, &left, random("cuts")));
        }
    });
    eprintln!("{cuts} cuts and {} changes in {:?}", writer.acknowledged(), began.elapsed());
    world.holds(&writer.stop());
}

#[test]
fn a_link_that_looks_open_while_nothing_moves_is_given_up_and_made_up_for() {
    let world = World::start(1);
    for _ in 0..times().div_ceil(6) {
        let writer = Writer::start(world.cp.admin());
        world.links[0].relay.hold(true);
        wait_until("changes to be waiting", || writer.acknowledged() > 20);
        let (version, _, rows) = world.fleet();
        assert!(rows[0]["applied_version"].as_u64() < Some(version), "nothing got through: {rows:?}");
        let dials = world.links[0].relay.connections();
        wait_until("the data plane to give the link up", || {
            // The wire works again, but this link never will.
            world.links[0].relay.connections() > dials
        });
        world.links[0].relay.cut();
        world.links[0].relay.hold(false);
        world.holds(&writer.stop());
    }
}

#[test]
fn a_control_plane_that_cannot_be_reached_for_a_while_is_found_again() {
    let world = World::start(1);
    let writer = Writer::start(world.cp.admin());
    world.links[0].relay.refuse(true);
    world.links[0].relay.cut();
    let began = Instant::now();
    wait_until("changes to be waiting", || writer.acknowledged() > 50 && began.elapsed() > Duration::from_secs(3));
    world.links[0].relay.refuse(false);
    world.holds(&writer.stop());
}
