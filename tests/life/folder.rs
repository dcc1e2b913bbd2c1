//! A folder is for one node at a time, whatever its role, and commands find the node that runs there and no other.

use crate::reload::gwctl;
use crate::upgrade::Heir;
use crate::{Beside, GWCTL, signal};
use gwctl_testkit::{Cluster, Node, get};

/// Starts a node in a folder that is in use; what it says.
fn refused(cluster: &Cluster, role: &str) -> String {
    let options = cluster.options("node", role);
    let mut node = Node::spawn(cluster.executable(), &options);
    assert_eq!(node.ended().code(), Some(1), "{role}: {}", node.log());
    node.log()
}

#[test]
fn a_second_node_is_refused_whatever_its_role_and_told_the_process_of_the_first() {
    let cluster = Cluster::new(GWCTL);
    let first = cluster.start(&cluster.options("node", "control_plane"));
    let prefix = cluster.path("node");
    let number = || std::fs::read_to_string(prefix.join("gwctl.pid")).unwrap();
    let before = number();
    for role in ["control_plane", "traditional", "data_plane"] {
        let said = refused(&cluster, role);
        assert!(said.contains(&format!("another gwctl (process {}) holds {}", first.id(), prefix.display())), "{said}");
        assert!(said.contains("hint: "), "{said}");
    }
    assert_eq!(number(), before);
    assert_eq!(get(first.admin(), "/status").status, 200);
    signal(first.id(), "USR2");
    let heir = Heir::after(&prefix, first.id());
    let said = refused(&cluster, "data_plane");
    assert!(said.contains(&format!("another gwctl (process {})", heir.0)), "{said}");
}

#[test]
fn the_number_of_a_node_that_was_killed_is_not_signalled() {
    let cluster = Cluster::new(GWCTL);
    let mut node = cluster.start(&cluster.options("node", "traditional"));
    node.kill();
    let prefix = cluster.path("node");
    // Its number belongs to another program by now.
    let mut other = Beside(std::process::Command::new("sleep").arg("600").spawn().unwrap());
    std::fs::write(prefix.join("gwctl.pid"), format!("{}\n", other.0.id())).unwrap();
    for command in ["reload", "upgrade", "quit", "stop"] {
        let (code, said) = gwctl(command, &prefix);
        assert!(code == 1 && said.contains("no node runs in"), "{command}: {said}");
    }
    assert!(other.0.try_wait().unwrap().is_none(), "it was signalled");
}
