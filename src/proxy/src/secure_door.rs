//! TLS of the listeners, as the settings in force say.

use crate::certificates::ByName;
use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs;
use rustls::{ServerConfig, SupportedProtocolVersion};
use std::fmt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Versions of TLS, as the library names them.
pub(crate) type Versions = &'static [&'static SupportedProtocolVersion];

/// Where clients of a listener shake hands. Clones share it; a reload changes what it says to those who come later.
#[derive(Clone)]
pub(crate) struct SecureDoor(Arc<Inner>);

struct Inner {
    resolver: Arc<ByName>,
    protocols: &'static [&'static [u8]],
    config: ArcSwap<ServerConfig>,
}

impl SecureDoor {
    /// `protocols` are agreed on by ALPN, if there are any.
    pub(crate) fn new(
        resolver: Arc<ByName>,
        protocols: &'static [&'static [u8]],
        versions: Versions,
    ) -> Result<SecureDoor, rustls::Error> {
        let config = ArcSwap::new(config(&resolver, protocols, versions)?);
        Ok(SecureDoor(Arc::new(Inner { resolver, protocols, config })))
    }

    /// For the next client.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.0.config.load_full())
    }

    /// What it is to say with other versions.
    pub(crate) fn with(&self, versions: Versions) -> Result<Arc<ServerConfig>, rustls::Error> {
        config(&self.0.resolver, self.0.protocols, versions)
    }

    /// Says this from now on; connections that are up stay.
    pub(crate) fn change(&self, config: Arc<ServerConfig>) {
        self.0.config.store(config);
    }
}

impl fmt::Debug for SecureDoor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SecureDoor").field("protocols", &self.0.protocols).finish_non_exhaustive()
    }
}

/// Certificates are found by name in the snapshot in force, else they are the node's own.
fn config(resolver: &Arc<ByName>, protocols: &[&[u8]], versions: Versions) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)?
        .with_no_client_auth()
        .with_cert_resolver(resolver.clone());
    // Tickets rather than a cache: a client may come back to another worker.
    config.ticketer = aws_lc_rs::Ticketer::new()?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}
