//! A response on its way to a client of HTTP/1.

use crate::body::{BodyFault, Downstream, READ_AHEAD, Reply};
use crate::clock;
use crate::server::client::{Client, Shared};
use crate::transport::Outbox;
use crate::upgrade::Tunnel;
use bytes::Bytes;
use gwctl_http1::names::{CONNECTION, CONTENT_LENGTH, DATE};
use gwctl_http1::{Framing, Persistence, write_chunk_size, write_last_chunk, write_response};
use gwctl_http1::{Headers, Value};
use http::{HeaderMap, Method, StatusCode, Version};
use http_body::{Body, Frame};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// No more of a body is taken while so much of it waits to be written.
const MOST_WAITING: usize = 128 * 1024;
/// A client is told that its connection goes on when no more is left of a body that it has yet to send.
const MOST_SKIPPED: u64 = 64 * 1024;

/// What of a request says how it is answered.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Client and node are ready for another request.
    pub(crate) keep_alive: bool,
}

/// See the module.
pub(crate) struct Answer {
    out: Outbox,
    body: Downstream,
    framing: Framing,
    /// Bytes that were declared and have not come.
    left: u64,
    ended: bool,
    failed: bool,
    keep_alive: bool,
}

impl Answer {
    /// Writes the head, not to the client yet.
    pub(crate) fn new(asked: &Asked, client: &mut Client, reply: Reply) -> Answer {
        let Reply { status, mut headers, body } = reply;
        let framing = framing(asked, status, &mut headers, &body);
        let wanted = asked.keep_alive && !headers.get(CONNECTION).is_some_and(closes);
        let keep_alive = wanted && framing != Framing::UntilClose && can_go_on(client, &body);
        let persistence = match asked.version {
            _ if status == StatusCode::SWITCHING_PROTOCOLS => Persistence::Upgrade,
            _ if !keep_alive => Persistence::Close,
            Version::HTTP_10 => Persistence::Told,
            _ => Persistence::Usual,
        };
        let mut out = Outbox::reused();
        let interim = client.take_interim();
        let date = if headers.contains(DATE) { [b' '; DATE_LENGTH] } else { date() };
        out.write(|out| {
            out.extend_from_slice(interim);
            write_response(out, status, &headers, framing, persistence, &date);
        });
        let left = if let Framing::Length(length) = framing { length } else { 0 };
        let ended = matches!(framing, Framing::None | Framing::Length(0));
        Answer { out, body, framing, left, ended, failed: false, keep_alive }
    }

    /// Writes all of it; true when another request may follow.
    pub(crate) fn poll(&mut self, task: &mut Context<'_>, client: &Shared) -> Poll<io::Result<bool>> {
        loop {
            let waits = self.fill(task, MOST_WAITING);
            let client = &mut *client.borrow_mut();
            match self.out.poll_write(task, client.stream(), |_| {}) {
                Poll::Ready(Ok(())) if self.failed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Poll::Ready(Ok(())) if self.ended => return Poll::Ready(Ok(self.keep_alive)),
                Poll::Ready(Ok(())) if waits => {
                    ready!(client.poll_gone(task));
                    return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        // The client takes nothing for now; what it still sends goes to the upstream all the same.
        if !self.ended && self.body.reads_ahead() {
            self.fill(task, READ_AHEAD);
        }
        self.body.poll_send(task);
        Poll::Pending
    }

    /// Takes what there is of the body; true when the rest is still to come.
    fn fill(&mut self, task: &mut Context<'_>, most: usize) -> bool {
        while !self.ended && !self.failed && self.out.len() < most {
            match Pin::new(&mut self.body).poll_frame(task) {
                Poll::Pending => return true,
                Poll::Ready(frame) => self.take(frame),
            }
        }
        false
    }

    fn take(&mut self, frame: Option<Result<Frame<Bytes>, BodyFault>>) {
        match frame {
            None => self.end(None),
            // The head and what came so far is still sent, and then the connection is cut.
            Some(Err(_)) => self.failed = true,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => self.data(data),
                Err(frame) => self.end(frame.into_trailers().ok()),
            },
        }
    }

    fn data(&mut self, mut data: Bytes) {
        match self.framing {
            Framing::Length(_) => {
                let length = data.len() as u64;
                if length > self.left {
                    data.truncate(self.left as usize);
                    (self.failed, self.left) = (true, length);
                }
                self.left -= length;
                self.out.push(data);
                self.ended = self.left == 0 && !self.failed;
            }
            Framing::Chunked => {
                self.out.write(|out| write_chunk_size(out, data.len()));
                self.out.push(data);
                self.out.write(|out| out.extend_from_slice(b"\r\n"));
                if self.body.is_end_stream() {
                    self.end(None);
                }
            }
            Framing::UntilClose => self.out.push(data),
            Framing::None => {}
        }
    }

    fn end(&mut self, trailers: Option<HeaderMap>) {
        match self.framing {
            Framing::Chunked => self.out.write(|out| write_last_chunk(out, trailers.as_ref())),
            Framing::Length(_) if self.left > 0 => return self.failed = true,
            _ => {}
        }
        self.ended = true;
    }

    /// What the connection goes on as. The request has ended.
    pub(crate) fn take_tunnel(mut self) -> Option<Tunnel> {
        self.body.take_tunnel()
    }
}

fn closes(value: Value<'_>) -> bool {
    value.as_bytes().eq_ignore_ascii_case(b"close")
}

/// Whether what the client has yet to send can be read to its end.
fn can_go_on(client: &Client, body: &Downstream) -> bool {
    if client.is_read() || client.is_broken() {
        return !client.is_broken();
    }
    !client.withholds() && (client.left().is_some_and(|left| left <= MOST_SKIPPED) || body.is_upstreams())
}

/// How the body is sent; takes the length off a head that must not have one.
fn framing(asked: &Asked, status: StatusCode, headers: &mut Headers, body: &Downstream) -> Framing {
    if status.is_informational() || status == StatusCode::NO_CONTENT {
        headers.remove(CONTENT_LENGTH);
        return Framing::None;
    }
    if asked.method == Method::HEAD || status == StatusCode::NOT_MODIFIED {
        return Framing::None;
    }
    let declared = headers.get_str(CONTENT_LENGTH).and_then(|length| length.parse().ok());
    match declared.or_else(|| body.size_hint().exact()) {
        Some(length) => Framing::Length(length),
        None if asked.version == Version::HTTP_10 => Framing::UntilClose,
        None => Framing::Chunked,
    }
}

const DATE_LENGTH: usize = 29;

/// The time in the form of `Date`, made once a second.
pub(crate) fn date() -> [u8; DATE_LENGTH] {
    thread_local! {
        static LAST: Cell<(u64, [u8; DATE_LENGTH])> = const { Cell::new((u64::MAX, [b' '; DATE_LENGTH])) };
    }
    let now = clock::since_1970().as_secs();
    let (second, text) = LAST.get();
    if second == now {
        return text;
    }
    let text = written(now);
    LAST.set((now, text));
    text
}

fn written(seconds: u64) -> [u8; DATE_LENGTH] {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = time::OffsetDateTime::from_unix_timestamp(seconds as i64).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let day = DAYS[usize::from(time.weekday().number_days_from_monday()) % 7];
    let month = MONTHS[usize::from(u8::from(time.month()) - 1) % 12];
    let (hour, minute, second) = time.to_hms();
    let text =
        format!("{day}, {:02} {month} {:04} {hour:02}:{minute:02}:{second:02} GMT", time.day(), time.year() % 10_000);
    let mut date = [b' '; DATE_LENGTH];
    date.iter_mut().zip(text.bytes()).for_each(|(place, byte)| *place = byte);
    date
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_are_written_as_http_has_them() {
        assert_eq!(&super::written(784_111_777), b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(&super::written(0), b"Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
