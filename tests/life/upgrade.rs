//! SIGUSR2: another process takes over without a lost connection.

use crate::load::{Load, Upgraded, echoing_upstream};
use crate::{GWCTL, route_to, serving, signal, wait_for_log};
use gwctl_testkit::{Answer, Cluster, Node, NodeOptions, Request, get, post, request, wait_until};
use serde_json::json;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The process of a node that has taken over; killed with the test.
pub(crate) struct Heir(pub(crate) u32);

impl Heir {
    /// Waits until another process than this one has signed.
    pub(crate) fn after(prefix: &Path, before: u32) -> Self {
        let mut found = None;
        wait_until("another process to take over", || {
            found = number(prefix).filter(|id| *id != before);
            found.is_some()
        });
        Self(found.expect("found"))
    }

    fn memory_of_name(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/comm", self.0)).unwrap_or_default()
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        // Only while it is still a gwctl: the number may belong to another process by now.
        if self.memory_of_name().starts_with("gwctl") {
            let _ = std::process::Command::new("kill").args(["-KILL", &self.0.to_string()]).status();
        }
    }
}

fn number(prefix: &Path) -> Option<u32> {
    std::fs::read_to_string(prefix.join("gwctl.pid")).ok()?.trim().parse().ok()
}

/// A copy of the program that a test may replace.
fn copy_of_program(cluster: &Cluster) -> PathBuf {
    let program = cluster.path("gwctl");
    std::fs::hard_link(GWCTL, &program).or_else(|_| std::fs::copy(GWCTL, &program).map(drop)).unwrap();
    program
}

fn upgrade(node: &mut Node, prefix: &Path, before: u32) -> Heir {
    signal(before, "USR2");
    let heir = Heir::after(prefix, before);
    if before == node.id() {
        assert!(node.ended().success(), "{}", node.log());
    }
    heir
}

#[test]
fn a_traditional_node_changes_its_binary_under_load_without_a_failed_request() {
    let cluster = Cluster::new(GWCTL);
    let (mut node, _upstream) = serving(&cluster);
    let prefix = cluster.path("node");
    let load = Load::start(node.proxy());
    let first = node.id();
    let heir = upgrade(&mut node, &prefix, first);
    load.wait_for(200);
    // The store went over too: a change made now is served.
    assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"paths": ["/later"]})).status, 201);
    wait_until("the new route to answer", || get(node.proxy(), "/later").status == 200);
    let second = heir.0;
    signal(second, "USR2");
    let heir = Heir::after(&prefix, second);
    load.wait_for(200);
    assert_eq!(get(node.admin(), "/routes").json()["data"].as_array().unwrap().len(), 2);
    let (answered, failures) = load.end();
    assert!(failures.is_empty(), "{failures:?} beside {answered} answers");
    drop(heir);
}

#[test]
fn a_program_that_does_not_start_leaves_the_old_process_as_it_was() {
    let cluster = Cluster::new(GWCTL);
    let upstream = gwctl_testkit::Upstream::start();
    let program = copy_of_program(&cluster);
    let node = Node::start(&program, &cluster.options("node", "traditional"));
    route_to(&node, upstream.port);
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "#!/bin/sh\nexit 7\n").unwrap();
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, runnable).unwrap();
    signal(node.id(), "USR2");
    wait_for_log(&node, "no other process has taken over, this one goes on");
    assert_eq!(get(node.proxy(), "/echo").status, 200);
    assert_eq!(get(node.admin(), "/status").status, 200);
}

#[test]
fn settings_that_are_wrong_keep_the_new_process_from_taking_over_and_are_told() {
    let cluster = Cluster::new(GWCTL);
    let file = cluster.path("kong.conf");
    std::fs::write(&file, "log_level = notice\n").unwrap();
    let options = cluster.options("node", "traditional");
    let node = start_with_file(&options, &file);
    std::fs::write(&file, "log_level = loud\n").unwrap();
    signal(node.id(), "USR2");
    wait_for_log(&node, "expected one of debug");
    wait_for_log(&node, "this one goes on");
    assert_eq!(get(node.status(), "/status").status, 200);
}

pub(crate) fn start_with_file(options: &NodeOptions, file: &Path) -> Node {
    // The settings file is named by the wrapper: the test's nodes are configured by variables alone.
    let wrapper = options.prefix.with_extension("sh");
    std::fs::write(&wrapper, format!("#!/bin/sh\nexec {GWCTL} \"$@\" -c {}\n", file.display())).unwrap();
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&wrapper, runnable).unwrap();
    Node::start(&wrapper, options)
}

#[test]
fn a_data_plane_changes_its_binary_and_its_websockets_get_the_time_to_drain() {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane"));
    let options = cluster.options("dp", "data_plane").set("shutdown_grace", 3600);
    let mut dp = cluster.start(&options);
    let upstream = gwctl_testkit::Upstream::start();
    for (name, port) in [("echo", upstream.port), ("socket", echoing_upstream())] {
        let service = json!({"name": name, "host": "127.0.0.1", "port": port});
        assert_eq!(post(cp.admin(), "/services", &service).status, 201);
        let route = json!({"paths": [format!("/{name}")]});
        assert_eq!(post(cp.admin(), &format!("/services/{name}/routes"), &route).status, 201);
    }
    wait_until("the routes to answer", || ["/echo", "/socket"].iter().all(|path| get(dp.proxy(), path).status == 200));
    let mut socket = Upgraded::open(dp.proxy(), "/socket");
    let load = Load::start(dp.proxy());
    let before = dp.id();
    signal(before, "USR2");
    let heir = Heir::after(&cluster.path("dp"), before);
    load.wait_for(200);
    assert!(socket.echoes(), "the socket stays with the old process");
    assert!(!dp.has_ended());
    // The link went over: the new process is configured by the control plane.
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/later"]})).status, 201);
    wait_until("the new route to answer", || get(dp.proxy(), "/later").status == 200);
    assert!(socket.echoes());
    drop(socket);
    assert!(dp.ended().success(), "{}", dp.log());
    let (answered, failures) = load.end();
    assert!(failures.is_empty(), "{failures:?} beside {answered} answers");
    drop(heir);
}

#[test]
fn a_control_plane_hands_its_store_and_its_data_planes_over() {
    let cluster = Cluster::new(GWCTL);
    let mut cp = cluster.start(&cluster.options("cp", "control_plane"));
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let upstream = gwctl_testkit::Upstream::start();
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/echo"]})).status, 201);
    wait_until("the route to answer", || get(dp.proxy(), "/echo").status == 200);
    let load = Load::start(dp.proxy());
    let before = cp.id();
    let heir = upgrade(&mut cp, &cluster.path("cp"), before);
    assert_eq!(post(cp.admin(), "/services/echo/routes", &json!({"paths": ["/later"]})).status, 201);
    wait_until("the change to reach the data plane", || get(dp.proxy(), "/later").status == 200);
    let (answered, failures) = load.end();
    assert!(failures.is_empty(), "{failures:?} beside {answered} answers");
    drop(heir);
}

#[test]
fn a_supervisor_hears_who_serves_and_that_the_node_stops() {
    let cluster = Cluster::new(GWCTL);
    let (ears, path) = (cluster.path("notify"), cluster.path("node"));
    let socket = std::os::unix::net::UnixDatagram::bind(&ears).unwrap();
    socket.set_read_timeout(Some(gwctl_testkit::LIMIT)).unwrap();
    let heard = || {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).expect("the node tells its supervisor");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    // A program between starts the node with the variable set.
    let program = cluster.path("supervised");
    std::fs::write(&program, format!("#!/bin/sh\nNOTIFY_SOCKET='{}' exec '{GWCTL}' \"$@\"\n", ears.display())).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut node = Node::spawn(&program, &cluster.options("node", "traditional"));
    let first = node.id();
    assert_eq!(heard(), format!("READY=1\nMAINPID={first}"));
    let heir = upgrade(&mut node, &path, first);
    assert_eq!(heard(), format!("READY=1\nMAINPID={}", heir.0));
    signal(heir.0, "QUIT");
    assert_eq!(heard(), "STOPPING=1");
}

/// Batches written by one client, one after the other.
#[derive(Default)]
struct Written {
    acknowledged: Vec<String>,
    /// Nobody knows of these, as of any request whose connection ends before the answer.
    unanswered: Vec<String>,
}

impl Written {
    /// Writes batches of so many consumers and a route until `stop`, and one more if `stop` comes during one.
    fn batches(port: u16, writer: &str, consumers: usize, stop: &AtomicBool) -> Self {
        let mut written = Self::default();
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let name = format!("{writer}-{number}");
            match batch(port, &name, consumers) {
                Some(answer) if answer.status == 200 => written.acknowledged.push(name),
                Some(answer) => assert!(answer.status == 503, "{name}: {}", answer.body),
                None => written.unanswered.push(name),
            }
        }
        written
    }
}

/// A batch that makes a route of this name, after many consumers.
fn batch(port: u16, name: &str, consumers: usize) -> Option<Answer> {
    let create = |number: usize| {
        let body = json!({"username": format!("{name}-{number}"), "tags": ["x".repeat(50)]});
        json!({"action": "create", "entity": "consumers", "body": body})
    };
    let mut operations: Vec<_> = (0..consumers).map(create).collect();
    let route = json!({"name": name, "paths": [format!("/{name}")], "service": {"name": "echo"}});
    operations.push(json!({"action": "create", "entity": "routes", "body": route}));
    let body = json!({ "operations": operations });
    let asked = Request { method: "POST", path: "/gwctl/changes?results=none", headers: &[], body: Some(&body) };
    request(port, &asked).ok()
}

/// A control plane whose tasks get hardly any time to end, and a data plane.
fn hasty() -> (Cluster, Node, Node, gwctl_testkit::Upstream) {
    let cluster = Cluster::new(GWCTL);
    let cp = cluster.start(&cluster.options("cp", "control_plane").set("shutdown_grace", 0));
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    let upstream = gwctl_testkit::Upstream::start();
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    (cluster, cp, dp, upstream)
}

/// What the process after has is what was acknowledged, and the data plane has all of it.
fn assert_one_world(cp: &Node, dp: &Node, written: &[Written]) {
    let there = |name: &str| get(cp.admin(), &format!("/routes/{name}")).status == 200;
    for name in written.iter().flat_map(|written| &written.acknowledged) {
        assert!(there(name), "{name} was acknowledged and is not there");
    }
    for name in written.iter().flat_map(|written| written.acknowledged.iter().chain(&written.unanswered)) {
        let status = if there(name) { 200 } else { 404 };
        wait_until(&format!("{name} to answer {status}"), || get(dp.proxy(), &format!("/{name}")).status == status);
    }
    wait_until("the fleet to be in sync", || {
        let fleet = get(cp.admin(), "/gwctl/fleet").json();
        let member = &fleet["items"][0];
        member["applied_version"] == fleet["version"] && member["config_hash"] == fleet["config_hash"]
    });
}

#[test]
fn batches_written_all_along_a_change_of_the_binary_are_lost_nowhere() {
    let (cluster, mut cp, dp, _upstream) = hasty();
    let stop = AtomicBool::new(false);
    let port = cp.admin();
    let (heir, written) = std::thread::scope(|scope| {
        let writers: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .map(|writer| scope.spawn(|| Written::batches(port, writer, 20, &stop)))
            .collect();
        wait_until("some batches", || get(port, "/routes?size=1000").json()["data"].as_array().unwrap().len() > 5);
        let before = cp.id();
        let heir = upgrade(&mut cp, &cluster.path("cp"), before);
        let count = || get(port, "/routes?size=1000").json()["data"].as_array().unwrap().len();
        let then = count();
        wait_until("batches at the process after", || count() > then + 5);
        stop.store(true, Ordering::Relaxed);
        (heir, writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>())
    });
    assert_one_world(&cp, &dp, &written);
    drop(heir);
}

#[test]
fn a_batch_that_outlasts_the_stop_is_seen_by_the_process_after() {
    let (cluster, mut cp, dp, _upstream) = hasty();
    let (port, stop) = (cp.admin(), AtomicBool::new(false));
    // As large as takes longer than the start of a process, on any machine.
    let mut size = 250;
    loop {
        let began = std::time::Instant::now();
        assert_eq!(batch(port, &format!("measure-{size}"), size).unwrap().status, 200);
        if began.elapsed() > std::time::Duration::from_secs(1) || size > 30_000 {
            break;
        }
        size *= 2;
    }
    let (heir, written) = std::thread::scope(|scope| {
        // While one is being written the others wait for their turn, so there is one at any moment.
        let writers: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .map(|writer| scope.spawn(|| Written::batches(port, writer, size, &stop)))
            .collect();
        wait_until("the first large batch", || get(port, "/routes/one-0").status == 200);
        let before = cp.id();
        signal(before, "USR2");
        // From here on nobody begins another one, which would tell the process after of those before.
        wait_for_log(&cp, "the other process accepts connections, this one ends");
        stop.store(true, Ordering::Relaxed);
        let heir = Heir::after(&cluster.path("cp"), before);
        assert!(cp.ended().success(), "{}", cp.log());
        (heir, writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>())
    });
    assert_one_world(&cp, &dp, &written);
    drop(heir);
}

#[test]
fn clients_that_send_datagrams_are_answered_throughout() {
    let cluster = Cluster::new(GWCTL);
    let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = upstream.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((length, from)) = upstream.recv_from(&mut buffer) {
            let _ = upstream.send_to(&buffer[..length], from);
        }
    });
    let [listener] = gwctl_testkit::free_ports();
    let options = cluster.options("node", "traditional").set("stream_listen", format!("127.0.0.1:{listener} udp"));
    let mut node = cluster.start(&options);
    let service = json!({"name": "echo", "protocol": "udp", "host": "127.0.0.1", "port": port});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    let route = json!({"protocols": ["udp"], "destinations": [{"port": listener}]});
    assert_eq!(post(node.admin(), "/services/echo/routes", &route).status, 201);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(("127.0.0.1", listener)).unwrap();
    let ask = |patience: u64| {
        client.set_read_timeout(Some(Duration::from_millis(patience))).unwrap();
        client.send(b"ping").unwrap();
        client.recv(&mut [0; 64]).is_ok()
    };
    wait_until("datagrams to come back", || ask(300));
    let stop = AtomicBool::new(false);
    let (answered, lost) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut answered, mut lost) = (0, 0);
            loop {
                *(if ask(60_000) { &mut answered } else { &mut lost }) += 1;
                if stop.load(Ordering::Relaxed) {
                    return (answered, lost);
                }
            }
        });
        let first = node.id();
        let heir = upgrade(&mut node, &cluster.path("node"), first);
        stop.store(true, Ordering::Relaxed);
        let counts = asking.join().unwrap();
        assert!(ask(60_000), "the new process answers alone");
        drop(heir);
        counts
    });
    assert!(answered > 0 && lost == 0, "{answered} answered, {lost} lost");
}
