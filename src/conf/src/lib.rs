//! Settings of a node: `kong.conf` text, environment and flags to a [`NodeConf`].
//!
//! The same keys, defaults and text forms as Kong 3.9.1, so that an existing `kong.conf` or a set of `KONG_*` variables
//! works unchanged. Precedence, weakest first: default, file, `KONG_*`, `GWCTL_*`, flag. An empty text means unset.
//!
//! The crate is pure: [`load`] is given the text of the file and the environment, and reports every mistake at once.
//! Certificates and keys are only classified; [`NodeConf::read_materials`] reads them through a function it is given.
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod check;
mod json;
mod keys;
mod listener;
mod material;
mod names;
mod near;
mod node;
mod parts;
mod problem;
mod reload;
mod settings;
mod show;
#[cfg(test)]
mod tests;
mod text;
mod value;

pub use keys::{KEYS, Key, Kind, Roles, key};
pub use listener::{KeepAlive, Listener};
pub use material::{Material, Materials};
pub use names::{BUNDLED_PLUGINS, BUNDLED_VAULTS};
pub use near::{nearest, nearest_key};
pub use node::{
    AccessForm, AccessLog, AdminAuth, Cluster, Database, Dns, Flavor, HeaderBuffers, Limits, LogLevel, Logs, Lua,
    MaxMemory, Mtls, NodeConf, Ocsp, RealIp, Role, Tls, TlsPair, Tracing, UpstreamKeepalive, Workers,
};
pub use problem::{ConfigError, Origin, Problem};
pub use reload::is_reloadable;
pub use settings::{Flag, Loaded, Sources, load};
pub use show::Shown;
