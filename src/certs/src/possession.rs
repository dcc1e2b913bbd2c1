//! Proof that a peer holds the key of its certificate, for certificates of any X.509 version.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, SignatureScheme};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm};

use crate::facts;

/// Checks handshake signatures against the public key of a certificate that need not be fit for the web PKI.
#[derive(Debug, Clone)]
pub(crate) struct Possession(WebPkiSupportedAlgorithms);

impl Possession {
    pub(crate) fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }

    pub(crate) fn schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }

    pub(crate) fn all(&self) -> &'static [&'static dyn SignatureVerificationAlgorithm] {
        self.0.all
    }

    /// In TLS 1.2 a scheme does not fix the curve, so every algorithm of the scheme may fit.
    pub(crate) fn tls12(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, certificate, signed, usize::MAX)
    }

    /// In TLS 1.3 a scheme means its first algorithm, and the old schemes are out.
    pub(crate) fn tls13(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        use SignatureScheme as S;
        match signed.scheme {
            S::RSA_PKCS1_SHA1
            | S::RSA_PKCS1_SHA256
            | S::RSA_PKCS1_SHA384
            | S::RSA_PKCS1_SHA512
            | S::ECDSA_SHA1_Legacy => Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()),
            _ => self.verify(message, certificate, signed, 1),
        }
    }

    fn verify(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        most: usize,
    ) -> Result<HandshakeSignatureValid, Error> {
        let mapping = self.0.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let (_, algorithms) = mapping.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        let leaf = facts::parse(certificate).map_err(|_| CertificateError::BadEncoding)?;
        let key = leaf.public_key();
        let fitting = algorithms.iter().take(most).filter(|algorithm| key_fits(key.raw, **algorithm));
        for algorithm in fitting {
            if algorithm.verify_signature(&key.subject_public_key.data, message, signed.signature()).is_ok() {
                return Ok(HandshakeSignatureValid::assertion());
            }
        }
        Err(CertificateError::BadSignature.into())
    }
}

/// Whether a SubjectPublicKeyInfo names the kind of key that the algorithm verifies with.
///
/// The structure is SEQUENCE { SEQUENCE { algorithm }, BIT STRING }; the algorithm compares the inner content.
pub(crate) fn key_fits(info: &[u8], algorithm: &dyn SignatureVerificationAlgorithm) -> bool {
    let content = |der: &[u8]| match der {
        [0x30, length, ..] if *length < 0x80 => Some(2),
        [0x30, length, ..] => Some(2 + usize::from(length & 0x7f)),
        _ => None,
    };
    let Some(inner) = content(info).and_then(|at| info.get(at..)) else { return false };
    let Some(inner) = content(inner).and_then(|at| inner.get(at..)) else { return false };
    inner.starts_with(algorithm.public_key_alg_id().as_ref())
}
