//! An upstream that answers with what it saw.

use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers on a port of loopback until the process ends: 200 with a JSON body of method, path and `Host`.
#[derive(Debug, Clone)]
pub struct Upstream {
    pub port: u16,
    requests: Arc<AtomicUsize>,
}

impl Upstream {
    /// Starts it on a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = Self { port: listener.local_addr().unwrap().port(), requests: Arc::default() };
        let shared = upstream.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        upstream
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
