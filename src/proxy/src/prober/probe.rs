//! One probe of one address.

use crate::balancer::{Active, Fault, Kind, Outcome};
use crate::prober::grpc;
use crate::upstream::connection::Connection;
use crate::upstream::tls::TlsSettings;
use http::HeaderValue;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::time::timeout;

/// Longest first line of an answer.
const LONGEST_LINE: u64 = 4096;

/// What is asked.
pub(crate) struct Probe<'a> {
    pub(crate) active: &'a Active,
    pub(crate) address: SocketAddr,
    /// `Host`: that of the upstream, else the name or literal of the target.
    pub(crate) host: &'a str,
    /// For `https` and `grpcs`.
    pub(crate) tls: Option<&'a TlsSettings>,
}

/// Asks; each step has the time of the check. A failed handshake counts as no connection.
pub(crate) async fn probe(probe: &Probe<'_>) -> Outcome {
    let (active, limit) = (probe.active, probe.active.timeout);
    let stream = match Connection::tcp(probe.address, limit).await {
        Ok(stream) => stream,
        Err(error) => return failed(&error),
    };
    let Some(tls) = probe.tls else {
        return if active.kind == Kind::Tcp { Outcome::Fine } else { speak(probe, stream).await };
    };
    let name = HeaderValue::from_str(active.sni.as_deref().unwrap_or(probe.host));
    let Ok(name) = name else { return Outcome::Failed(Fault::Tcp) };
    match tls.connect(stream, &name, probe.address, limit).await {
        Ok(stream) => speak(probe, stream).await,
        Err(error) => {
            tracing::debug!(address = %probe.address, %error, "handshake of a probe failed");
            failed(&error)
        }
    }
}

async fn speak<S>(probe: &Probe<'_>, stream: S) -> Outcome
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let outcome = async {
        match probe.active.kind {
            Kind::Grpc | Kind::Grpcs => grpc::ask(&bracketed(probe.host), probe.tls.is_some(), stream).await,
            _ => ask(probe, stream).await,
        }
    };
    match timeout(probe.active.timeout, outcome).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => failed(&error),
        Err(_) => Outcome::Failed(Fault::Timeout),
    }
}

fn failed(error: &io::Error) -> Outcome {
    Outcome::Failed(if error.kind() == io::ErrorKind::TimedOut { Fault::Timeout } else { Fault::Tcp })
}

/// Asks over HTTP/1.1 on a connection of its own and reads the status line.
async fn ask<S: AsyncRead + AsyncWrite + Unpin>(probe: &Probe<'_>, mut stream: S) -> io::Result<Outcome> {
    stream.write_all(request(probe).as_bytes()).await?;
    stream.flush().await?;
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST_LINE)).read_until(b'\n', &mut line).await?;
    if line.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(status(&line).map_or(Outcome::Failed(Fault::Http), Outcome::Status))
}

fn request(probe: &Probe<'_>) -> String {
    let active = probe.active;
    let mut request = format!("GET {} HTTP/1.1\r\n", active.path);
    let own_host = active.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = (!own_host).then(|| ("Host".to_owned(), bracketed(probe.host)));
    for (name, value) in host.iter().chain(&active.headers) {
        // A header that could end the line is left out.
        if HeaderValue::from_str(value).is_ok() {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    request.push_str("Connection: close\r\n\r\n");
    request
}

/// A literal of version 6 in brackets, anything else as it is.
fn bracketed(host: &str) -> String {
    let bare = host.contains(':') && !host.starts_with('[');
    if bare { format!("[{host}]") } else { host.to_owned() }
}

/// Status of `HTTP/1.1 200 OK`.
fn status(line: &[u8]) -> Option<u16> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let version = words.next()?.strip_prefix("HTTP/")?;
    let is_version = version.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    words.next().filter(|_| is_version)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balancer::Checks;
    use serde_json::json;

    #[test]
    fn statuses_are_read_off_the_first_line() {
        assert_eq!(status(b"HTTP/1.1 200 OK\r\n"), Some(200));
        assert_eq!(status(b"HTTP/1.0 503\r\n"), Some(503));
        for line in [&b"SSH-2.0-OpenSSH\r\n"[..], b"HTTP/1.1\r\n", b"HTTP/x 200\r\n", b"HTTP/1.1 abc\r\n", b"\xff\n"] {
            assert_eq!(status(line), None, "{line:?}");
        }
    }

    #[test]
    fn headers_of_the_check_are_sent() {
        let checks = Checks::read(
            &json!({"active": {"http_path": "/up?x=1", "headers": {"X-A": ["1", "2"], "X-B": ["a\r\nb"]}}}),
        );
        let address = "127.0.0.1:80".parse().unwrap();
        let asked = Probe { active: &checks.active, address, host: "h.test", tls: None };
        assert_eq!(
            request(&asked),
            "GET /up?x=1 HTTP/1.1\r\nHost: h.test\r\nX-A: 1\r\nX-A: 2\r\nConnection: close\r\n\r\n"
        );
        let checks = Checks::read(&json!({"active": {"headers": {"Host": ["own.test"]}}}));
        let asked = Probe { active: &checks.active, address, host: "::1", tls: None };
        assert_eq!(request(&asked), "GET / HTTP/1.1\r\nHost: own.test\r\nConnection: close\r\n\r\n");
    }
}
