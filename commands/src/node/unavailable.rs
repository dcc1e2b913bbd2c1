//! Plugins that can be configured but not run by this build: those it does not have, and those it has with settings it
//! cannot honour (a counter in Redis, say).
//!
//! A request that meets one is refused: what was to guard or change it is missing, and to let it pass would be worse.
//! Plugins that only write logs or metrics are left out with a warning. Everything else is served: one row of a
//! configuration must not take the others down.

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
        Ok(Missing::of(name, facts, "it is not part of this version"))
    }
}

/// A host whose plugins with settings it cannot honour are [`Unavailable`].
pub(crate) struct Degraded<H>(pub(crate) H);

impl<H: PluginHost> PluginHost for Degraded<H> {
    fn priority(&self, name: &str) -> Option<i64> {
        self.0.priority(name)
    }

    fn build(&self, name: &str, config: &Record, facts: &PluginFacts) -> Built {
        self.0.build(name, config, facts).or_else(|error| Ok(Missing::of(name, facts, &error.to_string())))
    }
}

struct Missing {
    name: Arc<str>,
    observer: bool,
}

impl Missing {
    fn of(name: &str, facts: &PluginFacts, why: &str) -> Arc<dyn Plugin> {
        let observer = OBSERVERS.contains(&name);
        let effect = if observer { "it has no effect" } else { "requests that meet it are answered 503" };
        tracing::warn!(plugin = name, id = %facts.id, why, effect, "plugin cannot be run");
        Arc::new(Self { name: facts.name.clone(), observer })
    }
}

impl Plugin for Missing {
    fn phases(&self) -> Phases {
        if self.observer { Phases::NONE } else { Phases::ACCESS }
    }

    fn access<'a>(&'a self, _context: &'a mut Context) -> Step<'a> {
        Exit::page(StatusCode::SERVICE_UNAVAILABLE, format!("plugin '{}' cannot be run by this node", self.name)).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_plugins::{EmptyDirectory, Node, PluginError};

    /// A host whose plugins build with nothing.
    struct Broken;

    impl PluginHost for Broken {
        fn priority(&self, name: &str) -> Option<i64> {
            (name != "unknown").then_some(7)
        }

        fn build(&self, _name: &str, _config: &Record, _facts: &PluginFacts) -> Built {
            Err(PluginError("no such setting".to_owned()))
        }
    }

    #[test]
    fn what_a_host_cannot_build_answers_in_its_place_and_observers_are_left_out() {
        let host = Degraded(Broken);
        assert_eq!((host.priority("cors"), host.priority("unknown")), (Some(7), None));
        let facts = PluginFacts {
            id: "p".into(),
            name: "cors".into(),
            instance_name: None,
            service: None,
            route: None,
            consumer: None,
            node: Arc::new(Node::new("n", "h", Arc::new(EmptyDirectory))),
        };
        let phases = |name: &str| host.build(name, &Record::new(), &facts).map(|plugin| plugin.phases()).ok();
        assert_eq!(phases("cors"), Some(Phases::ACCESS));
        assert_eq!(phases("http-log"), Some(Phases::NONE));
    }
}
