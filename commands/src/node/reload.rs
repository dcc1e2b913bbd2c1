//! Reading the settings again while the node runs: all of them are checked before any is put in force.

use super::logging::Logging;
use crate::cli::SettingsArgs;
use crate::failure::Failure;
use crate::settings;
use gwctl_conf::{Materials, NodeConf, is_reloadable};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Puts in force what was checked.
pub(crate) type Commit = Box<dyn FnOnce() + Send>;

/// Checks settings for one part of the node.
type Part = Box<dyn Fn(&NodeConf, &Materials) -> Result<Commit, Failure> + Send + Sync>;

/// The parts of a node that take settings over.
#[derive(Default)]
pub(crate) struct Parts {
    parts: Mutex<Vec<Part>>,
    /// Checks and puts in force in one go: comes after all checks, and only when settings are read again.
    last: Mutex<Option<Last>>,
}

type Last = Box<dyn Fn(&NodeConf) -> Result<(), Failure> + Send + Sync>;

impl Parts {
    /// Adds a part. What it is given in settings that need a restart must have no effect on it.
    pub(crate) fn add(&self, part: impl Fn(&NodeConf, &Materials) -> Result<Commit, Failure> + Send + Sync + 'static) {
        self.list().push(Box::new(part));
    }

    /// Sets the part that cannot check without putting in force. It changes nothing when it fails.
    pub(crate) fn set_last(&self, last: impl Fn(&NodeConf) -> Result<(), Failure> + Send + Sync + 'static) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(last));
    }

    fn load_last(&self, conf: &NodeConf) -> Result<(), Failure> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map_or(Ok(()), |last| last(conf))
    }

    fn list(&self) -> MutexGuard<'_, Vec<Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the settings come from, and which are in force.
pub(crate) struct Reloader {
    source: (SettingsArgs, Vec<(String, String)>),
    parts: Arc<Parts>,
    logging: Arc<Logging>,
    /// As the node was started.
    started: (NodeConf, Materials),
    in_force: NodeConf,
    materials: Materials,
}

/// What came of a reload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reloaded {
    /// Settings that are in force now, and were not before.
    pub(crate) applied: Vec<String>,
    /// Settings that were changed and need a restart.
    pub(crate) restart: Vec<String>,
}

impl Reloader {
    pub(crate) fn new(
        source: (SettingsArgs, Vec<(String, String)>),
        parts: Arc<Parts>,
        logging: Arc<Logging>,
        conf: &NodeConf,
        materials: &Materials,
    ) -> Self {
        let (in_force, materials) = (conf.clone(), materials.clone());
        let started = (conf.clone(), materials.clone());
        Self { source, parts, logging, started, in_force, materials }
    }

    /// The settings in force.
    pub(crate) fn conf(&self) -> &NodeConf {
        &self.in_force
    }

    /// Reads settings and certificates and puts them in force, or none of them.
    pub(crate) fn reload(&mut self) -> Result<Reloaded, Failure> {
        let (arguments, fixed) = &self.source;
        let fixed: Vec<_> = fixed.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let loaded = settings::read(arguments, &fixed)?;
        for warning in &loaded.warnings {
            tracing::warn!("{}", settings::line(warning));
        }
        self.take_over(loaded.conf, true)
    }

    /// Reads the certificates again, of the settings in force.
    pub(crate) fn renew_certificates(&mut self) -> Result<Reloaded, Failure> {
        self.take_over(self.in_force.clone(), false)
    }

    fn take_over(&mut self, conf: NodeConf, whole: bool) -> Result<Reloaded, Failure> {
        let materials = settings::materials(&conf)?;
        let checked: Vec<_> = self.parts.list().iter().map(|part| part(&conf, &materials)).collect();
        let (mut commits, mut faults) = (Vec::new(), Vec::new());
        for outcome in checked {
            match outcome {
                Ok(commit) => commits.push(commit),
                Err(failure) => faults.push(failure),
            }
        }
        if let Some(first) = faults.into_iter().next() {
            return Err(first);
        }
        if whole {
            self.parts.load_last(&conf)?;
        }
        commits.into_iter().for_each(|commit| commit());
        if conf.log_level != self.in_force.log_level
            && let Err(error) = self.logging.set_level(conf.log_level.as_str(), 0)
        {
            tracing::error!(error, "cannot change the log level");
        }
        let changed = self.in_force.changed(&conf);
        let mut applied: Vec<String> =
            changed.iter().filter(|key| is_reloadable(key)).map(|key| (*key).to_owned()).collect();
        let renewed = materials.changed(&self.materials).into_iter();
        applied.extend(renewed.filter(|key| is_reloadable(key) && !changed.contains(key)).map(str::to_owned));
        let (started, read) = &self.started;
        // Of a file that keeps its name, what it holds counts.
        let mut changed = started.changed(&conf);
        let renewed: Vec<_> = materials.changed(read).into_iter().filter(|key| !changed.contains(key)).collect();
        changed.extend(renewed);
        let restart = changed.into_iter().filter(|key| !is_reloadable(key)).map(str::to_owned).collect();
        (self.in_force, self.materials) = (conf, materials);
        Ok(Reloaded { applied, restart })
    }
}

impl Reloaded {
    /// Writes it to the log.
    pub(crate) fn log(&self) {
        tracing::info!(in_force = names(&self.applied), "settings reloaded");
        if !self.restart.is_empty() {
            tracing::warn!(
                settings = names(&self.restart),
                "changed settings need a restart, or SIGUSR2, to take effect"
            );
        }
    }

    /// The same for people.
    pub(crate) fn in_words(&self) -> String {
        let mut words = format!("in force: {}", names(&self.applied));
        if !self.restart.is_empty() {
            words += &format!("; not before a restart or `gwctl upgrade`: {}", names(&self.restart));
        }
        words
    }
}

fn names(names: &[String]) -> String {
    if names.is_empty() { "nothing changed".to_owned() } else { names.join(", ") }
}
