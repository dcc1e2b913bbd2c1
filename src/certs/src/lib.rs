//! Certificates of a cluster and of listeners: issue them, read them, and judge peers by them.
//!
//! Two ways for the peers of a cluster to know each other ([`Trust`]): all carry one shared certificate, which is
//! pinned; or an authority issues one to each. Kong generates X.509 v1 certificates for the first way, which web PKI
//! libraries refuse to parse, so the proof that a peer holds its key is checked here without them.
//!
//! Texts come in as PEM and go out as PEM; files are read and written elsewhere. Only keys draw randomness.
#![warn(missing_docs)]
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod chain;
mod client;
mod error;
mod facts;
mod identity;
mod issue;
mod ocsp;
mod possession;
mod server;
#[cfg(test)]
mod tests;

pub use client::{SHARED_NAME, cluster_client_config, cluster_server_name};
pub use error::CertError;
pub use facts::Facts;
pub use identity::{Identity, Source, read_certificates, read_roots};
pub use issue::{Authority, CLUSTER_DAYS, PemPair, cluster_pair, self_signed};
pub use ocsp::{OcspFault, OcspQuestion};
pub use server::{Answer, ListenerPairs, Peers, Refusal, Trust, listener_config, listener_config_of};
