//! Whom a worker takes in: when connections or file descriptors run out, clients are turned away early rather than
//! served badly.

use crate::options::ProxyOptions;
use crate::stats::{Shed, Stats};
use std::cell::Cell;
use std::os::fd::AsRawFd;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

/// Part of the file descriptors that is kept for upstream connections, logs and health checks: a tenth, within bounds.
const RESERVED: (u64, u64) = (16, 512);
/// Clients whose refusal may take a while, at once in each worker.
const LINGERING: usize = 64;
/// How long a refusal may take.
const LINGER: Duration = Duration::from_secs(1);
/// Time between warnings.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// What a client hears that is turned away.
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Retry-After: 1\r\nConnection: close\r\nContent-Length: 19\r\n\r\nService overloaded\n";

/// Of one worker.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    lingering: Cell<usize>,
    warned: Cell<Option<Instant>>,
}

impl Admission {
    /// Why this client cannot be taken in; None: it can. The kernel gives the lowest free number to each descriptor, so
    /// a high one tells that nearly all are taken.
    pub(crate) fn refusal(&self, stream: &impl AsRawFd, options: &ProxyOptions, stats: &Stats) -> Option<Shed> {
        let reason = if is_high(stream, options) {
            Shed::Files
        } else if options.max_connections > 0 && stats.active() >= options.max_connections {
            Shed::Connections
        } else {
            return None;
        };
        self.shed(reason, options, stats);
        Some(reason)
    }

    /// Whether there are as many UDP sessions, or connections, as there may be.
    pub(crate) fn refuses_session(&self, options: &ProxyOptions, stats: &Stats) -> bool {
        let reason = if options.max_udp_sessions > 0 && stats.sessions() >= options.max_udp_sessions {
            Shed::Sessions
        } else if options.max_connections > 0 && stats.active() >= options.max_connections {
            Shed::Connections
        } else {
            return false;
        };
        self.shed(reason, options, stats);
        true
    }

    /// Whether a socket has taken one of the last file descriptors.
    pub(crate) fn is_short_of_files(&self, socket: &impl AsRawFd, options: &ProxyOptions, stats: &Stats) -> bool {
        let is_high = is_high(socket, options);
        if is_high {
            self.shed(Shed::Files, options, stats);
        }
        is_high
    }

    fn shed(&self, reason: Shed, options: &ProxyOptions, stats: &Stats) {
        stats.shed(reason);
        self.warn(|| match reason {
            Shed::Files => tracing::warn!(
                limit = options.max_files,
                "file descriptors run out, clients are answered 503; raise the limit with `ulimit -n` or LimitNOFILE="
            ),
            Shed::Sessions => tracing::warn!(
                limit = options.max_udp_sessions,
                "stream_max_udp_sessions is reached, datagrams of further clients are dropped"
            ),
            _ => tracing::warn!(
                limit = options.max_connections,
                "proxy_max_connections is reached, clients are answered 503"
            ),
        });
    }

    /// Tells what is wrong, not more than once a minute.
    pub(crate) fn warn(&self, tell: impl FnOnce()) {
        if self.warned.get().is_none_or(|warned| warned.elapsed() >= WARN_INTERVAL) {
            self.warned.set(Some(Instant::now()));
            tell();
        }
    }

    /// Answers 503 where HTTP is spoken in plain text, and closes. A few clients get the time to send the request that
    /// is answered: to close before it comes would reset the connection and the answer with it.
    pub(crate) async fn turn_away(&self, mut stream: TcpStream, plain_http: bool) {
        if !plain_http || self.lingering.get() >= LINGERING {
            return;
        }
        self.lingering.set(self.lingering.get() + 1);
        let refuse = async {
            stream.write_all(REFUSAL).await?;
            stream.shutdown().await?;
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // The client is gone or slow: either way it is let go.
        let _ = timeout(LINGER, refuse).await;
        self.lingering.set(self.lingering.get() - 1);
    }
}

fn is_high(socket: &impl AsRawFd, options: &ProxyOptions) -> bool {
    let number = u64::try_from(socket.as_raw_fd()).unwrap_or(0);
    options.max_files > 0 && number >= usable_files(options.max_files)
}

/// The number from which on descriptors are kept back.
fn usable_files(limit: u64) -> u64 {
    limit - (limit / 10).clamp(RESERVED.0, RESERVED.1).min(limit / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_files_is_kept_back_within_bounds() {
        assert_eq!([16, 64, 1024, 1 << 20].map(usable_files), [8, 48, 922, (1 << 20) - 512]);
    }
}
