//! The control plane's side of opening a connection.

use crate::{Extra, LinkError, within};
use gwctl_websocket::{Request, accept_key, parse_request};
use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, server::TlsStream};

/// A TLS connection with its request head read, not yet answered.
pub struct Accepted {
    stream: TlsStream<TcpStream>,
    pub request: Request,
    leftover: Vec<u8>,
}

/// Shakes hands and reads the request head. Every step has its own time limit.
pub async fn accept(tcp: TcpStream, acceptor: &TlsAcceptor) -> Result<Accepted, LinkError> {
    tcp.set_nodelay(true)?;
    let handshake = acceptor.accept(tcp);
    let mut stream = within("the TLS handshake", async { handshake.await.map_err(LinkError::Tls) }).await?;
    let (request, leftover) = within("the upgrade request", read_head(&mut stream)).await?;
    Ok(Accepted { stream, request, leftover })
}

async fn read_head(stream: &mut TlsStream<TcpStream>) -> Result<(Request, Vec<u8>), LinkError> {
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(LinkError::Closed("the upgrade request"));
        }
        if let Some((request, length)) = parse_request(&bytes)? {
            return Ok((request, bytes.split_off(length)));
        }
    }
}

impl Accepted {
    /// Chain the client presented, leaf first; empty when it presented none.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        let (_, session) = self.stream.get_ref();
        session.peer_certificates().map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Answers with a plain HTTP error and ends the connection.
    pub async fn refuse(mut self, status: u16, reason: &str, body: &str) {
        let answer = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        let written = async {
            self.stream.write_all(answer.as_bytes()).await?;
            self.stream.shutdown().await
        };
        let _ = tokio::time::timeout(crate::STEP_LIMIT, written).await;
    }

    /// Ends the connection without a word, as Kong does with peers whose certificate it does not accept.
    pub async fn drop_silently(mut self) {
        let _ = tokio::time::timeout(crate::STEP_LIMIT, self.stream.shutdown()).await;
    }

    /// Whether the client offers another protocol by this header with this value.
    pub fn offers(&self, header: Extra) -> bool {
        self.request.header(&header.0.to_ascii_lowercase()).is_some_and(|value| value.trim() == header.1)
    }

    /// Answers 101, echoing an offered subprotocol as Kong does; gives the stream and the bytes that came behind the
    /// head. `key` is the client's, `extra` a header to add.
    pub async fn upgrade(
        mut self,
        key: &str,
        extra: Option<Extra>,
    ) -> Result<(TlsStream<TcpStream>, Vec<u8>), LinkError> {
        let subprotocol = self.request.header("sec-websocket-protocol");
        let subprotocol = subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n")).unwrap_or_default();
        let extra = extra.map(crate::header_line).unwrap_or_default();
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\n{subprotocol}{extra}\r\n",
            accept_key(key)
        );
        within("the upgrade answer", async {
            self.stream.write_all(answer.as_bytes()).await?;
            Ok(self.stream.flush().await?)
        })
        .await?;
        Ok((self.stream, self.leftover))
    }
}
