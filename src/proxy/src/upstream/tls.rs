//! TLS towards upstreams.

use http::HeaderValue;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
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

impl TlsSettings {
    /// Any certificate is accepted, as Kong does unless a service asks for more.
    ///
    /// # Errors
    /// When the TLS library refuses its own defaults.
    pub(crate) fn unverified() -> Result<TlsSettings, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        Ok(TlsSettings { name: "any".into(), config: Arc::new(config) })
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
