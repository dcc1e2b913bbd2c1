//! One connection of the cluster: TLS, upgrade, frames.
//!
//! What both roles need between a socket and the sans-IO machines of `gwctl-wire`: [`dial`] for the data plane,
//! [`accept`] for the control plane, and [`FrameReader`]/[`FrameWriter`] for the frames of either. Nothing here decides
//! anything about the protocol.

mod accept;
mod dial;
mod frames;

pub use accept::{Accepted, accept};
pub use dial::{ClientTls, DialOptions, Dialed, ForwardProxy, dial};
pub use frames::{FrameReader, FrameWriter, Received, split};

use std::time::Duration;

/// Longest wait for one step of opening a connection: connect, TLS handshake, request head, answer.
///
/// Source: Kong 3.9.1, socket time-out of the cluster link.
pub const STEP_LIMIT: Duration = Duration::from_secs(5);

/// Longest time without progress while a frame is written; a peer that reads nothing for so long is given up.
pub const WRITE_STALL_LIMIT: Duration = Duration::from_secs(30);

/// Why a connection could not be opened or ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("{step} took longer than {} s", STEP_LIMIT.as_secs())]
    Slow { step: &'static str },
    #[error("cannot resolve {address}: {source}")]
    Resolve { address: String, source: std::io::Error },
    #[error("cannot connect to {address}: {source}")]
    Connect { address: String, source: std::io::Error },
    #[error("TLS handshake failed: {0}")]
    Tls(std::io::Error),
    #[error("peer closed the connection during {0}")]
    Closed(&'static str),
    #[error(transparent)]
    Head(#[from] gwctl_websocket::HandshakeError),
    #[error("control plane answered {status} where 101 was expected{}", status_hint(*.status))]
    Refused { status: u16 },
    #[error("control plane answered with the subprotocol {answered} where {offered} was expected")]
    Subprotocol { offered: &'static str, answered: String },
    #[error("proxy {proxy} answered {status} to CONNECT, 200 was expected")]
    ProxyRefused { proxy: String, status: u16 },
    #[error(transparent)]
    Frame(#[from] gwctl_websocket::FrameError),
    #[error("peer reads nothing for {} s", WRITE_STALL_LIMIT.as_secs())]
    Stalled,
    #[error("frame of {length} bytes is over cluster_max_payload ({limit} bytes)")]
    TooLong { length: usize, limit: usize },
    #[error("connection lost: {0}")]
    Io(#[from] std::io::Error),
}

fn status_hint(status: u16) -> &'static str {
    match status {
        400 => " (certificate not accepted or expired, or arguments missing)",
        404 => " (the address is no cluster listener of a control plane)",
        _ => "",
    }
}

/// Name and value of a header by which another protocol is offered and accepted.
pub type Extra = (&'static str, &'static str);

fn header_line((name, value): Extra) -> String {
    format!("{name}: {value}\r\n")
}

async fn within<T>(step: &'static str, future: impl Future<Output = Result<T, LinkError>>) -> Result<T, LinkError> {
    tokio::time::timeout(STEP_LIMIT, future).await.unwrap_or(Err(LinkError::Slow { step }))
}
