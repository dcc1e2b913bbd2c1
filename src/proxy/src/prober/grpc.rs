//! The gRPC health protocol (`grpc.health.v1.Health/Check`), asked about the server as a whole.

use crate::balancer::{Fault, Outcome};
use crate::upstream::outbound::Outbound;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, TE};
use http::{Method, Request, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};

/// A request without fields: not compressed, length 0.
const EMPTY_MESSAGE: &[u8] = &[0; 5];
/// Longest answer that is read.
const LONGEST: usize = 4096;
/// Code of gRPC for a method that the server does not have.
const UNIMPLEMENTED: &str = "12";

/// Runs what belongs to the connection on this thread.
#[derive(Clone, Copy)]
struct Here;

impl<F: Future + 'static> Executor<F> for Here {
    fn execute(&self, work: F) {
        tokio::task::spawn_local(async move {
            work.await;
        });
    }
}

/// Asks over a fresh connection.
pub(super) async fn ask<S>(host: &str, secure: bool, stream: S) -> io::Result<Outcome>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http2::handshake(Here, TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let mut driver = tokio::task::JoinSet::new();
    driver.spawn_local(connection);
    let scheme = if secure { "https" } else { "http" };
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{scheme}://{host}/grpc.health.v1.Health/Check"))
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .body(Outbound::Whole(Some(Bytes::from_static(EMPTY_MESSAGE))));
    let request = request.map_err(io::Error::other)?;
    let response = sender.send_request(request).await.map_err(io::Error::other)?;
    let (head, body) = response.into_parts();
    if head.status != StatusCode::OK {
        return Ok(Outcome::Failed(Fault::Http));
    }
    let (message, trailers) = read(body).await?;
    let status = [Some(&head.headers), trailers.as_ref()].into_iter().flatten();
    let status = status.filter_map(|headers| headers.get("grpc-status")).next_back();
    Ok(verdict(status.and_then(|status| status.to_str().ok()), &message))
}

async fn read(mut body: Incoming) -> io::Result<(Vec<u8>, Option<HeaderMap>)> {
    let (mut message, mut trailers) = (Vec::new(), None);
    while let Some(frame) = poll_fn(|task| Pin::new(&mut body).poll_frame(task)).await {
        match frame.map_err(io::Error::other)?.into_data() {
            Ok(data) if message.len() + data.len() <= LONGEST => message.extend_from_slice(&data),
            Ok(_) => return Err(io::Error::other("the answer is too long")),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    Ok((message, trailers))
}

/// A server without the health service speaks gRPC, which is all that Kong asks of it.
fn verdict(status: Option<&str>, message: &[u8]) -> Outcome {
    match status {
        Some(UNIMPLEMENTED) => Outcome::Fine,
        Some("0") if is_serving(message) => Outcome::Fine,
        _ => Outcome::Failed(Fault::Http),
    }
}

/// Whether field 1, the only one, is 1 (SERVING) in a message that is not compressed.
fn is_serving(message: &[u8]) -> bool {
    const SERVING: &[u8] = &[0x08, 0x01];
    message.first() == Some(&0) && message.get(5..) == Some(SERVING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_serves_is_fine() {
        assert_eq!(verdict(Some("0"), &[0, 0, 0, 0, 2, 8, 1]), Outcome::Fine);
        assert_eq!(verdict(Some("12"), &[]), Outcome::Fine);
        for (status, message) in [
            (Some("0"), &[0, 0, 0, 0, 2, 8, 2][..]),
            (Some("0"), &[]),
            (Some("5"), &[]),
            (None, &[0, 0, 0, 0, 2, 8, 1]),
        ] {
            assert_eq!(verdict(status, message), Outcome::Failed(Fault::Http));
        }
    }
}
