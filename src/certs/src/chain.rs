//! Whether authorities stand behind a peer's certificate.

use std::sync::Arc;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};

use crate::possession::key_fits;
use crate::{OcspFault, OcspQuestion, facts};

/// Certificates of authorities, and how signatures are verified.
#[derive(Debug, Clone)]
pub(crate) struct Authorities {
    certificates: Vec<CertificateDer<'static>>,
    roots: Arc<RootCertStore>,
    algorithms: &'static [&'static dyn SignatureVerificationAlgorithm],
}

impl Authorities {
    /// `more` are trusted as well, but issue no X.509 v1 certificates.
    pub(crate) fn new(
        certificates: Vec<CertificateDer<'static>>,
        more: RootCertStore,
        algorithms: &'static [&'static dyn SignatureVerificationAlgorithm],
    ) -> Self {
        let mut roots = more;
        // What cannot be an authority is passed over here and refused where settings are read.
        roots.add_parsable_certificates(certificates.iter().cloned());
        Self { certificates, roots: Arc::new(roots), algorithms }
    }

    /// What to ask the issuer of a client's certificate about its revocation.
    pub(crate) fn question(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
    ) -> Result<OcspQuestion, OcspFault> {
        OcspQuestion::about(leaf, intermediates.iter().chain(&self.certificates), self.algorithms)
    }

    /// Judges the certificate of a client.
    pub(crate) fn client(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if is_version_1(leaf) {
            return self.issued_version_1(leaf, now);
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.roots), provider).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_client_cert(leaf, intermediates, now).map(drop)
    }

    /// Judges the certificate of a server, but for its name.
    pub(crate) fn server(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if is_version_1(leaf) {
            return self.issued_version_1(leaf, now);
        }
        let leaf = ParsedCertificate::try_from(leaf)?;
        verify_server_cert_signed_by_trust_anchor(&leaf, &self.roots, intermediates, now, self.algorithms)
    }

    /// `openssl x509 -req` makes version 1 unless told otherwise, so such leaves are common. They carry no
    /// extensions, so all there is to check is the validity and the signature of an authority.
    fn issued_version_1(&self, leaf: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
        let parsed = facts::parse(leaf).map_err(|_| CertificateError::BadEncoding)?;
        validity(leaf, now)?;
        let issued = self.certificates.iter().any(|authority| {
            let Ok(authority) = facts::parse(authority) else { return false };
            let key = authority.public_key();
            authority.subject().as_raw() == parsed.issuer().as_raw()
                && self.algorithms.iter().filter(|algorithm| key_fits(key.raw, **algorithm)).any(|algorithm| {
                    let message = parsed.tbs_certificate.as_ref();
                    let signed_by_it =
                        signature_algorithm(leaf).is_some_and(|id| id == algorithm.signature_alg_id().as_ref());
                    signed_by_it
                        && algorithm
                            .verify_signature(&key.subject_public_key.data, message, &parsed.signature_value.data)
                            .is_ok()
                })
        });
        if issued { Ok(()) } else { Err(CertificateError::UnknownIssuer.into()) }
    }
}

/// Refuses a certificate outside its validity.
pub(crate) fn validity(leaf: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let facts = crate::Facts::read(leaf).map_err(|_| CertificateError::BadEncoding)?;
    let moment =
        |seconds: i64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
    let time = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if time > facts.not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after: moment(facts.not_after) }.into());
    }
    if time < facts.not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: moment(facts.not_before) }.into());
    }
    Ok(())
}

fn is_version_1(leaf: &CertificateDer<'_>) -> bool {
    facts::parse(leaf).is_ok_and(|leaf| leaf.version().0 == 0)
}

/// Content of the algorithm identifier between the signed part and the signature.
///
/// A certificate is SEQUENCE { SEQUENCE signed part, SEQUENCE algorithm, BIT STRING signature }.
fn signature_algorithm<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a [u8]> {
    let parsed = facts::parse(certificate).ok()?;
    let signed = parsed.tbs_certificate.as_ref();
    let der: &'a [u8] = certificate.as_ref();
    let start = der.windows(signed.len()).position(|window| window == signed)? + signed.len();
    match der.get(start..)? {
        [0x30, length, rest @ ..] if *length < 0x80 => rest.get(..usize::from(*length)),
        _ => None,
    }
}
