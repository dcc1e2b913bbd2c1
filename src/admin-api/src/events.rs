//! `GET /gwctl/events`: a stream of server-sent events.
//!
//! `change` for each version, with its number as id (a client that comes back with `Last-Event-ID` misses none),
//! `joined`, `left`, `applied` and `refused` for data planes, `missed` when a client was too slow for those. A version is
//! told before anything about a data plane that came later.

use crate::answer::Answer;
use crate::api::Api;
use crate::caller::{self, Caller};
use crate::history;
use crate::record_log::{FleetNews, SummaryAfter};
use crate::request::Request;
use bytes::Bytes;
use gwctl_entities::{EntityError, Value};
use gwctl_lifecycle::{Phase, Task, spawn};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, watch};

/// Events waiting for one client.
const QUEUE: usize = 64;
/// Records of a version that are named; all are counted.
const NAMED_RECORDS: usize = 100;

/// Body of an answer: whole, or a stream of events.
pub(crate) enum AnswerBody {
    Whole(Full<Bytes>),
    Events(EventStream),
}

/// Events of one client; the task behind it ends with it.
pub(crate) struct EventStream {
    events: mpsc::Receiver<Bytes>,
    _task: Task,
    _slot: OwnedSemaphorePermit,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(context),
            Self::Events(stream) => {
                stream.events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// Begins a stream, or tells why there is none.
pub(crate) fn open(
    api: &Api,
    request: &Request,
    last_event: Option<&str>,
    stopping: watch::Receiver<bool>,
) -> Result<EventStream, Answer> {
    let Some(versions) = api.backend.versions() else {
        return Err(Answer::message(400, "this node has no log of changes: ask a control plane"));
    };
    let since = match request.query.text("since").or(last_event) {
        None => *versions.borrow(),
        Some(text) => text.parse().map_err(|_| Answer::message(400, "since must be a version, a whole number"))?,
    };
    let Ok(slot) = api.event_slots.clone().try_acquire_owned() else {
        return Err(Answer::message(503, "too many streams of events are open").with_header("retry-after", "5"));
    };
    let (queue, events) = mpsc::channel(QUEUE);
    let fleet = api.backend.fleet_news();
    let (caller, heartbeat) = (request.caller.clone(), api.limits.heartbeat);
    let feed = Feed { api: api.clone(), caller, queue, versions, fleet, shown: since, heartbeat };
    let task = spawn("admin events", Phase::StopAccepting, feed.run(stopping));
    Ok(EventStream { events, _task: task, _slot: slot })
}

/// What wakes a feed.
enum Event {
    Changed,
    Fleet(Result<FleetNews, RecvError>),
    Heartbeat,
    End,
}

/// What feeds one stream.
struct Feed {
    api: Api,
    /// Who asked for it; the stream ends with their token.
    caller: Caller,
    queue: mpsc::Sender<Bytes>,
    versions: watch::Receiver<u64>,
    fleet: Option<broadcast::Receiver<FleetNews>>,
    /// The newest version told.
    shown: u64,
    heartbeat: Duration,
}

impl Feed {
    async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let hello = json!({ "version": self.shown });
        let mut going = self.send("hello", Some(self.shown), &hello).await && self.catch_up().await;
        while going {
            let event = tokio::select! {
                changed = self.versions.changed() => changed.map_or(Event::End, |()| Event::Changed),
                news = next(&mut self.fleet) => Event::Fleet(news),
                () = tokio::time::sleep(self.heartbeat) => Event::Heartbeat,
                () = stopped(&mut stopping) => Event::End,
            };
            going = self.is_still_admitted().await
                && match event {
                    Event::Changed => self.catch_up().await,
                    // It may be of a version that has not been told yet.
                    Event::Fleet(news) => self.catch_up_if_changed().await && self.pass_on(news).await,
                    Event::Heartbeat => self.queue.send(Bytes::from_static(b":\n\n")).await.is_ok(),
                    Event::End => false,
                };
        }
    }

    async fn is_still_admitted(&self) -> bool {
        if self.caller == Caller::Open {
            return true;
        }
        let (backend, caller) = (self.api.backend.clone(), self.caller.clone());
        let admitted = tokio::task::spawn_blocking(move || caller::is_still_admitted(backend.as_ref(), &caller)).await;
        admitted.unwrap_or(false)
    }

    async fn catch_up_if_changed(&mut self) -> bool {
        !self.versions.has_changed().unwrap_or(false) || self.catch_up().await
    }

    /// Tells every version up to the newest.
    async fn catch_up(&mut self) -> bool {
        self.versions.mark_unchanged();
        loop {
            let (backend, shown) = (self.api.backend.clone(), self.shown);
            let found = tokio::task::spawn_blocking(move || backend.summary_after(shown, NAMED_RECORDS)).await;
            let found = match found.map_err(|error| EntityError::Database(error.to_string())) {
                Ok(Ok(found)) => found,
                Ok(Err(error)) | Err(error) => {
                    tracing::error!(%error, "cannot read the log of changes for a stream of events");
                    return false;
                }
            };
            let (event, data) = match found {
                SummaryAfter::Nothing => return true,
                SummaryAfter::Version(summary) => {
                    self.shown = summary.heading.version;
                    ("change", history::shown(&summary))
                }
                SummaryAfter::Forgotten { oldest } => {
                    let newest = *self.versions.borrow();
                    let gap = json!({"after": self.shown, "oldest": oldest, "version": newest});
                    self.shown = newest;
                    ("forgotten", gap)
                }
            };
            if !self.send(event, Some(self.shown), &data).await {
                return false;
            }
        }
    }

    async fn pass_on(&mut self, news: Result<FleetNews, RecvError>) -> bool {
        match news {
            Ok(news) => {
                let data = json!({
                    "id": news.id,
                    "hostname": news.hostname,
                    "sync_status": news.sync_status,
                    "config_hash": news.config_hash,
                    "version": news.version,
                    "detail": news.detail,
                });
                self.send(news.what, None, &data).await
            }
            Err(RecvError::Lagged(count)) => self.send("missed", None, &json!({ "events": count })).await,
            Err(RecvError::Closed) => {
                self.fleet = None;
                true
            }
        }
    }

    /// False once the client is gone.
    async fn send(&self, event: &str, id: Option<u64>, data: &Value) -> bool {
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        self.queue.send(Bytes::from(format!("event: {event}\n{id}data: {data}\n\n"))).await.is_ok()
    }
}

/// Waits until the node stops, or the listener is gone.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// The next news; waits for ever where there are none.
async fn next(fleet: &mut Option<broadcast::Receiver<FleetNews>>) -> Result<FleetNews, RecvError> {
    match fleet {
        Some(fleet) => fleet.recv().await,
        None => std::future::pending().await,
    }
}
