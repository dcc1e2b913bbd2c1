//! The data plane's side of opening a connection.

use crate::frames::{FrameReader, FrameWriter, split};
use crate::{LinkError, within};
use base64::Engine;
use gwctl_websocket::{Role, parse_response};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Where and how to dial.
#[derive(Debug, Clone)]
pub struct DialOptions {
    /// `host:port` of the control plane's cluster listener.
    pub address: String,
    /// Trust, pin and client certificate.
    pub tls: Arc<ClientConfig>,
    /// Name sent as SNI and verified.
    pub server_name: ServerName<'static>,
    /// Path and query of the upgrade request.
    pub target: String,
    /// Longest frame in bytes (`cluster_max_payload`).
    pub limit: usize,
}

/// Connects, shakes hands and upgrades. Every step has its own time limit.
pub async fn dial(
    options: &DialOptions,
) -> Result<(FrameReader<TlsStream<TcpStream>>, FrameWriter<TlsStream<TcpStream>>), LinkError> {
    let address = &options.address;
    let tcp = within("connecting", async {
        let connected = TcpStream::connect(address.as_str()).await;
        connected.map_err(|source| LinkError::Connect { address: address.clone(), source })
    })
    .await?;
    tcp.set_nodelay(true)?;
    let connector = TlsConnector::from(options.tls.clone());
    let tls = connector.connect(options.server_name.clone(), tcp);
    let mut stream = within("the TLS handshake", async { tls.await.map_err(LinkError::Tls) }).await?;
    let leftover = within("the upgrade", upgrade(&mut stream, options)).await?;
    Ok(split(stream, Role::Client, options.limit, &leftover))
}

async fn upgrade(stream: &mut TlsStream<TcpStream>, options: &DialOptions) -> Result<Vec<u8>, LinkError> {
    let key = base64::engine::general_purpose::STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
         Sec-WebSocket-Version: 13\r\n\r\n",
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
                101 => Ok(bytes.split_off(length)),
                status => Err(LinkError::Refused { status }),
            };
        }
    }
}
