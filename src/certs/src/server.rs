//! The cluster listener: its TLS and its judgement of data planes.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::chain::{Authorities, validity};
use crate::possession::Possession;
use crate::{CertError, Facts, Identity, OcspFault, OcspQuestion, facts};

/// How the peers of a cluster know each other, `cluster_mtls`.
#[derive(Debug, Clone)]
pub enum Trust {
    /// All carry the same certificate.
    Shared,
    /// These authorities, `cluster_ca_cert`, issue one to each.
    Pki(Vec<CertificateDer<'static>>),
}

/// How a Kong control plane answers a data plane it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// HTTP 400, as its web server does.
    BadRequest,
    /// The connection is closed without an answer, as its application does.
    Close,
}

/// Why a data plane is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No client certificate came.
    #[error("no client certificate")]
    PeerNoCertificate {
        /// How to answer.
        answer: Answer,
    },
    /// The certificate is another one than the cluster's.
    #[error("client certificate {fingerprint} ({subject}) is not the cluster certificate {expected}")]
    PeerNotShared {
        /// SHA-256 of what came.
        fingerprint: String,
        /// Its subject.
        subject: String,
        /// SHA-256 of `cluster_cert`.
        expected: String,
    },
    /// The certificate is outside its validity.
    #[error("client certificate ({subject}) is valid from {not_before} to {not_after} (seconds since 1970), not now")]
    PeerOutdated {
        /// Its subject.
        subject: String,
        /// Start of validity.
        not_before: i64,
        /// End of validity.
        not_after: i64,
    },
    /// No authority stands behind the certificate.
    #[error("client certificate ({subject}) is not trusted: {why}")]
    PeerUntrusted {
        /// Its subject.
        subject: String,
        /// What the verifier says.
        why: String,
    },
}

impl Refusal {
    /// How a Kong control plane answers.
    pub fn answer(&self) -> Answer {
        match self {
            Self::PeerNoCertificate { answer } => *answer,
            Self::PeerNotShared { .. } => Answer::Close,
            Self::PeerOutdated { .. } | Self::PeerUntrusted { .. } => Answer::BadRequest,
        }
    }
}

/// Lets data planes in or refuses them.
///
/// The handshake asks for a certificate and for the proof that the peer holds its key, and refuses nothing else, as a
/// refusal has to be seen as an HTTP answer. So [`Peers::peer_allowed`] must be asked after each handshake.
#[derive(Debug, Clone)]
pub struct Peers {
    identity: Identity,
    authorities: Option<Authorities>,
    possession: Possession,
}

impl Peers {
    /// For a control plane with this identity.
    pub fn new(identity: Identity, trust: &Trust) -> Self {
        let possession = Possession::new(&aws_lc_rs::default_provider());
        let authorities = match trust {
            Trust::Shared => None,
            Trust::Pki(certificates) => {
                Some(Authorities::new(certificates.clone(), RootCertStore::empty(), possession.all()))
            }
        };
        Self { identity, authorities, possession }
    }

    /// TLS of the cluster listener: 1.2 and 1.3, no ALPN needed, `http/1.1` if offered.
    ///
    /// # Errors
    /// [`CertError::BugRefused`] only.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, CertError> {
        let verifier = Arc::new(AnyClient(self.possession.clone()));
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12]);
        let builder = builder.map_err(|error| CertError::refused("set up TLS")(&error))?;
        let resolver = Arc::new(ListenerPairs::new(std::slice::from_ref(&self.identity)));
        Ok(Arc::new(builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver)))
    }

    /// Judges the certificates a peer presented, leaf first, at a time in seconds since 1970; gives the leaf's facts.
    ///
    /// # Errors
    /// The [`Refusal`], with the answer that Kong would give.
    pub fn peer_allowed(&self, presented: Option<&[CertificateDer<'_>]>, now: u64) -> Result<Facts, Refusal> {
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
        let Some((leaf, intermediates)) = presented.and_then(<[_]>::split_first) else {
            let answer = if self.authorities.is_some() { Answer::BadRequest } else { Answer::Close };
            return Err(Refusal::PeerNoCertificate { answer });
        };
        let unreadable =
            |error: CertError| Refusal::PeerUntrusted { subject: "unknown".into(), why: error.to_string() };
        let facts = Facts::read(leaf).map_err(unreadable)?;
        // Kong's web server looks at the dates first, in both modes.
        if validity(leaf, now).is_err() {
            let (not_before, not_after) = (facts.not_before, facts.not_after);
            return Err(Refusal::PeerOutdated { subject: facts.subject, not_before, not_after });
        }
        match &self.authorities {
            None if facts.sha256 == self.identity.facts().sha256 => Ok(facts),
            None => Err(Refusal::PeerNotShared {
                fingerprint: facts.fingerprint(),
                subject: facts.subject,
                expected: self.identity.facts().fingerprint(),
            }),
            Some(authorities) => match authorities.client(leaf, intermediates, now) {
                Ok(()) => Ok(facts),
                Err(error) => Err(Refusal::PeerUntrusted { subject: facts.subject, why: error.to_string() }),
            },
        }
    }
}

impl Peers {
    /// What to ask about the revocation of an allowed peer's certificate; None where certificates are not revoked, as in
    /// `shared` mode.
    pub fn revocation(&self, presented: &[CertificateDer<'_>]) -> Option<Result<OcspQuestion, OcspFault>> {
        let (authorities, (leaf, intermediates)) = (self.authorities.as_ref()?, presented.split_first()?);
        Some(authorities.question(leaf, intermediates))
    }
}

/// TLS of a listener for anybody: the certificate is chosen by the signatures a client knows.
///
/// # Errors
/// [`CertError::BugRefused`] only.
pub fn listener_config(identities: &[Identity], http2: bool) -> Result<Arc<ServerConfig>, CertError> {
    listener_config_of(&ListenerPairs::new(identities), http2)
}

/// As [`listener_config`], with certificates that may be replaced while it listens.
///
/// # Errors
/// [`CertError::BugRefused`] only.
pub fn listener_config_of(pairs: &ListenerPairs, http2: bool) -> Result<Arc<ServerConfig>, CertError> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12]);
    let builder = builder.map_err(|error| CertError::refused("set up TLS")(&error))?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(Arc::new(pairs.clone()));
    config.alpn_protocols = if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(Arc::new(config))
}

/// The certificates of a listener, which may be replaced while it listens. Clones share them. A handshake gets the first
/// one whose key can sign what the client verifies.
///
/// rustls' own way of setting one certificate parses it for the web PKI, which X.509 v1 certificates do not survive.
#[derive(Debug, Clone)]
pub struct ListenerPairs(Arc<RwLock<Vec<Arc<CertifiedKey>>>>);

impl ListenerPairs {
    /// The pairs of these identities, the preferred one first.
    pub fn new(identities: &[Identity]) -> Self {
        Self(Arc::new(RwLock::new(identities.iter().map(Identity::certified_key).collect())))
    }

    /// Handshakes to come get these; connections that are up stay.
    pub fn renew(&self, identities: &[Identity]) {
        let pairs = identities.iter().map(Identity::certified_key).collect();
        // Whoever panicked while holding it held whole values.
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = pairs;
    }
}

impl ResolvesServerCert for ListenerPairs {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let pairs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let fitting = pairs.iter().find(|key| key.key.choose_scheme(hello.signature_schemes()).is_some());
        fitting.or(pairs.first()).cloned()
    }
}

/// Asks every client for a certificate and verifies only that the client holds its key.
#[derive(Debug)]
struct AnyClient(Possession);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // No hints: a client then presents whatever it has.
        &[]
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        facts::parse(leaf).map_err(|_| CertificateError::BadEncoding)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.tls12(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.tls13(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.schemes()
    }
}
