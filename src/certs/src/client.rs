//! The data plane's end of the cluster link.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::chain::{Authorities, validity};
use crate::possession::Possession;
use crate::{CertError, Facts, Identity, Trust};

/// The name in shared mode, in the certificate and as SNI.
pub const SHARED_NAME: &str = "kong_clustering";

/// TLS towards a control plane, and the name to connect by.
///
/// With [`Trust::Shared`] the name is [`SHARED_NAME`] and the peer must present the same certificate, or one that
/// `roots` stand behind for that name. With [`Trust::Pki`] the name is `cluster_server_name`, else the host of
/// `cluster_control_plane`, and the authorities or `roots` must stand behind the certificate. A certificate without
/// names in a SAN is known by its common name, as with OpenSSL. `roots` is `lua_ssl_trusted_certificate`.
///
/// # Errors
/// [`CertError::InputName`] when the name is neither a host name nor an address.
pub fn cluster_client_config(
    identity: &Identity,
    trust: &Trust,
    roots: RootCertStore,
    name: &str,
) -> Result<(Arc<ClientConfig>, ServerName<'static>), CertError> {
    with_versions(identity, trust, roots, name, &[&rustls::version::TLS13, &rustls::version::TLS12])
}

/// The name to connect to a control plane by: [`SHARED_NAME`] when all carry one certificate, else the name given.
///
/// # Errors
/// [`CertError::InputName`] when the name is neither a host name nor an address.
pub fn cluster_server_name(shared: bool, name: &str) -> Result<ServerName<'static>, CertError> {
    let name = if shared { SHARED_NAME } else { name.trim_matches(['[', ']']) };
    ServerName::try_from(name.to_owned()).map_err(|_| CertError::InputName { name: name.into() })
}

pub(crate) fn with_versions(
    identity: &Identity,
    trust: &Trust,
    roots: RootCertStore,
    name: &str,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Result<(Arc<ClientConfig>, ServerName<'static>), CertError> {
    let server_name = cluster_server_name(matches!(trust, Trust::Shared), name)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let possession = Possession::new(&provider);
    let (pinned, authorities) = match trust {
        Trust::Shared => (Some(identity.leaf().clone()), Vec::new()),
        Trust::Pki(authorities) => (None, authorities.clone()),
    };
    let authorities = Authorities::new(authorities, roots, possession.all());
    let verifier = ControlPlane { pinned, authorities, possession };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_protocol_versions(versions);
    let builder = builder.map_err(|error| CertError::refused("set up TLS")(&error))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let config = builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.certified_key())));
    Ok((Arc::new(config), server_name))
}

/// Judges the control plane.
#[derive(Debug)]
struct ControlPlane {
    pinned: Option<CertificateDer<'static>>,
    authorities: Authorities,
    possession: Possession,
}

impl ServerCertVerifier for ControlPlane {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        validity(leaf, now)?;
        if self.pinned.as_ref() != Some(leaf) {
            self.authorities.server(leaf, intermediates, now)?;
            named(leaf, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.possession.tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.possession.tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.possession.schemes()
    }
}

/// Whether a certificate carries a name, by its SAN or, without one, by its common name.
fn named(leaf: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
    let facts = Facts::read(leaf).map_err(|_| CertificateError::BadEncoding)?;
    if !facts.names.is_empty() {
        return verify_server_name(&ParsedCertificate::try_from(leaf)?, name);
    }
    let expected = name.to_str();
    match facts.common_name {
        Some(common_name) if common_name.eq_ignore_ascii_case(&expected) => Ok(()),
        _ => Err(CertificateError::NotValidForName.into()),
    }
}
