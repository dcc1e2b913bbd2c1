//! A plain HTTP/1.1 client: one connection for each request, or one kept by the caller.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

/// A request to a port of loopback.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: Option<&'a Value>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// First value of a header, name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends a request on a connection of its own; an error when nobody answers.
pub fn request(port: u16, request: &Request<'_>) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(crate::LIMIT))?;
    let mut head = format!("{} {} HTTP/1.1\r\nConnection: close\r\n", request.method, request.path);
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        head += &format!("Host: 127.0.0.1:{port}\r\n");
    }
    for (name, value) in request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let body = request.body.map(Value::to_string).unwrap_or_default();
    if request.body.is_some() {
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    read_answer(&mut BufReader::new(stream))
}

/// Reads an answer to its end.
pub fn read_answer(stream: &mut impl BufRead) -> std::io::Result<Answer> {
    let broken = |why: &str| std::io::Error::other(format!("no HTTP answer: {why}"));
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|text| text.parse().ok()).ok_or_else(|| broken(&line))?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| broken(line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: String::new() };
    let chunked = answer.header("transfer-encoding").is_some_and(|value| value.contains("chunked"));
    let length = answer.header("content-length").and_then(|value| value.parse::<usize>().ok());
    let body = match (chunked, length) {
        (true, _) => read_chunks(stream)?,
        (false, Some(length)) => {
            let mut body = vec![0; length];
            stream.read_exact(&mut body)?;
            body
        }
        (false, None) if status == 204 || status == 304 => Vec::new(),
        (false, None) => {
            let mut body = Vec::new();
            stream.read_to_end(&mut body)?;
            body
        }
    };
    answer.body = String::from_utf8_lossy(&body).into_owned();
    Ok(answer)
}

fn read_chunks(stream: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        let mut part = vec![0; length + 2];
        stream.read_exact(&mut part)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&part[..length]);
    }
}

/// GET; panics when nobody answers.
pub fn get(port: u16, path: &str) -> Answer {
    send(port, "GET", path, None)
}

/// POST of JSON; panics when nobody answers.
pub fn post(port: u16, path: &str, body: &Value) -> Answer {
    send(port, "POST", path, Some(body))
}

/// PUT of JSON; panics when nobody answers.
pub fn put(port: u16, path: &str, body: &Value) -> Answer {
    send(port, "PUT", path, Some(body))
}

/// PATCH of JSON; panics when nobody answers.
pub fn patch(port: u16, path: &str, body: &Value) -> Answer {
    send(port, "PATCH", path, Some(body))
}

/// DELETE; panics when nobody answers.
pub fn delete(port: u16, path: &str) -> Answer {
    send(port, "DELETE", path, None)
}

fn send(port: u16, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let asked = Request { method, path, headers: &[], body };
    request(port, &asked).unwrap_or_else(|error| panic!("{method} {path} on port {port}: {error}"))
}
