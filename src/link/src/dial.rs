//! The data plane's side of opening a connection.

use crate::frames::{FrameReader, FrameWriter, split};
use crate::{Extra, LinkError, within};
use base64::Engine;
use gwctl_websocket::{Role, parse_response};
use percent_encoding::percent_decode_str;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Where and how to dial.
#[derive(Debug, Clone)]
pub struct DialOptions {
    /// `host:port` of the control plane's cluster listener.
    pub address: String,
    /// Trust, pin and client certificate.
    pub tls: ClientTls,
    /// Name sent as SNI and verified.
    pub server_name: ServerName<'static>,
    /// Path and query of the upgrade request.
    pub target: String,
    /// Longest frame in bytes (`cluster_max_payload`).
    pub limit: usize,
    /// HTTP proxy on the way (`cluster_use_proxy`).
    pub proxy: Option<ForwardProxy>,
    /// Subprotocol that is offered and has to be in the answer.
    pub subprotocol: Option<&'static str>,
    /// Header by which another protocol is offered; the control plane may repeat it in its answer.
    pub extra: Option<Extra>,
}

/// TLS of the dials of a node, which may be replaced while connections are up: dials to come use the new one. Clones
/// share it.
#[derive(Debug, Clone)]
pub struct ClientTls(Arc<RwLock<Arc<ClientConfig>>>);

impl From<Arc<ClientConfig>> for ClientTls {
    fn from(config: Arc<ClientConfig>) -> Self {
        Self(Arc::new(RwLock::new(config)))
    }
}

impl ClientTls {
    /// Dials to come use this one.
    pub fn renew(&self, config: Arc<ClientConfig>) {
        // Whoever panicked while holding it held a whole value.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn now(&self) -> Arc<ClientConfig> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An upgraded connection.
pub struct Dialed {
    pub reader: FrameReader<TlsStream<TcpStream>>,
    pub writer: FrameWriter<TlsStream<TcpStream>>,
    /// The answer repeats [`DialOptions::extra`]: the connection is of that protocol.
    pub extra: bool,
}

/// An HTTP proxy that opens tunnels by CONNECT.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardProxy {
    /// `host:port`.
    address: String,
    /// Value of `Proxy-Authorization`.
    authorization: Option<String>,
}

impl std::fmt::Debug for ForwardProxy {
    /// Without the credentials.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ForwardProxy({})", self.address)
    }
}

impl ForwardProxy {
    /// Reads `http://[user:password@]host[:port]`, user and password percent-encoded; None for anything else.
    pub fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?.trim_end_matches('/');
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let with_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if with_port { host.to_owned() } else { format!("{host}:80") };
        let encode = |said: &str| {
            let (user, password) = said.split_once(':').unwrap_or((said, ""));
            let [user, password] = [user, password].map(|part| percent_decode_str(part).collect::<Vec<u8>>());
            let both = [user.as_slice(), b":", password.as_slice()].concat();
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(both))
        };
        (!host.is_empty()).then(|| Self { address, authorization: user.map(encode) })
    }
}

/// Connects, shakes hands and upgrades. Every step has its own time limit.
pub async fn dial(options: &DialOptions) -> Result<Dialed, LinkError> {
    let address = &options.address;
    let next = options.proxy.as_ref().map_or(address, |proxy| &proxy.address);
    let mut tcp = within("connecting", async {
        let connected = TcpStream::connect(next.as_str()).await;
        connected.map_err(|source| LinkError::Connect { address: next.clone(), source })
    })
    .await?;
    tcp.set_nodelay(true)?;
    if let Some(proxy) = &options.proxy {
        within("the tunnel through the proxy", tunnel(&mut tcp, address, proxy)).await?;
    }
    let connector = TlsConnector::from(options.tls.now());
    let tls = connector.connect(options.server_name.clone(), tcp);
    let mut stream = within("the TLS handshake", async { tls.await.map_err(LinkError::Tls) }).await?;
    let (leftover, extra) = within("the upgrade", upgrade(&mut stream, options)).await?;
    let (reader, writer) = split(stream, Role::Client, options.limit, &leftover);
    Ok(Dialed { reader, writer, extra })
}

/// Asks the proxy for a tunnel. Nothing follows its answer before this end speaks, so no byte is lost.
async fn tunnel(tcp: &mut TcpStream, address: &str, proxy: &ForwardProxy) -> Result<(), LinkError> {
    let authorization =
        proxy.authorization.as_ref().map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n{authorization}\r\n");
    tcp.write_all(request.as_bytes()).await?;
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if tcp.read_buf(&mut bytes).await? == 0 {
            return Err(LinkError::Closed("the tunnel through the proxy"));
        }
        if let Some((response, _)) = parse_response(&bytes)? {
            return match response.status {
                200..=299 => Ok(()),
                status => Err(LinkError::ProxyRefused { proxy: proxy.address.clone(), status }),
            };
        }
    }
}

/// The bytes behind the answer, and whether it accepts the other protocol.
async fn upgrade(stream: &mut TlsStream<TcpStream>, options: &DialOptions) -> Result<(Vec<u8>, bool), LinkError> {
    let key = base64::engine::general_purpose::STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    let subprotocol = options.subprotocol.map(|name| format!("Sec-WebSocket-Protocol: {name}\r\n")).unwrap_or_default();
    let extra = options.extra.map(crate::header_line).unwrap_or_default();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
         Sec-WebSocket-Version: 13\r\n{subprotocol}{extra}\r\n",
        options.target, options.address
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut bytes = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(LinkError::Closed("the upgrade (certificate refused, or not a control plane)"));
        }
        if let Some((response, length)) = parse_response(&bytes)? {
            // `Sec-WebSocket-Accept` is not checked, as Kong does not: the peer has proved itself by its certificate.
            return match response.status {
                101 => match (options.subprotocol, response.header("sec-websocket-protocol")) {
                    (Some(offered), answered) if answered != Some(offered) => {
                        Err(LinkError::Subprotocol { offered, answered: answered.unwrap_or("none").to_owned() })
                    }
                    _ => {
                        let repeats = |(name, value): Extra| {
                            response.header(&name.to_ascii_lowercase()).is_some_and(|answer| answer.trim() == value)
                        };
                        Ok((bytes.split_off(length), options.extra.is_some_and(repeats)))
                    }
                },
                status => Err(LinkError::Refused { status }),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_with_its_credentials_which_are_never_shown() {
        let proxy = ForwardProxy::parse("http://user:secret@proxy.example:3128/").expect("a proxy");
        assert_eq!(proxy.address, "proxy.example:3128");
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNlcjpzZWNyZXQ="));
        assert_eq!(format!("{proxy:?}"), "ForwardProxy(proxy.example:3128)");
        let authorization = |url: &str| ForwardProxy::parse(url).and_then(|proxy| proxy.authorization);
        // `us:er`, `p@ss/word%`
        let encoded = authorization("http://us%3Aer:p%40ss%2Fword%25@proxy.example");
        assert_eq!(encoded.as_deref(), Some("Basic dXM6ZXI6cEBzcy93b3JkJQ=="));
        assert_eq!(authorization("http://user@proxy.example").as_deref(), Some("Basic dXNlcjo="));
        assert_eq!(ForwardProxy::parse("http://proxy.example").expect("a proxy").address, "proxy.example:80");
        assert_eq!(ForwardProxy::parse("https://proxy.example"), None);
        assert_eq!(ForwardProxy::parse("http://"), None);
    }

    #[tokio::test]
    async fn a_tunnel_is_asked_for_and_a_refusal_is_told() {
        for (answer, opened) in [("HTTP/1.1 200 OK\r\n\r\n", true), ("HTTP/1.1 407 No\r\n\r\n", false)] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("bound").to_string();
            let proxy = ForwardProxy::parse(&format!("http://u:p@{address}")).expect("a proxy");
            let peer = tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut bytes = Vec::new();
                while !bytes.ends_with(b"\r\n\r\n") {
                    assert!(stream.read_buf(&mut bytes).await.expect("readable") > 0);
                }
                stream.write_all(answer.as_bytes()).await.expect("writable");
                String::from_utf8(bytes).expect("text")
            });
            let mut tcp = TcpStream::connect(&address).await.expect("connected");
            let outcome = tunnel(&mut tcp, "cp.example:8005", &proxy).await;
            let asked = peer.await.expect("the proxy ran");
            assert!(asked.starts_with("CONNECT cp.example:8005 HTTP/1.1\r\n"), "{asked}");
            assert!(asked.contains("Proxy-Authorization: Basic dTpw\r\n"), "{asked}");
            assert_eq!(outcome.is_ok(), opened, "{outcome:?}");
        }
    }
}
