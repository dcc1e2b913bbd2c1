//! What was refused before it was a request: no plugin saw it, the access log and the figures tell of it all the same.

use crate::arrival::{Origin, unix_millis};
use crate::worker::Worker;
use gwctl_http1::Fault;
use http::StatusCode;
use std::net::IpAddr;
use std::rc::Rc;

/// Something a client sent that was no request, or none that is served.
pub(crate) struct Refused<'a> {
    pub(crate) client: IpAddr,
    pub(crate) at_millis: u64,
    pub(crate) status: StatusCode,
    /// What was wrong with it, in words; nothing of what the client sent.
    pub(crate) reason: &'a str,
    /// Bytes of the answer's body.
    pub(crate) sent: u64,
    pub(crate) id: &'a str,
}

/// Why a client was refused: status, page and words for the log.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: &'static str,
    pub(crate) reason: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: &'static str, reason: &str) -> Refusal {
        Refusal { status, message, reason: reason.to_owned() }
    }

    pub(crate) fn plain_at_tls() -> Refusal {
        let message = "The plain HTTP request was sent to HTTPS port";
        Self::new(StatusCode::BAD_REQUEST, message, "plain http at a listener with tls")
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let message = match fault {
            Fault::HeadTooLong | Fault::TooManyFields => "Request header or cookie too large",
            Fault::FirstLineTooLong => "URI too long",
            Fault::Version => "HTTP version not supported",
            Fault::UnknownCoding => "Not implemented",
            _ => "Bad request",
        };
        Self::new(fault.status(), message, &fault.to_string())
    }
}

impl Worker {
    /// The same without an answer.
    pub(crate) fn tell_unanswered(self: &Rc<Self>, origin: &Origin, status: StatusCode, reason: &str) {
        let worker = self.latest();
        worker.tell_refused(origin, status, reason, 0, worker.ids.next().as_str());
    }

    /// Tells of a refusal in the access log and in the figures. `sent` is the size of the answer's body, `id` its request
    /// id.
    pub(crate) fn tell_refused(&self, origin: &Origin, status: StatusCode, reason: &str, sent: usize, id: &str) {
        let client = origin.named.unwrap_or(origin.peer).ip().to_canonical();
        tracing::debug!(%client, status = status.as_u16(), reason, "refused");
        let sent = sent as u64;
        self.recorder.refuse(status.as_u16(), sent);
        if let Some(log) = &self.access_log {
            log.refuse(&Refused { client, at_millis: unix_millis(), status, reason, sent, id });
        }
    }
}
