//! SIGTERM while requests are under way.

use super::{GWCTL, assert_no_panic};
use gwctl_testkit::{Cluster, Request, Upstream, get, post, request, wait_until};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// An upstream that answers only when told to.
fn held_upstream() -> (u16, mpsc::Receiver<()>, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (arrived, arrivals) = mpsc::channel();
    let released = Arc::new(AtomicBool::new(false));
    let release = released.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (arrived, release) = (arrived.clone(), release.clone());
            std::thread::spawn(move || {
                read_head(&stream);
                let _ = arrived.send(());
                wait_until("the upstream to be released", || release.load(Ordering::Relaxed));
                let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
            });
        }
    });
    (port, arrivals, released)
}

fn read_head(stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines();
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
}

#[test]
fn requests_under_way_are_answered_after_sigterm() {
    let cluster = Cluster::new(GWCTL);
    let options = cluster.options("node", "traditional").set("proxy_access_log", "logs/access.log json");
    let mut node = cluster.start(&options.set("shutdown_grace", 3600));
    let (port, arrivals, released) = held_upstream();
    let service = json!({"name": "late", "host": "127.0.0.1", "port": port});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/late/routes", &json!({"paths": ["/late"]})).status, 201);
    // Changes are seen in order: once the second route answers, the first is known as well.
    let upstream = Upstream::start();
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"paths": ["/echo"]})).status, 201);
    wait_until("the routes to be known", || get(node.proxy(), "/echo").status == 200);
    let proxy = node.proxy();
    let clients: Vec<_> = (0..20).map(|_| std::thread::spawn(move || get(proxy, "/late"))).collect();
    for _ in 0..20 {
        arrivals.recv_timeout(gwctl_testkit::LIMIT).expect("the request reaches the upstream");
    }
    let id = node.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    wait_until("the listener to be closed", || TcpStream::connect(("127.0.0.1", proxy)).is_err());
    released.store(true, Ordering::Relaxed);
    for client in clients {
        let answer = client.join().unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (200, "late"));
    }
    assert!(node.ended().success(), "{}", node.log());
    assert_no_panic(&node);
    let lines = std::fs::read_to_string(cluster.path("node").join("logs/access.log")).unwrap();
    let late = lines.lines().filter(|line| line.contains(r#""path":"/late""#) && line.contains(r#""status":200"#));
    assert_eq!(late.count(), 20, "every request is in the access log once the node has ended:\n{lines}");
}

#[test]
fn under_load_every_request_that_was_taken_is_answered() {
    let cluster = Cluster::new(GWCTL);
    let upstream = Upstream::start();
    let mut node = cluster.start(&cluster.options("node", "traditional"));
    let service = json!({"name": "echo", "host": "127.0.0.1", "port": upstream.port});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/echo/routes", &json!({"paths": ["/echo"]})).status, 201);
    wait_until("the route to answer", || get(node.proxy(), "/echo").status == 200);
    let answered = Arc::new(AtomicUsize::new(0));
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (port, answered) = (node.proxy(), answered.clone());
            std::thread::spawn(move || {
                loop {
                    let asked = Request { method: "GET", path: "/echo", ..Request::default() };
                    match request(port, &asked) {
                        Ok(answer) if answer.status == 200 => _ = answered.fetch_add(1, Ordering::Relaxed),
                        Ok(answer) => return Some(format!("{} {}", answer.status, answer.body)),
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return None,
                        // In the backlog when the listener closed: never taken.
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                        Err(error) => return Some(error.to_string()),
                    }
                }
            })
        })
        .collect();
    wait_until("the load to run", || answered.load(Ordering::Relaxed) > 50);
    assert!(node.stop().success());
    for thread in load {
        assert_eq!(thread.join().unwrap(), None);
    }
    assert_no_panic(&node);
}
