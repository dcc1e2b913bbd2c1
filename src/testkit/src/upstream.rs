//! An upstream that answers with what it saw.

use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Answers on a port of loopback until it is stopped or the process ends: 200 with a JSON body of method, path, `Host`
/// and its own port.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub port: u16,
    requests: Arc<AtomicUsize>,
    running: Arc<Running>,
}

#[derive(Debug, Default)]
struct Running {
    stopped: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

impl Upstream {
    /// Starts it on a free port, which nobody takes by chance while it is stopped.
    pub fn start() -> Self {
        let [port] = crate::free_ports();
        Self::start_at(port)
    }

    /// Starts it on the port of one that was stopped.
    pub fn start_at(port: u16) -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", port)).unwrap())
    }

    fn on(listener: TcpListener) -> Self {
        let port = listener.local_addr().unwrap().port();
        let upstream = Self { port, requests: Arc::default(), running: Arc::default() };
        let shared = upstream.clone();
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.running.stopped.load(Ordering::SeqCst) {
                    return;
                }
                shared.running.connections.lock().unwrap().extend(stream.try_clone());
                let shared = shared.clone();
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        *upstream.running.acceptor.lock().unwrap() = Some(acceptor);
        upstream
    }

    /// Ends it as a kill would: nobody listens on the port any more and open connections break off.
    pub fn stop(&self) {
        self.running.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        if let Some(acceptor) = self.running.acceptor.lock().unwrap().take() {
            acceptor.join().unwrap();
        }
        for connection in self.running.connections.lock().unwrap().drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Requests answered so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        while self.answer(&mut reader, stream).is_some() {}
    }

    fn answer(&self, reader: &mut BufReader<&TcpStream>, mut stream: &TcpStream) -> Option<()> {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
        let (mut host, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("host:") {
                value.trim().clone_into(&mut host);
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut words = first.split_whitespace();
        let seen = json!({ "method": words.next(), "path": words.next(), "host": host, "port": self.port }).to_string();
        self.requests.fetch_add(1, Ordering::Relaxed);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", seen.len());
        stream.write_all(format!("{head}{seen}").as_bytes()).ok()
    }
}
