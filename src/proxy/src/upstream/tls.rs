//! TLS towards upstreams.

use gwctl_certs::{CertError, Source};
use http::HeaderValue;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How a service wants TLS; made when a snapshot is built.
#[derive(Clone)]
pub(crate) struct TlsSettings {
    /// Tells settings apart in the pool.
    name: Arc<str>,
    config: Arc<ClientConfig>,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsFault {
    #[error(transparent)]
    Authority(#[from] CertError),
    #[error(transparent)]
    Refused(#[from] rustls::Error),
}

/// What a service asks of TLS.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TlsWish {
    /// `tls_verify`. By default any certificate is accepted, as in Kong.
    pub(crate) verify: bool,
    /// Authorities of the service; empty: those of the system.
    pub(crate) authorities: Vec<Arc<str>>,
    /// Certificate to present.
    pub(crate) certificate: Option<Arc<str>>,
    /// Offer HTTP/2 by ALPN.
    pub(crate) http2: bool,
}

impl TlsSettings {
    /// `pem` are the texts of the authorities, `own` is the certificate to present.
    ///
    /// # Errors
    /// An authority that cannot be read, or the TLS library refuses.
    pub(crate) fn new(
        wish: &TlsWish,
        pem: &[(&str, &str)],
        own: Option<Arc<CertifiedKey>>,
    ) -> Result<TlsSettings, TlsFault> {
        let name =
            format!("{}:{}:{}", wish.verify, wish.authorities.join(","), wish.certificate.as_deref().unwrap_or(""));
        let roots = if wish.verify { Some(roots(pem)?) } else { None };
        let mut config = config(roots, own)?;
        if wish.http2 {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        Ok(TlsSettings { name: name.into(), config: Arc::new(config) })
    }

    /// For probes: `trusted` are authorities besides those of the system, which count with `system`; None: any
    /// certificate is accepted. `protocols` are offered by ALPN.
    ///
    /// # Errors
    /// As [`TlsSettings::new`].
    pub(crate) fn for_probes(
        trusted: Option<(&[(String, String)], bool)>,
        own: Option<Arc<CertifiedKey>>,
        protocols: &[&[u8]],
    ) -> Result<TlsSettings, TlsFault> {
        let roots = match trusted {
            None => None,
            Some((trusted, system)) => {
                let mut roots = if system { system_roots() } else { RootCertStore::empty() };
                let pem: Vec<_> = trusted.iter().map(|(place, pem)| (place.as_str(), pem.as_str())).collect();
                roots.roots.extend(read_roots("lua_ssl_trusted_certificate", &pem)?.roots);
                Some(roots)
            }
        };
        let mut config = config(roots, own)?;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(TlsSettings { name: "probe".into(), config: Arc::new(config) })
    }

    /// Key of exchangeable connections to a host.
    pub(crate) fn pool_name(&self, host: &HeaderValue) -> Arc<str> {
        format!("{}/{}", self.name, host.to_str().unwrap_or_default()).into()
    }

    /// Shakes hands; the server name is the host that is asked for, without port.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &HeaderValue,
        address: SocketAddr,
        limit: Duration,
    ) -> io::Result<TlsStream<TcpStream>> {
        let host = host.to_str().unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name).to_owned();
        let name = ServerName::try_from(name).unwrap_or_else(|_| ServerName::IpAddress(address.ip().into()));
        let shaking = TlsConnector::from(self.config.clone()).connect(name, stream);
        tokio::time::timeout(limit, shaking).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}

/// Without roots any certificate is accepted.
fn config(roots: Option<RootCertStore>, own: Option<Arc<CertifiedKey>>) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match roots {
        Some(roots) => builder.with_root_certificates(roots),
        None => builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate(provider))),
    };
    Ok(match own {
        Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
        None => builder.with_no_client_auth(),
    })
}

fn roots(pem: &[(&str, &str)]) -> Result<RootCertStore, CertError> {
    if pem.is_empty() { Ok(system_roots()) } else { read_roots("ca_certificates", pem) }
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    let (usable, unusable) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(usable, unusable, errors = found.errors.len(), "authorities of the system read");
    roots
}

fn read_roots(setting: &'static str, pem: &[(&str, &str)]) -> Result<RootCertStore, CertError> {
    let sources = pem.iter().map(|(place, pem)| Source { setting, place, pem });
    gwctl_certs::read_roots(&sources.collect::<Vec<_>>())
}

/// Checks that the peer holds the key of its certificate, and nothing of the certificate.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
