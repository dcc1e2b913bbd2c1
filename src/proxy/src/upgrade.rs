//! Connections that go on as something else after a request.

use crate::balancer::Lease;
use crate::stream::rewound::Rewound;
use crate::transport::Transport;
use bytes::BytesMut;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Joins both connections once the client's has switched; ends when both directions have. Until then the request counts
/// at its target.
pub(crate) fn splice(client: OnUpgrade, upstream: (Transport<TcpStream>, BytesMut), lease: Option<Lease>) {
    tokio::task::spawn_local(async move {
        let _lease = lease;
        let client = match client.await {
            Ok(client) => client,
            Err(error) => {
                tracing::debug!(%error, "upgrade failed");
                return;
            }
        };
        let (upstream, read) = upstream;
        let (mut client, mut upstream) = (TokioIo::new(client), Rewound::new(read.into(), upstream));
        if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut upstream).await {
            tracing::debug!(%error, "upgraded connection ended");
        }
    });
}
