//! Changing and stopping the request path while it runs.

use crate::access_log::{AccessLog, AccessLogOptions, AccessTarget};
use crate::options::ProxyOptions;
use crate::proxy::ProxyError;
use crate::secure_door::SecureDoor;
use crate::worker::{Drain, Settings, Stopping};
use gwctl_certs::ListenerPairs;
use rustls::ServerConfig;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What changes a [`crate::Proxy`] while it runs. Clones share it.
#[derive(Debug, Clone)]
pub struct ProxyControl {
    stop: watch::Sender<bool>,
    drain: watch::Sender<Drain>,
    settings: watch::Sender<Settings>,
    own: ListenerPairs,
    doors: Arc<[SecureDoor]>,
    logs: Arc<Mutex<Logs>>,
}

/// The access logs in force.
#[derive(Debug)]
struct Logs {
    requests: Option<AccessLog>,
    streams: Option<AccessLog>,
}

impl Logs {
    fn settings(&self, options: ProxyOptions) -> Settings {
        Settings {
            options: Arc::new(options),
            collectors: self.requests.as_ref().map(AccessLog::collectors),
            stream_collectors: self.streams.as_ref().map(AccessLog::collectors),
        }
    }
}

/// A reload that has been checked.
pub struct ProxyReload {
    options: ProxyOptions,
    /// Of all doors, where they are others.
    doors: Option<Vec<Arc<ServerConfig>>>,
    /// Set where it is another one, the next too.
    access_log: Option<Option<AccessLog>>,
    stream_log: Option<Option<AccessLog>>,
}

impl ProxyControl {
    pub(crate) fn new(
        options: ProxyOptions,
        own: ListenerPairs,
        doors: Vec<SecureDoor>,
    ) -> Result<(Self, Stopping, watch::Receiver<Drain>, watch::Receiver<Settings>), ProxyError> {
        let requests = open_access_log(options.access_log.as_ref())?;
        let logs = Logs { requests, streams: open_access_log(options.stream_access_log.as_ref())? };
        let (stop, stopping) = watch::channel(false);
        let (drain, limits) = watch::channel(Drain::all(options.shutdown_timeout));
        let (settings, in_force) = watch::channel(logs.settings(options));
        let logs = Arc::new(Mutex::new(logs));
        let doors = doors.into();
        Ok((Self { stop, drain, settings, own, doors, logs }, stopping, limits, in_force))
    }

    /// The settings in force.
    pub fn options(&self) -> Arc<ProxyOptions> {
        self.settings.borrow().options.clone()
    }

    /// Checks settings that are to replace those in force, and opens the access logs if they are others. Listeners,
    /// workers and names stay as they are.
    ///
    /// # Errors
    /// An access log cannot be opened, or the TLS library refuses its settings.
    pub fn reload(&self, options: ProxyOptions) -> Result<ProxyReload, ProxyError> {
        let old = self.options();
        let options = ProxyOptions {
            listeners: old.listeners.clone(),
            streams: old.streams.clone(),
            workers: old.workers,
            dns: old.dns.clone(),
            ..options
        };
        let other = |new: &Option<AccessLogOptions>, old: &Option<AccessLogOptions>| {
            (new != old).then(|| open_access_log(new.as_ref())).transpose()
        };
        let access_log = other(&options.access_log, &old.access_log)?;
        let stream_log = other(&options.stream_access_log, &old.stream_access_log)?;
        let doors = (options.tls_versions != old.tls_versions).then(|| {
            let versions = options.tls_versions.supported();
            self.doors.iter().map(|door| door.with(versions)).collect()
        });
        Ok(ProxyReload { options, doors: doors.transpose()?, access_log, stream_log })
    }

    /// Puts a reload in force: at once for new requests, whatever their connection; connections that are open keep the
    /// time-outs they began with.
    pub fn commit(&self, reload: ProxyReload) {
        let ProxyReload { options, doors, access_log, stream_log } = reload;
        if !options.certificates.is_empty() {
            self.own.renew(&options.certificates);
        }
        for (door, config) in self.doors.iter().zip(doors.into_iter().flatten()) {
            door.change(config);
        }
        let mut logs = self.logs();
        // The thread of the one before ends with the last request or stream that writes to it.
        if let Some(other) = access_log {
            logs.requests = other;
        }
        if let Some(other) = stream_log {
            logs.streams = other;
        }
        self.settings.send_replace(logs.settings(options));
    }

    /// Opens the files of the access logs anew, after a rotation.
    pub fn reopen_log(&self) {
        let logs = self.logs();
        [&logs.requests, &logs.streams].into_iter().flatten().for_each(AccessLog::reopen);
    }

    /// Makes the time for what is in flight after a stop shorter.
    pub fn hasten(&self, drain: Drain) {
        self.drain.send_replace(drain);
    }

    /// The time for what is in flight after a stop.
    pub(crate) fn drain(&self) -> Drain {
        *self.drain.borrow()
    }

    pub(crate) fn stop(&self, drain: Drain) {
        if !self.stop.send_replace(true) {
            self.drain.send_replace(drain);
        }
    }

    pub(crate) fn finish_log(&self) {
        // The settings hold what collectors are made from, which keeps the writer waiting.
        self.settings.send_modify(|settings| (settings.collectors, settings.stream_collectors) = (None, None));
        let mut logs = self.logs();
        [logs.requests.take(), logs.streams.take()].into_iter().flatten().for_each(AccessLog::finish);
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        // It holds handles or none.
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_access_log(options: Option<&AccessLogOptions>) -> Result<Option<AccessLog>, ProxyError> {
    let Some(options) = options else { return Ok(None) };
    let target = match &options.target {
        AccessTarget::File(path) => path.display().to_string(),
        AccessTarget::Stdout => "/dev/stdout".to_owned(),
        AccessTarget::Stderr => "/dev/stderr".to_owned(),
    };
    AccessLog::start(options.clone()).map(Some).map_err(|source| ProxyError::IoAccessLog { target, source })
}
