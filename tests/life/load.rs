//! Clients that keep asking, and upgraded connections that keep echoing.

use gwctl_testkit::{LIMIT, Request, read_answer, request, wait_until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// Clients that ask for `/echo` until they are told to stop: half on new connections, half on kept ones.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    pub(crate) fn start(port: u16) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let clients = (0..4)
            .map(|number| {
                let (stop, answered) = (stop.clone(), answered.clone());
                std::thread::spawn(move || client(port, number % 2 == 0, &stop, &answered))
            })
            .collect();
        let load = Self { stop, answered, clients };
        load.wait_for(50);
        load
    }

    /// Waits until so many more requests are answered.
    pub(crate) fn wait_for(&self, more: usize) {
        let goal = self.answered.load(Ordering::Relaxed) + more;
        wait_until("requests to be answered", || {
            self.answered.load(Ordering::Relaxed) >= goal || self.clients.iter().any(JoinHandle::is_finished)
        });
    }

    /// Stops the clients; how many requests were answered, and every failure.
    pub(crate) fn end(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
        (self.answered.load(Ordering::Relaxed), failures)
    }
}

fn client(port: u16, keeps: bool, stop: &AtomicBool, answered: &AtomicUsize) -> Vec<String> {
    let mut failures = Vec::new();
    let mut kept: Option<Kept> = None;
    while !stop.load(Ordering::Relaxed) && failures.len() < 10 {
        let asked = Request { method: "GET", path: "/echo", ..Request::default() };
        let outcome = if keeps { ask_kept(port, &mut kept) } else { request(port, &asked).map(|answer| answer.status) };
        match outcome {
            Ok(200) => _ = answered.fetch_add(1, Ordering::Relaxed),
            Ok(status) => failures.push(format!("status {status}")),
            Err(error) => failures.push(format!("{error} (kept: {keeps})")),
        }
    }
    failures
}

struct Kept {
    stream: BufReader<TcpStream>,
    used: bool,
}

/// Asks on a kept connection as real clients do: one that was closed while idle is replaced and the request sent again,
/// once.
fn ask_kept(port: u16, kept: &mut Option<Kept>) -> std::io::Result<u16> {
    let mut connection = match kept.take() {
        Some(connection) => connection,
        None => connect(port)?,
    };
    match ask(&mut connection) {
        Ok((status, stays)) => {
            *kept = stays.then_some(connection);
            Ok(status)
        }
        Err(_) if connection.used => ask_kept(port, kept),
        Err(error) => Err(error),
    }
}

fn connect(port: u16) -> std::io::Result<Kept> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    Ok(Kept { stream: BufReader::new(stream), used: false })
}

fn ask(connection: &mut Kept) -> std::io::Result<(u16, bool)> {
    connection.stream.get_mut().write_all(b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n")?;
    if connection.stream.fill_buf()?.is_empty() {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let answer = read_answer(&mut connection.stream)?;
    connection.used = true;
    let closes = answer.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    Ok((answer.status, !closes))
}

/// An upstream that accepts upgrades and then gives back every byte.
pub(crate) fn echoing_upstream() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || echo(stream));
        }
    });
    port
}

fn echo(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
    if !text.contains("upgrade: websocket") {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut buffer = [0; 1024];
    let _ = stream.write_all(answer);
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// An upgraded connection through the proxy.
pub(crate) struct Upgraded(TcpStream);

impl Upgraded {
    pub(crate) fn open(port: u16, path: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while !answer.ends_with(b"\r\n\r\n") {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&answer));
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
        Self(stream)
    }

    /// Whether bytes still come back.
    pub(crate) fn echoes(&mut self) -> bool {
        let mut back = [0; 4];
        self.0.write_all(b"ping").is_ok() && self.0.read_exact(&mut back).is_ok() && &back == b"ping"
    }
}
