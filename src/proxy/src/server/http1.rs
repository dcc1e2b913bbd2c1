//! A client's connection over HTTP/1: one request after the other, in the order they came.

use crate::arrival::{Arrival, ArrivingBody, Head, Origin};
use crate::clock;
use crate::patience::{Patient, is_due};
use crate::phases::serve;
use crate::refused::Refusal;
use crate::server::answer::{Answer, Asked, date};
use crate::server::client::{Client, NoRequest, Shared};
use crate::server::desk::{Desk, Job};
use crate::server::stopped;
use crate::server::upload::{LINGERS, LINGERS_PAUSE};
use crate::transport::{Outbox, Transport};
use crate::upgrade::{Tunnel, splice};
use crate::worker::{Stopping, Worker};
use bytes::Bytes;
use gwctl_http1::names::{CONTENT_LENGTH, SERVER, X_KONG_REQUEST_ID};
use gwctl_http1::{Framing, Headers, Limits, Persistence, RequestHead, Value, write_response};
use gwctl_plugins::Exit;
use http::{Method, StatusCode, Version};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, sleep, timeout};

/// Header lines of a request.
const MOST_FIELDS: usize = 1000;
/// How long, and how much, is read of a client that was refused, so that it sees why before the connection closes.
const LINGER: Duration = Duration::from_secs(2);
const MOST_LINGERED: usize = 1024 * 1024;

/// Time for the first request of a connection once the node stops.
const FRESH_LIMIT: Duration = Duration::from_secs(1);

/// Who else but the body of a request holds its client: the connection and the desk.
const OWNERS: usize = 2;

/// How a request ended.
pub(super) enum End {
    Next,
    Closed,
    Switched(Tunnel),
}

impl Worker {
    /// Serves requests until either side has had enough.
    pub(crate) async fn http1(
        self: Rc<Self>,
        stream: Transport<Patient>,
        origin: Rc<Origin>,
        stopping: Stopping,
    ) -> io::Result<()> {
        let client = Rc::new(RefCell::new(Client::new(stream)));
        let limits =
            Limits { size: self.options.max_head_size + self.options.max_target_size + 1024, fields: MOST_FIELDS };
        let mut stop = pin!(stopped(stopping.clone()));
        let mut watches = false;
        let mut timer = pin!(sleep(self.options.header_timeout));
        let (mut fresh, mut told) = (true, false);
        let (keeps, most) = (!self.options.keepalive_timeout.is_zero(), self.options.keepalive_requests);
        let mut requests = 0;
        let stopping = Rc::new(stopping);
        clock::turn();
        loop {
            let mut begun = fresh;
            let wait = if fresh { self.options.header_timeout } else { self.options.keepalive_timeout };
            let mut deadline = Instant::from_std(clock::now()) + wait;
            let (mut seen, mut waited) = (0, false);
            let next = poll_fn(|task| {
                let shared = &client;
                let mut client = client.borrow_mut();
                // The first time is still in the turn that ended the last request.
                if std::mem::replace(&mut waited, true) {
                    clock::turn();
                }
                if let Poll::Ready(head) = client.poll_head(task, &mut seen, &limits) {
                    return Poll::Ready(head.and_then(|head| self.arrive(shared, &origin, head)));
                }
                if !begun && !client.is_idle() {
                    begun = true;
                    deadline = Instant::now() + self.options.header_timeout;
                }
                // The task is known there from the first time on.
                let is_still = watches && matches!(stopping.has_changed(), Ok(false));
                if !told && client.is_idle() && !is_still && stop.as_mut().poll(task).is_ready() {
                    told = true;
                    // Whoever has only just connected has a request on its way.
                    deadline = deadline.min(Instant::now() + FRESH_LIMIT);
                }
                watches |= client.is_idle();
                if told && !fresh {
                    return Poll::Ready(Err(NoRequest::Closed));
                }
                if is_due(timer.as_mut(), deadline, task) {
                    return Poll::Ready(Err(NoRequest::TimedOut));
                }
                Poll::Pending
            });
            // What a request needs lives at a desk: an idle connection stays small.
            let end = match next.await {
                Ok((arrival, mut asked)) => {
                    requests += 1;
                    asked.keep_alive &= keeps && requests < most;
                    let (worker, client, stopping) = (self.clone(), client.clone(), stopping.clone());
                    Desk::serve(Job { worker, client, stopping, arrival, asked }).await?
                }
                Err(NoRequest::Closed | NoRequest::TimedOut) if client.borrow().is_idle() => return Ok(()),
                // As nginx, which does not answer either.
                Err(NoRequest::Closed) => {
                    self.tell_unanswered(&origin, StatusCode::BAD_REQUEST, "closed within the head");
                    return Ok(());
                }
                Err(NoRequest::TimedOut) => {
                    self.tell_unanswered(&origin, StatusCode::REQUEST_TIMEOUT, "the head did not come in time");
                    return Ok(());
                }
                Err(NoRequest::Refused(refusal)) => {
                    return Box::pin(self.refuse(&client, &origin, &refusal)).await;
                }
            };
            fresh = false;
            match end {
                End::Next => client.borrow_mut().rest(),
                End::Closed => return Box::pin(close(&client)).await,
                End::Switched(tunnel) => {
                    let client = Rc::try_unwrap(client).map_err(|_| io::Error::other("request still alive"))?;
                    return Box::pin(splice(client.into_inner().into_stream(), tunnel)).await;
                }
            }
        }
    }

    /// What a head asks for, and how it is to be answered.
    fn arrive(
        self: &Rc<Self>,
        client: &Shared,
        origin: &Origin,
        head: RequestHead,
    ) -> Result<(Arrival, Asked), NoRequest> {
        let RequestHead { method, target, version, headers, framing, keep_alive, .. } = head;
        if method == Method::CONNECT {
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed", "connect is not served");
            return Err(NoRequest::Refused(refusal));
        }
        let body = match framing {
            Framing::Length(length) => ArrivingBody::Http1(client.clone(), Some(length)),
            Framing::Chunked => ArrivingBody::Http1(client.clone(), None),
            Framing::None | Framing::UntilClose => ArrivingBody::None,
        };
        let asked = Asked { method: method.clone(), version, keep_alive };
        Ok((Arrival::new(&self.latest(), origin, Head { method, target, version, headers }, body), asked))
    }

    pub(super) async fn request(
        self: &Rc<Self>,
        client: &Shared,
        arrival: Arrival,
        mut asked: Asked,
        stopping: &Stopping,
    ) -> io::Result<End> {
        let mut serving = pin!(serve(arrival));
        let mut begun = false;
        let response = poll_fn(|task| {
            if std::mem::replace(&mut begun, true) {
                clock::turn();
            }
            if let Poll::Ready(response) = serving.as_mut().poll(task) {
                return Poll::Ready(Some(response));
            }
            client.borrow_mut().poll_gone(task).map(|()| None)
        });
        let Some(response) = response.await else { return Ok(End::Closed) };
        asked.keep_alive &= !*stopping.borrow();
        begun = false;
        let mut answer = Answer::new(&asked, &mut client.borrow_mut(), response);
        let goes_on = poll_fn(|task| {
            // The first time is still in the turn in which the response came.
            if std::mem::replace(&mut begun, true) {
                clock::turn();
            }
            answer.poll(task, client)
        })
        .await?;
        if let Some(tunnel) = answer.take_tunnel() {
            return Ok(End::Switched(tunnel));
        }
        // HTTP/2 towards the upstream reads the body in a task of its own, which may outlive the answer and would take
        // from the next request.
        let goes_on = goes_on && Rc::strong_count(client) == OWNERS && skip_body(client).await;
        Ok(if goes_on { End::Next } else { End::Closed })
    }

    /// Answers what is no request and closes.
    pub(crate) async fn refuse(self: &Rc<Self>, client: &Shared, origin: &Origin, refusal: &Refusal) -> io::Result<()> {
        self.answer_alone(client, origin, refusal).await?;
        close(client).await
    }

    /// An answer that belongs to no request.
    async fn answer_alone(self: &Rc<Self>, client: &Shared, origin: &Origin, refusal: &Refusal) -> io::Result<()> {
        let worker = self.latest();
        let options = &worker.options;
        let (id, status) = (worker.ids.next(), refusal.status);
        let mut exit = Exit::fault(status, refusal.message);
        let body = exit.render_by((Version::HTTP_11, &Headers::new()), id.as_str(), &options.error_templates);
        worker.tell_refused(origin, status, &refusal.reason, body.len(), id.as_str());
        let mut headers = exit.headers;
        headers.remove(CONTENT_LENGTH);
        if options.headers.server {
            headers.insert(SERVER, Value::from_static(crate::SERVER_NAME));
        }
        if options.headers.request_id {
            headers.insert(X_KONG_REQUEST_ID, id);
        }
        let framing = Framing::Length(body.len() as u64);
        let mut out = Outbox::default();
        out.write(|out| write_response(out, status, &headers, framing, Persistence::Close, &date()));
        out.push(Bytes::clone(&body));
        poll_fn(|task| out.poll_write(task, client.borrow_mut().stream(), |_| {})).await
    }
}

/// Reads what is left of the request's body; false when the connection cannot go on, and then it is not tried again.
async fn skip_body(client: &Shared) -> bool {
    if client.borrow().is_read() {
        return true;
    }
    if client.borrow().is_broken() || client.borrow().withholds() {
        return false;
    }
    let skipping = async {
        loop {
            let part = timeout(LINGERS_PAUSE, poll_fn(|task| client.borrow_mut().poll_part(task))).await;
            match part {
                Ok(Some(Ok(_))) => {}
                Ok(None) => return true,
                Ok(Some(Err(_))) | Err(_) => return false,
            }
        }
    };
    let skipped = timeout(LINGERS, skipping).await.unwrap_or(false);
    clock::turn();
    if !skipped {
        client.borrow_mut().give_up();
    }
    skipped
}

/// Closes so that the client can read the answer: a client that is still sending would otherwise be reset.
async fn close(client: &Shared) -> io::Result<()> {
    let shutting = poll_fn(|task| Pin::new(client.borrow_mut().stream()).poll_shutdown(task));
    timeout(LINGER, shutting).await.unwrap_or(Ok(()))?;
    // Else somebody reads it for an upstream.
    if Rc::strong_count(client) == 1 {
        skip_body(client).await;
    }
    let closing = async {
        let mut read = 0;
        while client.borrow().has_more() || read > 0 {
            let count = poll_fn(|task| client.borrow_mut().poll_discard(task)).await?;
            read += count;
            if count == 0 || read > MOST_LINGERED {
                break;
            }
        }
        Ok(())
    };
    timeout(LINGER, closing).await.unwrap_or(Ok(()))
}
