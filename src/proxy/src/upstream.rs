//! The way to the upstream: names, connections, attempts.

pub(crate) mod connection;
pub(crate) mod dns;
pub(crate) mod outbound;
pub(crate) mod pool;
pub(crate) mod send;
pub(crate) mod tls;
