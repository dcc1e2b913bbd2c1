//! Connections that go on as something else after a request.

use crate::balancer::Lease;
use crate::patience::Patient;
use crate::stream::rewound::Rewound;
use crate::stream::{Entered, Limits, relay};
use crate::transport::Transport;
use bytes::BytesMut;
use std::io;
use tokio::net::TcpStream;

/// The upstream's side, once it has switched. Until the connection ends the request counts at its target.
pub(crate) struct Tunnel {
    pub(crate) stream: Transport<TcpStream>,
    /// What was read of it already.
    pub(crate) read: BytesMut,
    pub(crate) lease: Option<Lease>,
    /// Silence of either side that ends it, as in Kong.
    pub(crate) limits: Limits,
    /// By this a stop knows of it.
    pub(crate) entered: Entered,
}

/// Joins both connections; ends when both directions have, or when the time for streams is over.
pub(crate) async fn splice(client: (Transport<Patient>, BytesMut), tunnel: Tunnel) -> io::Result<()> {
    let Tunnel { stream, read, lease, limits, entered } = tunnel;
    let client = Rewound::new(client.1.into(), client.0);
    let upstream = Rewound::new(read.into(), stream);
    let outcome = tokio::select! {
        outcome = relay(client, upstream, limits, entered.moved()) => outcome,
        () = entered.cut() => Err(io::ErrorKind::TimedOut.into()),
    };
    drop(lease);
    outcome
}
