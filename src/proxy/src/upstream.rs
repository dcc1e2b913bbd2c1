//! The way to the upstream: names, connections, attempts.

pub(crate) mod connection;
pub(crate) mod dns;
mod http1;
pub(crate) mod outbound;
pub(crate) mod pool;
pub(crate) mod send;
mod streams;
pub(crate) mod target;
pub(crate) mod tls;
