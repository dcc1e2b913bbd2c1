//! Connections that go on as something else after a request.

use crate::balancer::Lease;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

/// Joins both connections once both sides have switched; ends when both directions have. Until then the request counts
/// at its target.
pub(crate) fn splice(client: OnUpgrade, upstream: OnUpgrade, lease: Option<Lease>) {
    tokio::task::spawn_local(async move {
        let _lease = lease;
        let (client, upstream) = match tokio::try_join!(client, upstream) {
            Ok(both) => both,
            Err(error) => {
                tracing::debug!(%error, "upgrade failed");
                return;
            }
        };
        let (mut client, mut upstream) = (TokioIo::new(client), TokioIo::new(upstream));
        if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut upstream).await {
            tracing::debug!(%error, "upgraded connection ended");
        }
    });
}
