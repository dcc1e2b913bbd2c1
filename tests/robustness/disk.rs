//! Disks without room: what cannot be kept is refused, what was acknowledged stays, the node goes on.

use super::{GWCTL, assert_no_panic, assert_says, is_well};
use gwctl_testkit::{Answer, Cluster, Node, Upstream, get, post, wait_until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
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

/// The program under a limit of the length of its files, in blocks of 512 or 1024 bytes: to be without room needs no
/// rights of the machine. The limit is a soft one, which is lifted without rights as well.
fn with_file_limit(cluster: &Cluster, blocks: u32) -> PathBuf {
    let path = cluster.path("limited");
    std::fs::write(&path, format!("#!/bin/sh\nulimit -S -f {blocks}\nexec {GWCTL} \"$@\"\n")).unwrap();
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, runnable).unwrap();
    path
}

fn lift_file_limit(node: &Node) {
    let process = Pid::from_raw(i32::try_from(node.id()).unwrap());
    let none = Rlimit { current: None, maximum: None };
    prlimit(process, Resource::Fsize, none).unwrap();
}

/// Writes services from this number on until one is refused; the number of that one, and the refusal.
fn write_until_refused(port: u16, first: usize) -> (usize, Answer) {
    for number in first..20_000 {
        let answer = post(port, "/services", &service(number));
        if answer.status != 201 {
            return (number, answer);
        }
    }
    panic!("there is room without end");
}

fn has_all(port: u16, count: usize) -> bool {
    (0..count).all(|number| get(port, &format!("/services/s{number}")).status == 200)
}

/// What an operator reads: which folder, how much room there is, what to do.
const WITHOUT_ROOM: [&str; 4] =
    ["the store cannot be written", "bytes are free there", "ulimit -f", "nothing acknowledged is lost"];

#[test]
fn a_control_plane_without_room_refuses_writes_loses_nothing_and_goes_on_when_there_is_some() {
    let cluster = Cluster::new(GWCTL);
    let options = cluster.options("cp", "control_plane");
    let mut cp = Node::start(&with_file_limit(&cluster, 1600), &options);
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let upstream = Upstream::start();
    let echo = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &echo).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/before"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/before").status == 200);
    let (acknowledged, refusal) = write_until_refused(cp.admin(), 0);
    assert!(acknowledged > 20, "only {acknowledged} fitted");
    assert_eq!(refusal.status, 507, "{}", refusal.body);
    assert_says(&refusal.body, &["nothing was changed", "free space"]);
    assert_says(&cp.log(), &WITHOUT_ROOM);
    assert_says(&cp.log(), &[&options.prefix.join("store").display().to_string()]);
    assert!(has_all(cp.admin(), acknowledged), "reads are answered without room");
    assert_eq!(get(cp.admin(), &format!("/services/s{acknowledged}")).status, 404, "the refused one is not there");
    let in_sync = |cp: &Node| {
        let fleet = get(cp.admin(), "/gwctl/fleet").json();
        fleet["items"][0]["applied_version"] == fleet["version"]
            && fleet["items"][0]["config_hash"] == fleet["config_hash"]
    };
    wait_until("the data plane to have all that was acknowledged", || in_sync(&cp));
    is_well(&cp);

    cp.kill();
    cp.restart();
    assert!(has_all(cp.admin(), acknowledged), "a node starts and reads without room");
    // Pages that nobody reads any more may hold a few.
    let (acknowledged, refusal) = write_until_refused(cp.admin(), acknowledged);
    assert_eq!(refusal.status, 507, "{}", refusal.body);

    lift_file_limit(&cp);
    assert_eq!(post(cp.admin(), "/services", &service(acknowledged)).status, 201, "with room it goes on");
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/after"]})).status, 201);
    wait_until("the data plane to catch up", || get(dp.proxy(), "/after").status == 200);
    wait_until("the fleet to be in sync", || in_sync(&cp));
    assert!(has_all(cp.admin(), acknowledged + 1));
    assert_no_panic(&cp);
    assert_no_panic(&dp);
}

#[test]
fn a_data_plane_without_room_keeps_what_it_serves_and_catches_up_when_there_is_some() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let options = cluster.options("dp", "data_plane");
    let mut dp = Node::start(&with_file_limit(&cluster, 1600), &options);
    let echo = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &echo).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/before"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/before").status == 200);
    let mut written = 0;
    wait_until("the cache to be without room", || {
        let create = |number| json!({"action": "create", "entity": "services", "body": service(number)});
        let operations: Vec<Value> = (written..written + 100).map(create).collect();
        written += 100;
        assert_eq!(post(cp.admin(), "/gwctl/changes", &json!({ "operations": operations })).status, 200);
        dp.log().contains("cannot store the configuration")
    });
    assert_says(&dp.log(), &WITHOUT_ROOM[1..]);
    assert_says(&dp.log(), &[&options.prefix.join("dbless.lmdb").display().to_string()]);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/after"]})).status, 201);
    assert_eq!(get(dp.proxy(), "/before").status, 200, "the configuration before is served");
    is_well(&dp);

    dp.kill();
    dp.restart();
    assert_eq!(get(dp.proxy(), "/before").status, 200, "and found again by a start without room");
    lift_file_limit(&dp);
    wait_until("the newest configuration without another change", || get(dp.proxy(), "/after").status == 200);
    dp.kill();
    dp.restart();
    assert_eq!(get(dp.proxy(), "/after").status, 200, "from the cache");
    assert_no_panic(&dp);
}

#[test]
fn the_largest_size_of_a_store_is_a_setting_and_raised_by_a_restart() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let (wide, narrow) = (cluster.options("cp", "control_plane"), cluster.options("dp", "data_plane"));
    let mut cp = cluster.start(&wide.clone().set("lmdb_map_size", "1m"));
    let mut dp = cluster.start(&narrow.clone().set("lmdb_map_size", "640k"));
    let echo = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &echo).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/before"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/before").status == 200);
    let (acknowledged, refusal) = write_until_refused(cp.admin(), 0);
    assert_eq!(refusal.status, 507, "{}", refusal.body);
    assert_says(&refusal.body, &["nothing was changed", "its limit of 1048576 bytes", "lmdb_map_size"]);
    assert!(has_all(cp.admin(), acknowledged));
    is_well(&cp);
    cp.kill();
    cp = cluster.start(&wide);
    assert!(has_all(cp.admin(), acknowledged));
    for number in acknowledged..acknowledged + 800 {
        assert_eq!(post(cp.admin(), "/services", &service(number)).status, 201);
    }
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/after"]})).status, 201);
    wait_until("the cache to be full", || dp.log().contains("its limit of 655360 bytes; raise lmdb_map_size"));
    assert_eq!(get(dp.proxy(), "/before").status, 200, "the configuration before is served");
    is_well(&dp);
    dp.kill();
    dp = cluster.start(&narrow);
    wait_until("the data plane to catch up", || get(dp.proxy(), "/after").status == 200);
    assert_no_panic(&dp);
    assert_no_panic(&cp);
}
