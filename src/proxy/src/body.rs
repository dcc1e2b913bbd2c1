//! The body of a response on its way to the client.

use crate::flight::Flight;
use crate::upgrade::Tunnel;
use crate::upstream::connection::{Break, Connection};
use crate::upstream::pool::PoolKey;
use bytes::Bytes;
use gwctl_http1::Headers;
use gwctl_plugins::Phases;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::Sleep;

/// Why a response body was cut; the client sees its connection close.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("the upstream broke off: {0}")]
    Upstream(Break),
    #[error("the upstream stopped sending")]
    Stalled,
    #[error("a plugin failed")]
    Plugin,
}

/// Most of a response that is held for a client that does not take it, with `response_buffering`: the connection to the
/// upstream is free as soon as the rest fits. In memory only, where nginx, and so Kong, holds 36 KiB and writes up to
/// 1 GiB more to a file (`proxy_buffers 8 4k`, `proxy_max_temp_file_size 1024m`, neither of which Kong changes). Nothing
/// is read ahead while the node is short of memory.
pub(crate) const READ_AHEAD: usize = 1024 * 1024;

/// A response on its way to the client.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: Headers,
    pub(crate) body: Downstream,
}

impl Reply {
    /// For the library that speaks HTTP/2.
    pub(crate) fn into_http(self) -> http::Response<Downstream> {
        let mut response = http::Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.to_map();
        response
    }
}

/// Where the bytes come from.
pub(crate) enum Origin {
    Whole(Option<Bytes>),
    /// The connection goes back once all of it has been read.
    Upstream {
        from: Option<(Connection, PoolKey)>,
        stalled: Option<Pin<Box<Sleep>>>,
    },
}

impl Origin {
    pub(crate) fn upstream(connection: Connection, key: PoolKey) -> Origin {
        Origin::Upstream { from: Some((connection, key)), stalled: None }
    }
}

/// Streams the body through body_filter, gives the connection back, and keeps the [`Flight`] until the end.
pub(crate) struct Downstream {
    origin: Origin,
    flight: Box<Flight>,
    filtered: bool,
    /// The last call of body_filter has been made.
    filter_ended: bool,
    trailers: Option<HeaderMap>,
    /// The upstream's side of a connection that has switched protocols.
    tunnel: Option<Tunnel>,
}

impl Downstream {
    pub(crate) fn new(origin: Origin, flight: Box<Flight>) -> Downstream {
        let filtered = flight.run.has(Phases::BODY_FILTER);
        let mut body = Downstream { origin, flight, filtered, filter_ended: !filtered, trailers: None, tunnel: None };
        if body.origin_ended() {
            body.give_back();
        }
        body
    }

    /// The body comes from the upstream and has not been read to its end.
    pub(crate) fn is_upstreams(&self) -> bool {
        matches!(&self.origin, Origin::Upstream { from: Some(_), .. })
    }

    /// Whether more of it may be read than a slow client takes. What speaks HTTP/2 to the upstream, gRPC above all, is
    /// kept in step with its client.
    pub(crate) fn reads_ahead(&self) -> bool {
        let wanted = || self.flight.context.route.as_ref().is_none_or(|route| route.response_buffering != Some(false));
        let comes = matches!(&self.origin, Origin::Upstream { from: Some((_, key)), .. } if !key.http2);
        comes && wanted() && !self.flight.worker.stats.is_overloaded()
    }

    /// Goes on sending the request while nobody takes the response.
    pub(crate) fn poll_send(&mut self, task: &mut Context<'_>) {
        if let Origin::Upstream { from: Some((connection, _)), .. } = &mut self.origin {
            connection.poll_send(task);
        }
    }

    /// The response has no body, whatever there is.
    pub(crate) fn leave_out(&mut self) {
        self.give_back();
        (self.origin, self.filter_ended, self.trailers) = (Origin::Whole(None), true, None);
    }

    pub(crate) fn set_tunnel(&mut self, tunnel: Tunnel) {
        self.tunnel = Some(tunnel);
    }

    pub(crate) fn take_tunnel(&mut self) -> Option<Tunnel> {
        self.tunnel.take()
    }

    fn origin_ended(&self) -> bool {
        match &self.origin {
            Origin::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Origin::Upstream { from, .. } => from.as_ref().is_none_or(|(connection, _)| connection.is_end()),
        }
    }

    /// Returns the connection to the pool as soon as the response has been read.
    fn give_back(&mut self) {
        if let Origin::Upstream { from, .. } = &mut self.origin
            && let Some((connection, key)) = from.take()
        {
            self.flight.worker.pool.put(key, connection);
        }
    }

    fn poll_origin(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let (connection, stalled) = match &mut self.origin {
            Origin::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Origin::Upstream { from: None, .. } => return Poll::Ready(None),
            Origin::Upstream { from: Some((connection, _)), stalled } => (connection, stalled),
        };
        match connection.poll_body(task) {
            Poll::Ready(frame) => {
                *stalled = None;
                if frame.is_none() || self.origin_ended() {
                    self.give_back();
                }
                Poll::Ready(frame.map(|frame| frame.map_err(BodyFault::Upstream)))
            }
            Poll::Pending => {
                let limit = self.flight.context.upstream.as_ref().map(|upstream| upstream.read_timeout);
                let Some(limit) = limit else { return Poll::Pending };
                let timer = stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
                ready!(timer.as_mut().poll(task));
                Poll::Ready(Some(Err(BodyFault::Stalled)))
            }
        }
    }

    fn filter(&mut self, mut part: Bytes, last: bool) -> Result<Bytes, BodyFault> {
        self.filter_ended |= last;
        let flight = &mut *self.flight;
        flight.run.body_filter(&mut flight.context, &mut part, last).map_err(|_| BodyFault::Plugin)?;
        Ok(part)
    }

    /// The next part after the filters; parts that they swallowed are left out.
    fn poll_filtered(&mut self, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        loop {
            if self.filter_ended {
                return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            }
            let part = match ready!(self.poll_origin(task)) {
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(part) => {
                        let last = self.origin_ended();
                        self.filter(part, last)
                    }
                    Err(frame) => {
                        self.trailers = frame.into_trailers().ok();
                        self.filter(Bytes::new(), true)
                    }
                },
                None => self.filter(Bytes::new(), true),
            };
            match part {
                Ok(part) if part.is_empty() => {}
                part => return Poll::Ready(Some(part.map(Frame::data))),
            }
        }
    }
}

impl Body for Downstream {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let body = self.get_mut();
        let frame = ready!(if body.filtered { body.poll_filtered(task) } else { body.poll_origin(task) });
        match &frame {
            Some(Ok(frame)) => body.flight.context.response_size += frame.data_ref().map_or(0, Bytes::len) as u64,
            Some(Err(fault)) => tracing::warn!(request_id = body.flight.context.id(), error = %fault, "response cut"),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.filter_ended && self.trailers.is_none() && self.origin_ended()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.origin {
            _ if self.filtered => SizeHint::default(),
            Origin::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Origin::Upstream { from: Some((connection, _)), .. } => connection.size_hint(),
            Origin::Upstream { from: None, .. } => SizeHint::with_exact(0),
        }
    }
}
