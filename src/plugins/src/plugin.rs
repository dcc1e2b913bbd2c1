//! The trait every plugin implements, native or scripted.

use crate::{Context, Exit, Node};
use bytes::Bytes;
use gwctl_entities::Record;
use std::fmt;
use std::future::Future;
use std::ops::BitOr;
use std::pin::Pin;
use std::sync::Arc;

/// The phases a plugin takes part in. A phase no plugin of a chain has costs the request nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases(u8);

impl Phases {
    /// None at all.
    pub const NONE: Phases = Phases(0);
    /// Before routing; only globally configured plugins.
    pub const REWRITE: Phases = Phases(1);
    /// After routing, before the upstream is asked.
    pub const ACCESS: Phases = Phases(2);
    /// The head of the response is known and not yet sent.
    pub const HEADER_FILTER: Phases = Phases(4);
    /// Each part of the response body.
    pub const BODY_FILTER: Phases = Phases(8);
    /// The response has been sent, or given up.
    pub const LOG: Phases = Phases(16);

    /// Whether all phases of `other` are in this set.
    pub const fn has(self, other: Phases) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub const fn and(self, other: Phases) -> Phases {
        Phases(self.0 | other.0)
    }
}

impl BitOr for Phases {
    type Output = Phases;

    fn bitor(self, other: Phases) -> Phases {
        self.and(other)
    }
}

impl fmt::Debug for Phases {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["rewrite", "access", "header_filter", "body_filter", "log"];
        out.debug_set().entries(names.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0)).finish()
    }
}

/// What the proxy must do for a plugin before calling it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The whole request body in memory before access ([`crate::Body::Buffered`]).
    pub request_body: bool,
    /// The groups of the route's regex path ([`Context::captures`]).
    pub captures: bool,
}

/// A plugin failed. The text is for the log; the client is told `An unexpected error occurred` with status 500.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(pub String);

/// What rewrite and access answer.
///
/// A plugin that does not wait returns one of the first three: no allocation, no future. `Wait` is for scripted
/// plugins and those that ask other servers; the worker goes on with other requests meanwhile.
pub enum Step<'a> {
    /// The next plugin, then the upstream.
    Next,
    /// The node answers by itself: the access handlers left are skipped, the later phases run.
    Exit(Box<Exit>),
    /// See [`PluginError`].
    Fail(PluginError),
    /// The answer comes later; it must not be another `Wait` without end.
    Wait(Pin<Box<dyn Future<Output = Step<'static>> + 'a>>),
}

impl From<Exit> for Step<'_> {
    fn from(exit: Exit) -> Self {
        Step::Exit(Box::new(exit))
    }
}

impl From<PluginError> for Step<'_> {
    fn from(error: PluginError) -> Self {
        Step::Fail(error)
    }
}

impl From<crate::DirectoryError> for Step<'_> {
    fn from(error: crate::DirectoryError) -> Self {
        Step::Fail(PluginError(error.to_string()))
    }
}

/// One configured plugin (one row of `plugins`), shared by all workers.
///
/// Only the methods of the phases named by [`Plugin::phases`] are called. What a plugin remembers of a request goes
/// to [`Context::slots`]; what it shares between requests goes to [`Node::counters`] or to its own atomics.
pub trait Plugin: Send + Sync {
    /// Asked once, when the chain is built.
    fn phases(&self) -> Phases;

    /// Asked once, when the chain is built.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Before routing: no route, service or consumer is known.
    fn rewrite<'a>(&'a self, _context: &'a mut Context) -> Step<'a> {
        Step::Next
    }

    /// Before the upstream is asked: may change the request, identify the consumer, answer by itself.
    fn access<'a>(&'a self, _context: &'a mut Context) -> Step<'a> {
        Step::Next
    }

    /// May change status and headers of [`Context::response`]. A plugin that will change the length of the body
    /// removes `content-length` here. An exit replaces the response.
    fn header_filter(&self, _context: &mut Context) -> Result<Option<Box<Exit>>, PluginError> {
        Ok(None)
    }

    /// Called for each part of the body and once with `last` set (its part may be empty). The plugin may replace the
    /// part; to see the body whole it keeps parts in a slot, empties them, and gives all out at the last call.
    /// An error cuts the connection, since the head is gone.
    fn body_filter(&self, _context: &mut Context, _part: &mut Bytes, _last: bool) -> Result<(), PluginError> {
        Ok(())
    }

    /// After the response. Must not block: hand entries to a queue.
    fn log(&self, _context: &mut Context) {}
}

/// What a plugin may know when it is built, besides its `config`.
#[derive(Clone)]
pub struct PluginFacts {
    /// Id of the row.
    pub id: Arc<str>,
    /// Plugin name.
    pub name: Arc<str>,
    /// `instance_name` of the row.
    pub instance_name: Option<Arc<str>>,
    /// Ids the row is bound to.
    pub service: Option<Arc<str>>,
    pub route: Option<Arc<str>>,
    pub consumer: Option<Arc<str>>,
    /// What the node shares between requests.
    pub node: Arc<Node>,
}

/// Something that builds plugins: the native table, the Lua host.
pub trait PluginHost: Send + Sync {
    /// Priority of the plugin; None when this host does not know the name.
    fn priority(&self, name: &str) -> Option<i64>;

    /// Builds one configured plugin. `config` has passed the plugin's schema and is complete. Only called for names
    /// with a priority.
    fn build(&self, name: &str, config: &Record, facts: &PluginFacts) -> Result<Arc<dyn Plugin>, PluginError>;
}
