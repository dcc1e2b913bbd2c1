//! A request from its arrival to the last byte of its response.

use crate::arrival::ArrivingBody;
use crate::balancer::{Lease, set_cookie};
use crate::body::{Downstream, Origin, Reply};
use crate::clock;
use crate::plans::Plan;
use crate::respond::{add_headers, from_upstream, set_length};
use crate::snapshot::Snapshot;
use crate::upstream::connection::ResponseHead;
use crate::upstream::outbound::Inbound;
use crate::upstream::send::Answered;
use crate::worker::Worker;
use gwctl_http1::Headers;
use gwctl_plugins::{Context, Exit, Failure, Phases, Response, Run, Source};
use http::StatusCode;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// What belongs to one request. Dropped when its response has been handed over or given up: that is when it is logged.
pub(crate) struct Flight {
    pub(crate) worker: Rc<Worker>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) context: Context,
    pub(crate) run: Run,
    /// What is known of the way to the service.
    pub(crate) plan: Option<Arc<Plan>>,
    /// Body bytes read from the client; None when there is no body.
    pub(crate) read: Option<Rc<Cell<u64>>>,
    /// Counts the request at its target until it ends.
    pub(crate) lease: Option<Lease>,
}

impl Flight {
    /// Answers without an upstream. Later phases run; `source` tells an answer made on purpose from an error.
    pub(crate) fn answer(mut self: Box<Self>, mut exit: Exit, source: Source) -> Reply {
        let mut body = exit.render_by(self.asked(), self.context.id(), &self.worker.options.error_templates);
        self.context.response = Some(Response { status: exit.status, headers: exit.headers, source });
        if let Some(response) = &mut self.context.response {
            let given = response.headers.contains(gwctl_http1::names::CONTENT_LENGTH);
            if !given {
                set_length(response, body.len());
            }
        }
        match self.header_filter() {
            Ok(None) => {}
            Ok(Some(replacement)) => body = self.replace(*replacement, Source::Exit),
            Err(_) => body = self.replace(crashed(), Source::Error),
        }
        add_headers(&mut self.context, &self.worker.options, None);
        self.reply(Origin::Whole(Some(body)))
    }

    /// Passes on the response of the upstream.
    pub(crate) fn pass_on(mut self: Box<Self>, answered: Box<Answered>) -> Reply {
        let Answered { head, connection, key, lease, cookie } = *answered;
        let ResponseHead { status, version, headers } = head;
        self.lease = lease;
        self.context.times.answered = Some(self.context.times.until(clock::now()));
        let mut response = from_upstream(headers, status);
        if let Some(cookie) = cookie {
            set_cookie(&mut response.headers, cookie);
        }
        self.context.response = Some(response);
        let replacement = match self.header_filter() {
            Ok(exit) => exit.map(|exit| (*exit, Source::Exit)),
            Err(_) => Some((crashed(), Source::Error)),
        };
        let origin = match replacement {
            Some((exit, source)) => Origin::Whole(Some(self.replace(exit, source))),
            None => Origin::upstream(connection, key),
        };
        add_headers(&mut self.context, &self.worker.options, Some((version, status)));
        self.reply(origin)
    }

    fn header_filter(&mut self) -> Result<Option<Box<Exit>>, Failure> {
        let filtered = self.run.header_filter(&mut self.context);
        if self.run.has(Phases::HEADER_FILTER) {
            clock::turn();
        }
        filtered
    }

    /// What the form of an answer depends on.
    fn asked(&self) -> (http::Version, &Headers) {
        (self.context.request.version, &self.context.request.headers)
    }

    /// Puts another answer in place of the response; its body is returned.
    fn replace(&mut self, mut exit: Exit, source: Source) -> bytes::Bytes {
        let body = exit.render_by(self.asked(), self.context.id(), &self.worker.options.error_templates);
        let mut response = Response { status: exit.status, headers: exit.headers, source };
        set_length(&mut response, body.len());
        self.context.response = Some(response);
        body
    }

    /// The response to send. A copy of its headers stays for the phases to come, if there are any.
    fn reply(mut self: Box<Self>, origin: Origin) -> Reply {
        let watched = self.run.has(Phases::BODY_FILTER) || self.run.has(Phases::LOG);
        let (status, headers) = match &mut self.context.response {
            Some(response) if watched => (response.status, response.headers.clone()),
            Some(response) => (response.status, std::mem::take(&mut response.headers)),
            None => (StatusCode::OK, Headers::new()),
        };
        Reply { status, headers, body: Downstream::new(origin, self) }
    }

    /// The client's body for this request.
    pub(crate) fn inbound(&mut self, body: ArrivingBody) -> Box<Inbound> {
        let read = self.read.get_or_insert_default().clone();
        Box::new(Inbound::new(body, self.worker.options.client_max_body_size, read))
    }
}

/// The answer to a failed plugin.
pub(crate) fn crashed() -> Exit {
    Exit::page(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred")
}

impl Drop for Flight {
    fn drop(&mut self) {
        let context = &mut self.context;
        if self.worker.cutting.get() {
            // By nobody's turn.
            clock::turn();
        }
        context.times.ended = Some(context.times.until(clock::now()));
        context.request_size += self.read.as_ref().map_or(0, |read| read.get());
        if self.worker.cutting.get() {
            let route = context.route.as_ref().map(|route| route.name.as_deref().unwrap_or(&route.id));
            tracing::warn!(
                request_id = context.id(),
                client = %context.client.ip,
                method = %context.request.method,
                path = context.request.uri.path(),
                route,
                age_ms = context.times.until(clock::now()).as_millis(),
                bytes_received = context.request_size,
                bytes_sent = context.response_size,
                "request cut at the end of the deadline"
            );
        }
        // A panic on the way here is told already; another one would end the process.
        if !std::thread::panicking() {
            self.run.log(context);
        }
        self.worker.recorder.count(context);
        if let Some(log) = &self.worker.access_log {
            log.add(context);
        }
    }
}
