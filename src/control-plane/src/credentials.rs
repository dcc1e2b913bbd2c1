//! Certificates of the cluster listener, which are replaced while data planes are connected.

use crate::start::StartError;
use gwctl_certs::{Identity, Peers, Source, Trust, read_certificates};
use gwctl_conf::{Materials, Mtls, NodeConf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;

/// Own certificate and judgement of data planes. Clones share them.
#[derive(Clone)]
pub struct ClusterCredentials(Arc<RwLock<Arc<Credentials>>>);

/// What one connection is judged by, from its first byte on.
pub(crate) struct Credentials {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) peers: Peers,
}

impl ClusterCredentials {
    /// Reads `cluster_cert`, its key and `cluster_ca_cert`.
    ///
    /// # Errors
    /// Whatever is wrong with them, by setting and place.
    pub fn read(conf: &NodeConf, materials: &Materials) -> Result<Self, StartError> {
        Ok(Self(Arc::new(RwLock::new(Arc::new(Credentials::read(conf, materials)?)))))
    }

    /// Reads them again; what is given back puts them in force: connections to come are judged by them, those that are up
    /// stay.
    ///
    /// # Errors
    /// As [`ClusterCredentials::read`].
    pub fn renewal(&self, conf: &NodeConf, materials: &Materials) -> Result<impl FnOnce() + use<>, StartError> {
        let (shared, renewed) = (self.0.clone(), Arc::new(Credentials::read(conf, materials)?));
        // Whoever panicked while holding it held a whole value, here and below.
        Ok(move || *shared.write().unwrap_or_else(PoisonError::into_inner) = renewed)
    }

    pub(crate) fn now(&self) -> Arc<Credentials> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Credentials {
    fn read(conf: &NodeConf, materials: &Materials) -> Result<Self, StartError> {
        let identity = Identity::read(source(materials, "cluster_cert")?, source(materials, "cluster_cert_key")?)?;
        let trust = match conf.cluster.mtls {
            Mtls::Shared => Trust::Shared,
            Mtls::Pki => Trust::Pki(read_certificates(source(materials, "cluster_ca_cert")?)?),
        };
        let peers = Peers::new(identity, &trust);
        Ok(Self { acceptor: TlsAcceptor::from(peers.server_config()?), peers })
    }
}

fn source<'a>(materials: &'a Materials, setting: &'static str) -> Result<Source<'a>, StartError> {
    let pem = materials.text(setting).ok_or(StartError::ConfigMissing { setting })?;
    Ok(Source { setting, place: materials.place(setting), pem })
}
