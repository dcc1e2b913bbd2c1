//! Sockets that a supervisor opened before the node was there.

use crate::GWCTL;
use gwctl_testkit::{Cluster, free_ports, get, wait_until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Opens the addresses as a supervisor does, with the backlog of connections that came before, and becomes the node.
const SUPERVISOR: &str = "
import os, socket, sys
sockets = [socket.create_server(('127.0.0.1', int(port))) for port in sys.argv[2].split(',')]
copies = [os.dup2(os.dup(one.fileno()), 100 + number) for number, one in enumerate(sockets)]
for one in sockets:
    one.detach()
for number, copy in enumerate(copies):
    os.dup2(copy, 3 + number)
os.environ |= {'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': str(len(copies))}
print('listening', flush=True)
sys.stdin.readline()
os.execv(sys.argv[1], [sys.argv[1], 'start'])
";

struct Supervised(Child);

impl Drop for Supervised {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn connections_made_before_the_node_ran_are_answered_by_it() {
    let cluster = Cluster::new(GWCTL);
    let [admin, proxy, status, unknown] = free_ports();
    let out = std::fs::File::create(cluster.path("node.log")).unwrap();
    let mut child = Command::new("python3")
        .args(["-c", SUPERVISOR, GWCTL, &format!("{proxy},{admin},{unknown}")])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("KONG_PREFIX", cluster.path("node"))
        .env("KONG_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
        .env("KONG_PROXY_LISTEN", format!("127.0.0.1:{proxy}"))
        .env("KONG_STATUS_LISTEN", format!("127.0.0.1:{status}"))
        .env("KONG_NGINX_WORKER_PROCESSES", "2")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(out)
        .spawn()
        .unwrap();
    let (mut told, mut go) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let supervised = Supervised(child);
    told.read_exact(&mut [0; 10]).unwrap();
    let mut early = TcpStream::connect(("127.0.0.1", proxy)).unwrap();
    early.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    go.write_all(b"\n").unwrap();
    let mut answer = String::new();
    early.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    wait_until("the Admin API to answer", || {
        TcpStream::connect(("127.0.0.1", admin)).is_ok() && get(admin, "/status").status == 200
    });
    // Both workers take from the one socket; what nobody wants is told and closed.
    for _ in 0..20 {
        assert_eq!(get(proxy, "/").status, 404);
    }
    wait_until("the log to name the socket that nobody wants", || {
        let log = std::fs::read_to_string(cluster.path("node.log")).unwrap();
        log.contains(&format!("address=127.0.0.1:{unknown}"))
    });
    drop(supervised);
}
