//! Changing and stopping the request path while it runs.

use crate::access_log::{AccessLog, AccessLogOptions, AccessTarget};
use crate::options::ProxyOptions;
use crate::proxy::ProxyError;
use crate::worker::{Drain, Settings, Stopping};
use gwctl_certs::ListenerPairs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What changes a [`crate::Proxy`] while it runs. Clones share it.
#[derive(Debug, Clone)]
pub struct ProxyControl {
    stop: watch::Sender<bool>,
    drain: watch::Sender<Drain>,
    settings: watch::Sender<Settings>,
    own: ListenerPairs,
    access_log: Arc<Mutex<Option<AccessLog>>>,
}

/// A reload that has been checked.
pub struct ProxyReload {
    options: ProxyOptions,
    access_log: Option<Option<AccessLog>>,
}

impl ProxyControl {
    pub(crate) fn new(
        options: ProxyOptions,
        own: ListenerPairs,
    ) -> Result<(Self, Stopping, watch::Receiver<Drain>, watch::Receiver<Settings>), ProxyError> {
        let access_log = options.access_log.clone().map(open_access_log).transpose()?;
        let (stop, stopping) = watch::channel(false);
        let (drain, limits) = watch::channel(Drain::all(options.shutdown_timeout));
        let collectors = access_log.as_ref().map(AccessLog::collectors);
        let (settings, in_force) = watch::channel(Settings { options: Arc::new(options), collectors });
        let access_log = Arc::new(Mutex::new(access_log));
        Ok((Self { stop, drain, settings, own, access_log }, stopping, limits, in_force))
    }

    /// The settings in force.
    pub fn options(&self) -> Arc<ProxyOptions> {
        self.settings.borrow().options.clone()
    }

    /// Checks settings that are to replace those in force, and opens the access log if it is another one. Listeners,
    /// workers, names and authorities stay as they are.
    ///
    /// # Errors
    /// The access log cannot be opened.
    pub fn reload(&self, options: ProxyOptions) -> Result<ProxyReload, ProxyError> {
        let old = self.options();
        let options = ProxyOptions {
            listeners: old.listeners.clone(),
            streams: old.streams.clone(),
            workers: old.workers,
            dns: old.dns.clone(),
            trusted_certificates: old.trusted_certificates.clone(),
            trust_system: old.trust_system,
            ..options
        };
        let other_log = options.access_log != old.access_log;
        let access_log = other_log.then(|| options.access_log.clone().map(open_access_log).transpose()).transpose()?;
        Ok(ProxyReload { options, access_log })
    }

    /// Puts a reload in force: at once for new requests, whatever their connection; connections that are open keep the
    /// time-outs they began with.
    pub fn commit(&self, reload: ProxyReload) {
        let ProxyReload { options, access_log } = reload;
        if !options.certificates.is_empty() {
            self.own.renew(&options.certificates);
        }
        let mut log = self.log();
        if let Some(other) = access_log {
            // The thread of the one before ends with the last request that writes to it.
            *log = other;
        }
        let collectors = log.as_ref().map(AccessLog::collectors);
        self.settings.send_replace(Settings { options: Arc::new(options), collectors });
    }

    /// Opens the file of the access log anew, after a rotation.
    pub fn reopen_log(&self) {
        if let Some(log) = &*self.log() {
            log.reopen();
        }
    }

    /// Makes the time for what is in flight after a stop shorter.
    pub fn hasten(&self, drain: Drain) {
        self.drain.send_replace(drain);
    }

    pub(crate) fn stop(&self, drain: Drain) {
        if !self.stop.send_replace(true) {
            self.drain.send_replace(drain);
        }
    }

    pub(crate) fn finish_log(&self) {
        // The settings hold what collectors are made from, which keeps the writer waiting.
        self.settings.send_modify(|settings| settings.collectors = None);
        if let Some(log) = self.log().take() {
            log.finish();
        }
    }

    fn log(&self) -> MutexGuard<'_, Option<AccessLog>> {
        // It holds a handle or none.
        self.access_log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open_access_log(options: AccessLogOptions) -> Result<AccessLog, ProxyError> {
    let target = match &options.target {
        AccessTarget::File(path) => path.display().to_string(),
        AccessTarget::Stdout => "/dev/stdout".to_owned(),
        AccessTarget::Stderr => "/dev/stderr".to_owned(),
    };
    AccessLog::start(options).map_err(|source| ProxyError::IoAccessLog { target, source })
}
