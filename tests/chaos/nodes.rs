//! The nodes fail.

use super::{World, Writer, random, times};
use gwctl_testkit::{Node, wait_until};
use std::process::Command;

fn signal(node: &Node, name: &str) {
    assert!(Command::new("kill").args([name, &node.id().to_string()]).status().unwrap().success());
}

/// Lets the writer do a random number of changes.
fn some_changes(writer: &Writer, random: &mut gwctl_testkit::Random) {
    let wanted = writer.acknowledged() + 1 + random.below(25);
    wait_until("some changes", || writer.acknowledged() >= wanted);
}

#[test]
fn a_data_plane_killed_while_it_applies_has_the_one_or_the_other_and_catches_up() {
    let mut world = World::start(1);
    let mut random = random("data plane");
    let writer = Writer::start(world.cp.admin());
    for _ in 0..times() {
        some_changes(&writer, &mut random);
        world.links[0].dp.kill();
        world.links[0].dp.restart();
    }
    world.holds(&writer.stop());
}

#[test]
fn a_control_plane_killed_while_it_pushes_has_lost_nothing_it_acknowledged() {
    let mut world = World::start(1);
    let mut random = random("control plane");
    let writer = Writer::start(world.cp.admin());
    for _ in 0..times().div_ceil(2) {
        some_changes(&writer, &mut random);
        world.cp.kill();
        world.cp.restart();
    }
    world.holds(&writer.stop());
}

#[test]
fn a_node_that_is_stopped_and_continued_goes_on_where_it_was() {
    let world = World::start(1);
    let mut random = random("stopped");
    for number in 0..times().div_ceil(3) {
        let writer = Writer::start(world.cp.admin());
        some_changes(&writer, &mut random);
        if number % 2 == 0 {
            signal(&world.links[0].dp, "-STOP");
            some_changes(&writer, &mut random);
            signal(&world.links[0].dp, "-CONT");
        } else {
            signal(&world.cp, "-STOP");
            signal(&world.cp, "-CONT");
        }
        world.holds(&writer.stop());
    }
}
