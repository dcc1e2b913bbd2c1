//! Disks without room: what cannot be kept is refused, what was acknowledged stays, the node goes on.

use super::{GWCTL, assert_no_panic, assert_says, is_well};
use gwctl_testkit::{Cluster, Upstream, get, post, wait_until};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory that goes with the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// None, with a word on stderr, where mounting is not permitted.
    fn mount(path: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: this user cannot mount a tmpfs");
            return None;
        }
        Some(Self(path.to_owned()))
    }

    fn resize(&self, size: &str) {
        let done = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0).status().unwrap();
        assert!(done.success());
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn clear(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn service(number: usize) -> Value {
    json!({"name": format!("s{number}"), "host": "h.test", "tags": ["x".repeat(500)]})
}

#[test]
fn a_full_disk_refuses_writes_and_loses_nothing() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let Some(disk) = SmallDisk::mount(&cluster.path("disk"), "1m") else { return };
    let mut options = cluster.options("node", "traditional");
    options.prefix = cluster.path("disk/node");
    let mut node = cluster.start(&options);
    let echo = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(node.admin(), "/services", &echo).status, 201);
    assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"paths": ["/echo"]})).status, 201);
    wait_until("the route to answer", || get(node.proxy(), "/echo").status == 200);

    let (mut acknowledged, mut refusal) = (0, None);
    while refusal.is_none() && acknowledged < 5000 {
        let answer = post(node.admin(), "/services", &service(acknowledged));
        match answer.status {
            201 => acknowledged += 1,
            _ => refusal = Some(answer),
        }
    }
    let refusal = refusal.expect("the disk is full at some time");
    assert!(acknowledged > 20, "only {acknowledged} fitted");
    assert_eq!(refusal.status, 507, "{}", refusal.body);
    assert_says(&refusal.body, &["nothing was changed", "disk", "full", "free space"]);
    assert!(!refusal.body.contains("/disk/"), "{}", refusal.body);
    assert_says(&node.log(), &["the store cannot be written", "disk/node"]);

    let all_there = |port: u16| {
        let mut next = "/services?size=1000".to_owned();
        let mut names = std::collections::BTreeSet::new();
        loop {
            let page = get(port, &next).json();
            names.extend(page["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(path) => next = path.to_owned(),
                None => return (0..acknowledged).all(|number| names.contains(&format!("s{number}"))),
            }
        }
    };
    assert!(all_there(node.admin()), "reads are answered on a full disk");
    assert_eq!(get(node.proxy(), "/echo").status, 200, "the proxy goes on");
    assert_eq!(get(node.admin(), &format!("/services/s{acknowledged}")).status, 404, "the refused one is not there");
    is_well(&node);

    node.kill();
    node.restart();
    assert!(all_there(node.admin()), "a node starts and reads on a full disk");
    assert_eq!(get(node.proxy(), "/echo").status, 200);

    disk.resize("8m");
    assert_eq!(post(node.admin(), "/services", &service(acknowledged)).status, 201, "with room it goes on");
    node.kill();
    node.restart();
    assert!(all_there(node.admin()));
    assert_eq!(get(node.admin(), &format!("/services/s{acknowledged}")).status, 200);
    assert_no_panic(&node);
    drop(node);
}

#[test]
fn a_data_plane_with_a_full_disk_keeps_what_it_serves_and_catches_up_when_there_is_room() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let Some(disk) = SmallDisk::mount(&cluster.path("disk"), "2m") else { return };
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let mut options = cluster.options("dp", "data_plane");
    options.prefix = cluster.path("disk/dp");
    let mut dp = cluster.start(&options);
    let echo = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &echo).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/before"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/before").status == 200);

    disk.fill();
    for number in 0..60 {
        assert_eq!(post(cp.admin(), "/services", &service(number)).status, 201);
    }
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/after"]})).status, 201);
    wait_until("the refusal to be logged", || dp.log().contains("cannot store the configuration"));
    assert_says(&dp.log(), &["free space on the disk", "disk/dp"]);
    assert_eq!(get(dp.proxy(), "/before").status, 200, "the old configuration is served");
    is_well(&dp);

    disk.clear();
    wait_until("the newest configuration without another change", || get(dp.proxy(), "/after").status == 200);
    dp.kill();
    dp.restart();
    assert_eq!(get(dp.proxy(), "/after").status, 200, "from the cache");
    assert_no_panic(&dp);
    drop(dp);
}
