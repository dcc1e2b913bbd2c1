//! Routes of TCP connections, from the Admin API to the bytes: a real process, real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gwctl_testkit::{Answer, Cluster, LIMIT, free_ports, patch, post, wait_for, wait_until};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// An upstream that says its letter at once and then sends back what it gets; its port.
fn talker(letter: u8) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let _ = stream.write_all(&[letter]);
                let mut other = stream.try_clone().unwrap();
                // The client may be gone.
                let _ = std::io::copy(&mut stream, &mut other);
                let _ = other.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    port
}

fn created(answer: Answer) -> Answer {
    assert_eq!(answer.status, 201, "{}", answer.body);
    answer
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// The first byte that comes, None when the connection is closed instead.
fn first(stream: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    (stream.read(&mut byte).unwrap_or(0) == 1).then_some(byte[0])
}

#[test]
fn a_tcp_route_carries_bytes_and_its_change_leaves_open_connections_alone() {
    let cluster = Cluster::new(GWCTL);
    let [port] = free_ports();
    let options = cluster.options("node", "traditional").set("stream_listen", format!("127.0.0.1:{port}"));
    let mut node = cluster.start(&options.set("shutdown_grace", "1"));
    let (one, other) = (talker(b'1'), talker(b'2'));
    assert_eq!(first(&mut connect(port)), None, "no route yet");

    created(post(
        node.admin(),
        "/services",
        &json!({"name": "one", "protocol": "tcp", "host": "127.0.0.1", "port": one}),
    ));
    created(post(
        node.admin(),
        "/services",
        &json!({"name": "two", "protocol": "tcp", "host": "127.0.0.1", "port": other}),
    ));
    let route = json!({"name": "door", "protocols": ["tcp"], "destinations": [{"port": port}]});
    let route = created(post(node.admin(), "/services/one/routes", &route)).json();
    wait_until("the route to serve", || first(&mut connect(port)) == Some(b'1'));

    let figures = || gwctl_testkit::get(node.status(), "/metrics").body;
    wait_until("the figures of streams", || {
        let (text, labels) = (figures(), r#"service="one",route="door",code="200",source="service""#);
        text.contains(&format!("kong_stream_sessions_total{{{labels}"))
            && text.contains(r#"subsystem="stream",state="active"} 0"#)
    });
    assert!(figures().contains(r#"subsystem="http",state="accepted"} 0"#), "{}", figures());

    let mut before = connect(port);
    assert_eq!(first(&mut before), Some(b'1'));
    let moved = patch(node.admin(), "/routes/door", &json!({"service": {"name": "two"}}));
    assert_eq!(moved.status, 200, "{}", moved.body);
    wait_until("new connections to go elsewhere", || first(&mut connect(port)) == Some(b'2'));
    before.write_all(b"x").unwrap();
    assert_eq!(first(&mut before), Some(b'x'), "the connection of before goes on");

    let ended = node.stop();
    assert!(ended.success(), "{ended}");
    assert_eq!(first(&mut before), None);
    let (log, name) = (node.log(), route["name"].as_str().unwrap());
    let cut = log.lines().find(|line| line.contains("stream cut at the end of the deadline"));
    let cut = cut.unwrap_or_else(|| panic!("the log does not tell of the cut:\n{log}"));
    assert!(cut.contains(&format!("by route {name} to 127.0.0.1:{one}")), "{cut}");
    let client = before.local_addr().unwrap();
    for part in [format!("{client} at 127.0.0.1:{port}"), "age_s=".to_owned(), "bytes=3".to_owned()] {
        assert!(cut.contains(&part), "`{part}` in {cut}");
    }
}

#[test]
fn a_data_plane_serves_the_tcp_routes_of_its_control_plane() {
    let cluster = Cluster::new(GWCTL);
    let [port] = free_ports();
    let control_plane = cluster.start(&cluster.options("cp", "control_plane"));
    let options = cluster.options("dp", "data_plane").set("stream_listen", format!("127.0.0.1:{port}"));
    let _data_plane = cluster.start(&options);
    let target = json!({"target": format!("127.0.0.1:{}", talker(b'3'))});
    created(post(control_plane.admin(), "/upstreams", &json!({"name": "u.test"})));
    created(post(control_plane.admin(), "/upstreams/u.test/targets", &target));
    let service = json!({"name": "s", "protocol": "tcp", "host": "u.test", "port": 1});
    created(post(control_plane.admin(), "/services", &service));
    let route = json!({"protocols": ["tcp"], "sources": [{"ip": "127.0.0.0/8"}]});
    created(post(control_plane.admin(), "/services/s/routes", &route));
    wait_until("the data plane to serve the route", || first(&mut connect(port)) == Some(b'3'));
}

#[test]
fn the_access_log_of_streams_is_written_by_kong_s_setting_and_opened_anew_when_asked() {
    let cluster = Cluster::new(GWCTL);
    let [port] = free_ports();
    let options = cluster.options("node", "traditional").set("stream_listen", format!("127.0.0.1:{port}"));
    let mut node = cluster.start(&options.set("proxy_stream_access_log", "logs/streams.log basic"));
    let (path, moved) = (cluster.path("node/logs/streams.log"), cluster.path("node/logs/streams.log.1"));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(first(&mut connect(port)), None, "no route");
    wait_until("the line to be written", || read(&path).contains("] TCP 500 0 0 "));
    std::fs::rename(&path, &moved).unwrap();
    let asked = std::process::Command::new("kill").args(["-USR1", &node.id().to_string()]).status();
    assert!(asked.unwrap().success());
    wait_until("the file to be made anew", || path.exists());
    created(post(
        node.admin(),
        "/services",
        &json!({"name": "one", "protocol": "tcp", "host": "127.0.0.1", "port": talker(b'1')}),
    ));
    let route = json!({"name": "door", "protocols": ["tcp"], "destinations": [{"port": port}]});
    created(post(node.admin(), "/services/one/routes", &route));
    wait_until("the route to serve", || first(&mut connect(port)) == Some(b'1'));
    assert!(node.stop().success());
    assert!(read(&path).contains("] TCP 200 1 0 "), "{}", read(&path));
    assert!(!read(&moved).contains(" TCP 200 "), "{}", read(&moved));
}

/// An upstream that sends each datagram back with its letter before it; its port.
fn datagram_echo(letter: u8) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&[&[letter], &buffer[..length]].concat(), from);
        }
    });
    port
}

/// What comes back for a datagram, which is sent until something does: what comes before its route is lost.
fn exchanged(port: u16, text: &str) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut buffer = [0; 2048];
    let length = wait_for("datagrams to come back", || {
        socket.send_to(text.as_bytes(), ("127.0.0.1", port)).unwrap();
        socket.recv(&mut buffer).ok()
    });
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

#[test]
fn a_udp_route_carries_datagrams_beside_tcp_at_the_same_port() {
    let cluster = Cluster::new(GWCTL);
    let [port] = free_ports();
    let listen = format!("127.0.0.1:{port}, 127.0.0.1:{port} udp");
    let options = cluster.options("node", "traditional").set("stream_listen", listen).set("shutdown_grace", 3600);
    let mut node = cluster.start(&options);
    for (protocol, upstream) in [("tcp", talker(b't')), ("udp", datagram_echo(b'u'))] {
        let service = json!({"name": protocol, "protocol": protocol, "host": "127.0.0.1", "port": upstream});
        created(post(node.admin(), "/services", &service));
        let route = json!({"name": protocol, "protocols": [protocol], "destinations": [{"port": port}]});
        created(post(node.admin(), &format!("/services/{protocol}/routes"), &route));
    }
    assert_eq!(exchanged(port, "ping"), "uping");
    wait_until("connections to be served", || first(&mut connect(port)) == Some(b't'));
    let figures = gwctl_testkit::get(node.status(), "/metrics").body;
    assert!(figures.contains(r#"gwctl_stream_sessions_open{service="udp",route="udp"}"#), "{figures}");
    // Sessions that have been answered do not keep a node from stopping, which they may for an hour.
    assert!(node.stop().success());
}
