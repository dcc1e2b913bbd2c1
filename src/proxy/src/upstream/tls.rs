//! TLS towards upstreams.

use gwctl_certs::{CertError, Identity, Source};
use http::HeaderValue;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::hash::{Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// nginx's `proxy_ssl_verify_depth`, which Kong leaves as it is.
pub(crate) const DEFAULT_DEPTH: usize = 1;

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
    /// `tls_verify_depth`: most certificates between that of the upstream and an authority.
    pub(crate) depth: usize,
    /// Authorities of the service; empty: those of the node.
    pub(crate) authorities: Vec<Arc<str>>,
    /// Certificate to present; None: that of the node, if it has one.
    pub(crate) certificate: Option<Arc<str>>,
    /// Offer HTTP/2 by ALPN.
    pub(crate) http2: bool,
}

impl TlsWish {
    /// Of a service that says nothing of TLS.
    pub(crate) fn plain() -> TlsWish {
        let depth = DEFAULT_DEPTH;
        TlsWish { verify: false, depth, authorities: Vec::new(), certificate: None, http2: false }
    }
}

/// What the node says of TLS towards upstreams, for services that say nothing themselves.
#[derive(Debug, Clone)]
pub struct UpstreamTls {
    /// Authorities for services that verify and name none (`lua_ssl_trusted_certificate`): place and PEM text.
    pub trusted: Vec<(String, String)>,
    /// The authorities of the system count as well.
    pub trust_system: bool,
    /// Certificate to present (`client_ssl_cert`).
    pub client: Option<Identity>,
}

impl Default for UpstreamTls {
    fn default() -> Self {
        Self { trusted: Vec::new(), trust_system: true, client: None }
    }
}

impl PartialEq for UpstreamTls {
    fn eq(&self, other: &Self) -> bool {
        let chain = |tls: &Self| tls.client.as_ref().map(|client| client.certified_key().cert.clone());
        self.trusted == other.trusted && self.trust_system == other.trust_system && chain(self) == chain(other)
    }
}

impl UpstreamTls {
    /// Checks that the authorities can be read.
    ///
    /// # Errors
    /// One cannot.
    pub fn check(&self) -> Result<(), CertError> {
        self.roots().map(drop)
    }

    fn roots(&self) -> Result<RootCertStore, CertError> {
        let mut roots = if self.trust_system { system_roots() } else { RootCertStore::empty() };
        let pem: Vec<_> = self.trusted.iter().map(|(place, pem)| (place.as_str(), pem.as_str())).collect();
        roots.roots.extend(read_roots("lua_ssl_trusted_certificate", &pem)?.roots);
        Ok(roots)
    }
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
        node: &UpstreamTls,
    ) -> Result<TlsSettings, TlsFault> {
        let own = own.or_else(|| node.client.as_ref().map(Identity::certified_key));
        let name = name(wish, pem, own.as_deref(), node);
        let judge = if wish.verify {
            let roots = if pem.is_empty() { node.roots()? } else { read_roots("ca_certificates", pem)? };
            Some(Judge { roots, depth: wish.depth })
        } else {
            None
        };
        let mut config = config(judge, own)?;
        if wish.http2 {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        Ok(TlsSettings { name: name.into(), config: Arc::new(config) })
    }

    /// For probes: certificates are verified by the authorities of `node`; None: any is accepted. `protocols` are offered
    /// by ALPN.
    ///
    /// # Errors
    /// As [`TlsSettings::new`].
    pub(crate) fn for_probes(
        node: Option<&UpstreamTls>,
        own: Option<Arc<CertifiedKey>>,
        protocols: &[&[u8]],
    ) -> Result<TlsSettings, TlsFault> {
        let roots = node.map(UpstreamTls::roots).transpose()?;
        let judge = roots.map(|roots| Judge { roots, depth: usize::MAX });
        let mut config = config(judge, own)?;
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

/// Tells settings apart by what they are made of, not by the ids of rows: a connection that was made under an authority
/// or a certificate that has been replaced is not used again.
fn name(wish: &TlsWish, pem: &[(&str, &str)], own: Option<&CertifiedKey>, node: &UpstreamTls) -> String {
    let mut hash = std::hash::DefaultHasher::new();
    pem.hash(&mut hash);
    if wish.verify && pem.is_empty() {
        (&node.trusted, node.trust_system).hash(&mut hash);
    }
    own.iter().flat_map(|own| &own.cert).for_each(|certificate| certificate.as_ref().hash(&mut hash));
    let TlsWish { verify, depth, http2, .. } = wish;
    format!("{verify}:{depth}:{http2}:{:016x}", hash.finish())
}

/// How certificates are judged.
struct Judge {
    roots: RootCertStore,
    depth: usize,
}

/// Without a judge any certificate is accepted.
fn config(judge: Option<Judge>, own: Option<Arc<CertifiedKey>>) -> Result<ClientConfig, TlsFault> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let opinion = match judge {
        None => Opinion::Any,
        // The library makes no verifier without roots, as on a machine that has none.
        Some(Judge { roots, .. }) if roots.is_empty() => Opinion::Nobody,
        Some(Judge { roots, depth }) => {
            let roots = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            Opinion::Signed { by: roots.map_err(|error| rustls::Error::General(error.to_string()))?, depth }
        }
    };
    let verifier = Arc::new(Verifier { provider, opinion });
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(match own {
        Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
        None => builder.with_no_client_auth(),
    })
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

/// Checks that the peer holds the key of its certificate, and of the certificate what the service wants checked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    opinion: Opinion,
}

/// Which certificates are good.
#[derive(Debug)]
enum Opinion {
    Any,
    Nobody,
    Signed { by: Arc<WebPkiServerVerifier>, depth: usize },
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.opinion {
            Opinion::Any => Ok(ServerCertVerified::assertion()),
            Opinion::Nobody => Err(CertificateError::UnknownIssuer.into()),
            // Servers send the chain in the order in which it signs.
            Opinion::Signed { by, depth } => {
                by.verify_server_cert(leaf, &intermediates[..intermediates.len().min(*depth)], name, ocsp, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
