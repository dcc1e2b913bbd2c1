//! The request path over real sockets: a proxy between clients and upstreams of this process.
#![expect(clippy::unwrap_used, unreachable_pub, reason = "a test fails by panicking, and nobody else uses its modules")]

mod balancing;
mod buffering;
mod client_certificates;
mod codec;
mod failures;
mod forwarding;
mod framing;
mod grpc;
mod http2_abuse;
mod lifecycle;
mod naming;
mod plugins;
mod probing;
mod proxied;
mod refusals;
mod secure;
mod stage;
mod streams;
mod streams_life;
mod streams_log;
mod streams_metrics;
mod streams_tls;
mod streams_udp;
