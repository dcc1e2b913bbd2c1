//! Asks the authorities of data planes whether their certificates are revoked (`cluster_ocsp`), once for each connection.
//!
//! | | `on` | `optional` |
//! |---|---|---|
//! | the certificate stands | accepted | accepted |
//! | revoked, or unknown to the responder | refused | refused |
//! | nobody to ask, no answer, an answer of no use | refused | accepted with a warning |
//!
//! Kong takes an answer of no use (stale, not signed by the authority) for a revocation in both.

use gwctl_certs::{OcspFault, OcspQuestion, Peers};
use gwctl_conf::Ocsp;
use gwctl_store::unix_millis;
use gwctl_websocket::parse_response;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for a responder, from connecting to its last byte.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longest answer in bytes, head included.
const LIMIT: usize = 1 << 18;

/// How revocation is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Revocation {
    optional: bool,
}

/// Why it is not known that a certificate stands.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Judged(#[from] OcspFault),
    #[error("the OCSP responder {url} does not answer: {why}")]
    Unanswered { url: String, why: String },
}

impl Revocation {
    /// None where nothing is checked.
    pub(crate) fn of(setting: Ocsp) -> Option<Self> {
        match setting {
            Ocsp::Off => None,
            Ocsp::On => Some(Self { optional: false }),
            Ocsp::Optional => Some(Self { optional: true }),
        }
    }

    /// Whether an allowed peer with this certificate may come in.
    pub(crate) async fn stands(self, peers: &Peers, chain: &[CertificateDer<'_>], address: SocketAddr) -> bool {
        // In `shared` mode there is no authority to ask.
        let Some(question) = peers.revocation(chain) else { return true };
        let Err(fault) = judged(question).await else { return true };
        let let_in = self.optional && !matches!(fault, Fault::Judged(OcspFault::PeerRevoked | OcspFault::PeerUnknown));
        if let_in {
            tracing::warn!(%address, why = %fault, "cluster_ocsp is optional: data plane let in unchecked");
        } else {
            tracing::warn!(%address, why = %fault, "data plane refused: its certificate does not stand (cluster_ocsp)");
        }
        let_in
    }
}

async fn judged(question: Result<OcspQuestion, OcspFault>) -> Result<(), Fault> {
    let question = question?;
    let unanswered = |why: String| Fault::Unanswered { url: question.url.clone(), why };
    let answer = match tokio::time::timeout(PATIENCE, ask(&question.url, &question.request)).await {
        Ok(answer) => answer.map_err(unanswered)?,
        Err(_) => return Err(unanswered(format!("nothing within {} s", PATIENCE.as_secs()))),
    };
    Ok(question.judge(&answer, unix_millis() / 1000)?)
}

/// Sends the question; gives the body of the answer.
async fn ask(url: &str, question: &[u8]) -> Result<Vec<u8>, String> {
    let (authority, path) = address_of(url).ok_or("its address is no http:// URL")?;
    let with_port = if authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let mut stream = TcpStream::connect(with_port).await.map_err(|error| error.to_string())?;
    // HTTP/1.0: the answer ends with the connection and is not chunked.
    let head = format!(
        "POST {path} HTTP/1.0\r\nHost: {authority}\r\nContent-Type: application/ocsp-request\r\nContent-Length: {}\r\n\r\n",
        question.len()
    );
    let request = [head.as_bytes(), question].concat();
    stream.write_all(&request).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    loop {
        let ended = stream.read_buf(&mut bytes).await.map_err(|error| error.to_string())? == 0;
        if bytes.len() > LIMIT {
            return Err(format!("its answer is longer than {LIMIT} bytes"));
        }
        match parse_response(&bytes).map_err(|error| error.to_string())? {
            Some((response, _)) if response.status != 200 => return Err(format!("status {}", response.status)),
            Some((response, length)) => {
                let body = &bytes[length..];
                let announced = response.header("content-length").and_then(|text| text.parse::<usize>().ok());
                if ended || announced.is_some_and(|announced| body.len() >= announced) {
                    let body = &body[..announced.unwrap_or(body.len()).min(body.len())];
                    return if body.is_empty() { Err("its answer is empty".to_owned()) } else { Ok(body.to_vec()) };
                }
            }
            None if ended => return Err("it closed the connection".to_owned()),
            None => {}
        }
    }
}

/// Authority and path of an `http://` URL without anything that would break a request line.
fn address_of(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_graphic()))?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!authority.is_empty() && !authority.contains('@')).then_some((authority, if path.is_empty() { "/" } else { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_urls_are_asked() {
        assert_eq!(address_of("http://ocsp.test:81/a/b"), Some(("ocsp.test:81", "/a/b")));
        assert_eq!(address_of("http://ocsp.test"), Some(("ocsp.test", "/")));
        for url in ["https://x/", "http:///x", "http://u@x/", "http://x/a b", "http://x/\r\nHost: y"] {
            assert_eq!(address_of(url), None, "{url}");
        }
    }

    /// What comes of an answer with these bytes.
    async fn answered(answer: Vec<u8>) -> Result<Vec<u8>, String> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/ocsp", listener.local_addr().expect("bound"));
        let responder = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\nquestion") {
                assert!(stream.read_buf(&mut asked).await.expect("readable") > 0);
            }
            let _ = stream.write_all(&answer).await;
            String::from_utf8(asked).expect("text")
        });
        let outcome = ask(&url, b"question").await;
        let asked = responder.await.expect("the responder ran");
        assert!(asked.starts_with("POST /ocsp HTTP/1.0\r\n"), "{asked}");
        assert!(asked.contains("Content-Type: application/ocsp-request\r\nContent-Length: 8\r\n"), "{asked}");
        outcome
    }

    #[tokio::test]
    async fn a_responder_is_asked_and_only_a_whole_answer_counts() {
        let ok = "HTTP/1.1 200 OK\r\n";
        assert_eq!(
            answered(format!("{ok}Content-Length: 4\r\n\r\nbody and more").into_bytes()).await,
            Ok(b"body".to_vec())
        );
        assert_eq!(answered(format!("{ok}\r\nuntil the end").into_bytes()).await, Ok(b"until the end".to_vec()));
        for (answer, why) in [
            (format!("{ok}\r\n"), "its answer is empty"),
            ("HTTP/1.1 503 No\r\n\r\nbody".to_owned(), "status 503"),
            ("HTTP/1.1 200".to_owned(), "it closed the connection"),
            (format!("{ok}\r\n{}", "x".repeat(LIMIT)), "its answer is longer than 262144 bytes"),
        ] {
            assert_eq!(answered(answer.into_bytes()).await, Err(why.to_owned()));
        }
    }

    #[test]
    fn the_setting_says_what_happens() {
        let strict =
            [Ocsp::Off, Ocsp::On, Ocsp::Optional].map(|setting| Revocation::of(setting).map(|how| how.optional));
        assert_eq!(strict, [None, Some(false), Some(true)]);
    }
}
