//! Plugins: what they are to the request path, and the native ones.
//!
//! A configured plugin is one [`Plugin`] object, built from its validated settings by a [`PluginHost`] when a snapshot
//! is built and shared by all workers. A request carries one [`Context`] through the phases; [`Chains`] knows which
//! configured plugins a request meets and [`Run`] calls them in order.
//!
//! - [`plugin`]: the trait, its phases and what a phase answers ([`Step`]).
//! - [`context`]: everything a plugin sees and changes of one request.
//! - [`exit`]: answers made by the node itself, and its error pages.
//! - [`chain`]: which plugins run, in which order.
//! - [`export`]: sending what plugins tell of requests to other servers, beside the requests.
//! - [`node`]: what requests share: the directory of records, counters.
//! - [`trace`]: the steps of a request, for tracing.
//! - [`native`]: the table of native plugins.

pub mod chain;
pub mod context;
pub mod counters;
pub mod exit;
pub mod export;
pub mod native;
pub mod node;
pub mod plugin;
pub mod slots;
pub mod trace;

pub use chain::{Builder, Chain, ChainProblem, Chains, Configured, Failure, Run};
pub use context::{
    Body, BodyError, BodyStream, Client, Context, Request, Response, Scheme, Source, Times, Try, Upstream,
};
pub use counters::Counters;
pub use exit::{Exit, ExitBody, PageFormat, TemplateError, Templates};
pub use export::{Exported, Exports};
pub use native::{Built, Native, Natives, natives};
pub use node::{Authorities, Directory, DirectoryError, EmptyDirectory, Node};
pub use plugin::{Needs, Phases, Plugin, PluginError, PluginFacts, PluginHost, Step};
pub use slots::Slots;
pub use trace::{Stage, Trace, Tracing};
