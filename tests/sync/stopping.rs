//! A control plane that stops on purpose.

use super::fleet;
use gwctl_testkit::wait_until;

#[test]
fn a_control_plane_that_stops_says_goodbye_to_nodes_of_both_protocols() {
    let mut fleet = fleet(1);
    let old = fleet.cluster.start(&fleet.cluster.options("old", "data_plane"));
    fleet.dps.push(old);
    fleet.route("/x");
    fleet.serves("/x", 200);
    assert!(fleet.cp.stop().success());
    for dp in &fleet.dps {
        wait_until("the goodbye to be heard", || dp.log().contains("the control plane closed the connection"));
        let log = dp.log();
        let before = log.split("the control plane closed the connection").next().unwrap_or_default();
        assert!(!before.contains("no connection to control plane"), "its end is no failure:\n{log}");
        assert_eq!(dp.ask("/x").status, 200);
    }
    fleet.cp.restart();
    fleet.route("/y");
    fleet.serves("/y", 200);
}
