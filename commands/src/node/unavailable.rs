//! Plugins that can be configured but not run by this build.
//!
//! A node that is its own control plane accepts their configuration. A request that meets one is refused: what was to
//! guard or change it is missing, and to let it pass would be worse. Plugins that only write logs or metrics are left
//! out with a warning.

use gwctl_entities::Record;
use gwctl_plugins::{Built, Context, Exit, Phases, Plugin, PluginFacts, PluginHost, Step};
use hyper::StatusCode;
use std::sync::Arc;

/// Plugins whose absence changes nothing for a request.
const OBSERVERS: &[&str] = &[
    "datadog",
    "file-log",
    "http-log",
    "loggly",
    "opentelemetry",
    "prometheus",
    "statsd",
    "syslog",
    "tcp-log",
    "udp-log",
    "zipkin",
];

/// Host of every plugin that no other host has.
pub(crate) struct Unavailable;

impl PluginHost for Unavailable {
    fn priority(&self, _name: &str) -> Option<i64> {
        // Before all others: no answer may come from a request that was only half guarded.
        Some(i64::MAX)
    }

    fn build(&self, name: &str, _config: &Record, facts: &PluginFacts) -> Built {
        let observer = OBSERVERS.contains(&name);
        let effect = if observer { "it has no effect" } else { "requests that meet it are answered 503" };
        tracing::warn!(plugin = name, id = %facts.id, effect, "plugin cannot be run by this version");
        Ok(Arc::new(Missing { name: facts.name.clone(), observer }))
    }
}

struct Missing {
    name: Arc<str>,
    observer: bool,
}

impl Plugin for Missing {
    fn phases(&self) -> Phases {
        if self.observer { Phases::NONE } else { Phases::ACCESS }
    }

    fn access<'a>(&'a self, _context: &'a mut Context) -> Step<'a> {
        Exit::page(StatusCode::SERVICE_UNAVAILABLE, format!("plugin '{}' cannot be run by this node", self.name)).into()
    }
}
