//! The request path: from a client's connection to the upstream and back.
//!
//! Each worker is a thread with a single-threaded runtime, its own listening sockets and its own upstream connections;
//! workers share the snapshot in force ([`SnapshotHandle`]) and atomic counters ([`Stats`]). A request takes the
//! snapshot in force when it arrives and keeps it to its end.
//!
//! - [`tables`], [`snapshot`]: the configuration as rows, and as the request path reads it.
//! - `arrival`, `phases`, `flight`, `body`: one request, from its head to the last byte of its response.
//! - [`access_log`], [`metrics`], [`stats`]: what is told of requests.
//! - `clock`, `keyed`: the time of a turn, maps by ids.
//! - `admission`: whom a worker turns away; `control`: reloads and stops; `supervise`: workers that die.
//! - `refused`: clients whose requests could not be read.
//! - `proxy_header`: what a balancer in front says of a connection.
//! - `forward`, `respond`: headers towards the upstream and towards the client.
//! - `balancer`, `prober`, `names`, `health`: choosing targets, what is known of them, probing and resolving them.
//! - `stream`: connections that are passed on as bytes, without HTTP.
//! - `transport`, `server`, `upgrade`: clients' connections, with our own codec for HTTP/1.
//! - `upstream`: names, connections, attempts. Only its `connection` and `http1`, and `server` for the clients' side, know how
//!   HTTP is spoken; the rest sees heads and bodies.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

pub mod access_log;
mod admission;
mod arrival;
mod balancer;
mod balancers;
mod body;
mod buffering;
mod certificates;
mod clock;
mod control;
mod flight;
mod forward;
mod health;
mod keyed;
mod listen;
pub mod metrics;
mod names;
pub mod options;
mod patience;
mod phases;
mod plans;
mod prober;
mod proxy;
mod proxy_header;
mod refused;
mod respond;
mod secure_door;
mod server;
pub mod snapshot;
pub mod stats;
mod stream;
mod supervise;
pub mod tables;
mod transport;
mod unrun;
mod upgrade;
mod upstream;
mod worker;

pub use access_log::{AccessFormat, AccessLogOptions, AccessTarget};
pub use balancer::BalancerOptions;
pub use control::{ProxyControl, ProxyReload};
pub use health::MarkRefusal;
pub use listen::{Sockets, listen, listen_beside, listen_datagrams, listen_datagrams_beside};
pub use metrics::Metrics;
pub use options::{AddedHeaders, DnsOptions, DnsOrder, Listener, Network, ProxyOptions, StreamListener, TlsVersions};
pub use proxy::{Proxy, ProxyError};
pub use snapshot::{Snapshot, SnapshotHandle, SnapshotOptions};
pub use stats::{Shed, Stats, StatsNow};
pub use tables::{Problem, Tables};
pub use upstream::tls::UpstreamTls;
pub use worker::Drain;

/// Value of `Server` on own answers.
pub(crate) const SERVER_NAME: &str = "kong/3.9.1";
/// This node in `Via`, by the protocol version of the message: 1.1, 2, 1.0.
pub(crate) const VIA_NAME: [&str; 3] = ["1.1 kong/3.9.1", "2 kong/3.9.1", "1.0 kong/3.9.1"];
