//! The access logs: a line for each request, or for each stream, written by a thread of its own so that none waits for a
//! disk.
//!
//! Each worker collects lines in a buffer and hands full ones over. When the writer falls behind, lines are dropped and
//! counted rather than requests held up. A file that was renamed or removed (logrotate) is opened anew by itself.

mod line;
mod stream_line;

use crate::refused::Refused;
use crate::stream::session::Session;
use gwctl_plugins::Context;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes a worker collects before it hands them over.
const BUFFER: usize = 32 * 1024;
/// How long a line may stay with its worker.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// Buffers that wait for the writer at most: 8 MiB.
const WAITING: usize = 256;
/// How often the writer looks whether its file is still the one of that name, and tells of trouble.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const TROUBLE_INTERVAL: Duration = Duration::from_secs(60);

/// Where the lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessTarget {
    /// A file, appended to.
    File(PathBuf),
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessFormat {
    /// Kong's form for streams; for requests the same as `Combined`.
    Basic,
    /// For requests nginx's `combined` with Kong's request id behind it, for streams `Basic` with upstream, server name
    /// and route behind it.
    Combined,
    /// One JSON object.
    Json,
}

/// The access log as configured.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessLogOptions {
    /// Where the lines go.
    pub target: AccessTarget,
    /// Their form.
    pub format: AccessFormat,
    /// Part of the requests or streams that is written, 0 to 1; those with a status of 500 and above always are.
    pub sample: f64,
}

/// The writer's thread, and what workers make their collectors from.
#[derive(Debug)]
pub(crate) struct AccessLog {
    collectors: Collectors,
    reopen: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// What workers make their collectors from.
#[derive(Debug, Clone)]
pub(crate) struct Collectors {
    options: AccessLogOptions,
    buffers: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl AccessLog {
    /// Opens the target and starts the writer.
    ///
    /// # Errors
    /// When the file cannot be opened or the thread not be started.
    pub(crate) fn start(options: AccessLogOptions) -> io::Result<Self> {
        let out = Out::open(&options.target)?;
        let (buffers, waiting) = sync_channel(WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let reopen = Arc::<AtomicBool>::default();
        let (target, asked) = (options.target.clone(), reopen.clone());
        let writer = Writer { out, target, dropped: dropped.clone(), reopen: asked, told: None };
        let thread = std::thread::Builder::new().name("access-log".to_owned()).spawn(move || writer.run(&waiting))?;
        Ok(Self { collectors: Collectors { options, buffers, dropped }, reopen, thread })
    }

    /// Makes collectors for workers.
    pub(crate) fn collectors(&self) -> Collectors {
        self.collectors.clone()
    }

    /// Opens its file anew before the next line, whether it was moved or not.
    pub(crate) fn reopen(&self) {
        self.reopen.store(true, Ordering::Relaxed);
        // The writer may sleep; nothing to write wakes it.
        let _ = self.collectors.buffers.try_send(Vec::new());
    }

    /// Waits until everything is written; all collectors must be gone.
    pub(crate) fn finish(self) {
        drop(self.collectors);
        if self.thread.join().is_err() {
            tracing::error!("the writer of the access log panicked");
        }
    }
}

impl Collectors {
    /// A collector for one worker.
    pub(crate) fn collector(&self) -> Collector {
        Collector {
            format: self.options.format,
            sample: self.options.sample,
            due: Cell::new(0.0),
            buffer: RefCell::new(Vec::with_capacity(BUFFER + 1024)),
            buffers: self.buffers.clone(),
            dropped: self.dropped.clone(),
        }
    }
}

/// Lines of one worker.
#[derive(Debug)]
pub(crate) struct Collector {
    format: AccessFormat,
    sample: f64,
    /// Parts of a line that are due: one is written whenever they come to a whole one.
    due: Cell<f64>,
    buffer: RefCell<Vec<u8>>,
    buffers: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

impl Collector {
    /// Adds the line of a request that has ended.
    pub(crate) fn add(&self, context: &Context) {
        let failed = context.response.as_ref().is_some_and(|response| response.status.is_server_error());
        self.write(failed, |buffer| match self.format {
            AccessFormat::Basic | AccessFormat::Combined => line::combined(buffer, context),
            AccessFormat::Json => line::json(buffer, context),
        });
    }

    /// Adds the line of what was refused before it was a request.
    pub(crate) fn refuse(&self, refused: &Refused<'_>) {
        self.write(refused.status.is_server_error(), |buffer| match self.format {
            AccessFormat::Basic | AccessFormat::Combined => line::refused(buffer, refused),
            AccessFormat::Json => line::refused_json(buffer, refused),
        });
    }

    /// Adds the line of a stream that has ended.
    pub(crate) fn add_stream(&self, session: &Session) {
        self.write(session.status >= 500, |buffer| match self.format {
            AccessFormat::Basic => stream_line::basic(buffer, session),
            AccessFormat::Combined => stream_line::combined(buffer, session),
            AccessFormat::Json => stream_line::json(buffer, session),
        });
    }

    fn write(&self, failed: bool, line: impl FnOnce(&mut Vec<u8>)) {
        if !self.chosen(failed) {
            return;
        }
        let mut buffer = self.buffer.borrow_mut();
        line(&mut buffer);
        if buffer.len() >= BUFFER {
            self.hand_over(&mut buffer);
        }
    }

    fn chosen(&self, failed: bool) -> bool {
        let due = self.due.get() + self.sample;
        self.due.set(if due >= 1.0 { due - 1.0 } else { due });
        due >= 1.0 || failed
    }

    /// Hands over what there is.
    pub(crate) fn flush(&self) {
        let mut buffer = self.buffer.borrow_mut();
        if !buffer.is_empty() {
            self.hand_over(&mut buffer);
        }
    }

    fn hand_over(&self, buffer: &mut Vec<u8>) {
        let full = std::mem::replace(buffer, Vec::with_capacity(BUFFER + 1024));
        if let Err(error) = self.buffers.try_send(full) {
            let (std::sync::mpsc::TrySendError::Full(lost) | std::sync::mpsc::TrySendError::Disconnected(lost)) = error;
            let lines = lost.iter().filter(|byte| **byte == b'\n').count();
            self.dropped.fetch_add(lines as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.flush();
    }
}

enum Out {
    File(File, PathBuf),
    Stdout,
    Stderr,
}

impl Out {
    fn open(target: &AccessTarget) -> io::Result<Self> {
        Ok(match target {
            AccessTarget::File(path) => Self::File(append(path)?, path.clone()),
            AccessTarget::Stdout => Self::Stdout,
            AccessTarget::Stderr => Self::Stderr,
        })
    }

    /// Whether the file's name has become another file's or nobody's.
    fn moved(&self) -> bool {
        let Self::File(file, path) = self else { return false };
        match (file.metadata(), std::fs::metadata(path)) {
            (Ok(open), Ok(named)) => (open.dev(), open.ino()) != (named.dev(), named.ino()),
            (_, Err(error)) => error.kind() == io::ErrorKind::NotFound,
            (Err(_), _) => false,
        }
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file, _) => file.write_all(lines),
            Self::Stdout => io::stdout().lock().write_all(lines),
            Self::Stderr => io::stderr().lock().write_all(lines),
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    File::options().create(true).append(true).open(path)
}

struct Writer {
    out: Out,
    target: AccessTarget,
    dropped: Arc<AtomicU64>,
    /// Set by whoever wants the file opened anew.
    reopen: Arc<AtomicBool>,
    /// When trouble was last told.
    told: Option<Instant>,
}

impl Writer {
    fn run(mut self, waiting: &Receiver<Vec<u8>>) {
        let mut looked = Instant::now();
        loop {
            let received = waiting.recv_timeout(LOOK_INTERVAL);
            if self.reopen.swap(false, Ordering::Relaxed) {
                self.open_anew();
            }
            match received {
                Ok(lines) => {
                    if let Err(error) = self.out.write(&lines) {
                        self.trouble(&format!("cannot write the access log: {error}"));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if looked.elapsed() >= LOOK_INTERVAL {
                looked = Instant::now();
                self.look();
            }
        }
    }

    fn look(&mut self) {
        if self.out.moved() {
            self.open_anew();
        }
        let lost = self.dropped.load(Ordering::Relaxed);
        if lost > 0 && self.trouble(&format!("{lost} lines of the access log were dropped: its disk is too slow")) {
            self.dropped.fetch_sub(lost, Ordering::Relaxed);
        }
    }

    fn open_anew(&mut self) {
        match Out::open(&self.target) {
            Ok(out) => self.out = out,
            Err(error) => _ = self.trouble(&format!("cannot open the access log anew: {error}")),
        }
    }

    /// Tells of trouble, not more than once a minute; whether it did.
    fn trouble(&mut self, words: &str) -> bool {
        let tell = self.told.is_none_or(|told| told.elapsed() >= TROUBLE_INTERVAL);
        if tell {
            self.told = Some(Instant::now());
            tracing::warn!(target = ?self.target, "{words}");
        }
        tell
    }
}

#[cfg(test)]
pub(crate) mod tests;
