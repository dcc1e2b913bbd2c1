//! Whether an authority has revoked a certificate (RFC 6960): the question for its responder and the judgement of the
//! answer. Asking is done elsewhere.

use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm};
use sha1::{Digest, Sha1};
use x509_parser::prelude::{ASN1Time, FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::facts;
use crate::possession::key_fits;
use der::{Element, Reader, element, tag};

mod der;
#[cfg(test)]
mod tests;

/// Clocks of responders differ.
const CLOCK_SKEW: i64 = 300;

/// SHA-1, which every responder knows; it names the issuer and protects nothing.
const SHA1_OID: &[u8] = &[0x2b, 0x0e, 0x03, 0x02, 0x1a];
/// The kind of answer there is.
const BASIC_OID: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01];
/// The way of access that is a responder.
const RESPONDER_OID: &str = "1.3.6.1.5.5.7.48.1";

/// Why it is not known that a certificate stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OcspFault {
    /// The certificate of the issuer is neither presented nor among the authorities.
    #[error("the certificate of its issuer is not at hand")]
    PeerNoIssuer,
    /// The certificate names nobody to ask.
    #[error("it names no OCSP responder that can be asked over http://")]
    PeerNoResponder,
    /// The answer cannot be used.
    #[error("the answer of the OCSP responder cannot be used: {0}")]
    PeerAnswer(&'static str),
    /// The authority has revoked it.
    #[error("its authority has revoked it")]
    PeerRevoked,
    /// The responder does not know it.
    #[error("the OCSP responder does not know it")]
    PeerUnknown,
}

/// A question for a responder.
#[derive(Debug, Clone)]
pub struct OcspQuestion {
    /// Where to send it, `http://…`.
    pub url: String,
    /// The body of the POST (`application/ocsp-request`).
    pub request: Vec<u8>,
    /// Hash of the issuer's name, hash of its key, serial number.
    asked: [Vec<u8>; 3],
    issuer: CertificateDer<'static>,
    algorithms: Algorithms,
}

type Algorithms = &'static [&'static dyn SignatureVerificationAlgorithm];

impl OcspQuestion {
    /// About a leaf. `candidates` are certificates among which its issuer is.
    pub(crate) fn about<'a>(
        leaf: &CertificateDer<'_>,
        candidates: impl IntoIterator<Item = &'a CertificateDer<'a>>,
        algorithms: Algorithms,
    ) -> Result<Self, OcspFault> {
        let parsed = facts::parse(leaf).map_err(|_| OcspFault::PeerNoIssuer)?;
        let issued = |candidate: &&CertificateDer<'_>| {
            facts::parse(candidate).is_ok_and(|candidate| {
                candidate.subject().as_raw() == parsed.issuer().as_raw() && signed(leaf, &candidate, algorithms)
            })
        };
        let issuer = candidates.into_iter().find(issued).ok_or(OcspFault::PeerNoIssuer)?;
        let authority = facts::parse(issuer).map_err(|_| OcspFault::PeerNoIssuer)?;
        let asked = [
            Sha1::digest(authority.subject().as_raw()).to_vec(),
            Sha1::digest(&authority.public_key().subject_public_key.data).to_vec(),
            parsed.raw_serial().to_vec(),
        ];
        let url = responder(&parsed).ok_or(OcspFault::PeerNoResponder)?;
        let request = request(&asked);
        Ok(Self { url, request, asked, issuer: issuer.clone().into_owned(), algorithms })
    }

    /// Judges an answer at a time in seconds since 1970.
    ///
    /// # Errors
    /// The fault, unless the responder says in force that the certificate stands.
    pub fn judge(&self, answer: &[u8], now: u64) -> Result<(), OcspFault> {
        let now = i64::try_from(now).unwrap_or(i64::MAX);
        let unusable = OcspFault::PeerAnswer;
        let basic = basic(answer)?;
        let mut reader = basic.inside();
        let data = reader.take(tag::SEQUENCE).ok_or(unusable("it is damaged"))?;
        let algorithm = reader.take(tag::SEQUENCE).ok_or(unusable("it is damaged"))?;
        let signature = reader.take(tag::BIT_STRING).and_then(|bits| bits.content.strip_prefix(&[0]));
        let signature = signature.ok_or(unusable("it is damaged"))?;
        let certificates = reader.take(tag::context(0)).and_then(|list| list.inside().take(tag::SEQUENCE));
        if !self.vouched(data.whole, algorithm.content, signature, certificates, now) {
            return Err(unusable("neither the authority nor a responder of it has signed it"));
        }
        let single = self.single(data).ok_or(unusable("it is about other certificates"))?;
        standing(single, now)
    }

    /// Whether the authority signed, or one whom it has made its responder.
    fn vouched(
        &self,
        message: &[u8],
        algorithm: &[u8],
        signature: &[u8],
        certificates: Option<Element<'_>>,
        now: i64,
    ) -> bool {
        let Ok(authority) = facts::parse(&self.issuer) else { return false };
        if verified(&authority, algorithm, message, signature, self.algorithms) {
            return true;
        }
        let mut list = certificates.map_or(Reader(&[]), Element::inside);
        std::iter::from_fn(|| list.take(tag::SEQUENCE)).any(|certificate| {
            let der = CertificateDer::from(certificate.whole);
            let Ok(responder) = facts::parse(&der) else { return false };
            let purpose = responder.extended_key_usage().ok().flatten();
            let validity = responder.validity();
            purpose.is_some_and(|usage| usage.value.ocsp_signing)
                && (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now)
                && responder.issuer().as_raw() == authority.subject().as_raw()
                && signed(&der, &authority, self.algorithms)
                && verified(&responder, algorithm, message, signature, self.algorithms)
        })
    }

    /// What the answer says of this certificate, behind its id.
    fn single<'a>(&self, data: Element<'a>) -> Option<Reader<'a>> {
        let mut reader = data.inside();
        let _version = reader.take(tag::context(0));
        let _responder = reader.next()?;
        let _produced = reader.take(tag::GENERALIZED_TIME)?;
        let mut list = reader.take(tag::SEQUENCE)?.inside();
        std::iter::from_fn(|| list.take(tag::SEQUENCE)).find_map(|single| {
            let mut reader = single.inside();
            let mut id = reader.take(tag::SEQUENCE)?.inside();
            let hash = id.take(tag::SEQUENCE)?.inside().take(tag::OID)?;
            let parts = [id.take(tag::OCTET_STRING)?, id.take(tag::OCTET_STRING)?, id.take(tag::INTEGER)?];
            let same = parts.iter().zip(&self.asked).all(|(said, asked)| said.content == asked.as_slice());
            (hash.content == SHA1_OID && same).then_some(reader)
        })
    }
}

/// The inner part of an answer that is none of the errors.
fn basic(answer: &[u8]) -> Result<Element<'_>, OcspFault> {
    let damaged = OcspFault::PeerAnswer("it is damaged");
    let mut reader = Reader(answer).take(tag::SEQUENCE).ok_or(damaged.clone())?.inside();
    let status = reader.take(tag::ENUMERATED).ok_or(damaged.clone())?;
    if status.content != [0] {
        return Err(OcspFault::PeerAnswer(match status.content {
            [1] => "it calls the request malformed",
            [2] => "it tells of an internal error",
            [3] => "it asks to try later",
            [5] => "it wants the request signed",
            [6] => "it is not allowed to answer",
            _ => "it tells of an unknown error",
        }));
    }
    let mut inner = || {
        let mut bytes = reader.take(tag::context(0))?.inside().take(tag::SEQUENCE)?.inside();
        bytes.take(tag::OID).filter(|kind| kind.content == BASIC_OID)?;
        bytes.take(tag::OCTET_STRING)?.inside().take(tag::SEQUENCE)
    };
    inner().ok_or(damaged)
}

/// The status of a certificate and the time it is good for.
fn standing(mut single: Reader<'_>, now: i64) -> Result<(), OcspFault> {
    let damaged = OcspFault::PeerAnswer("it is damaged");
    let status = single.next().ok_or(damaged.clone())?;
    let time = |element: Option<Element<'_>>| {
        let (_, time) = ASN1Time::from_der(element?.whole).ok()?;
        Some(time.timestamp())
    };
    let from = time(single.take(tag::GENERALIZED_TIME)).ok_or(damaged.clone())?;
    let until = match single.take(tag::context(0)) {
        Some(until) => Some(time(until.inside().take(tag::GENERALIZED_TIME)).ok_or(damaged.clone())?),
        None => None,
    };
    // A certificate that was revoked once is not good again because the news is old.
    if status.tag == tag::context(1) {
        return Err(OcspFault::PeerRevoked);
    }
    if from > now.saturating_add(CLOCK_SKEW) {
        return Err(OcspFault::PeerAnswer("it is of the future"));
    }
    if until.is_some_and(|until| until < now.saturating_sub(CLOCK_SKEW)) {
        return Err(OcspFault::PeerAnswer("it is out of date"));
    }
    match status.tag {
        good if good == tag::implicit(0) => Ok(()),
        unknown if unknown == tag::implicit(2) => Err(OcspFault::PeerUnknown),
        _ => Err(damaged),
    }
}

/// The first responder that is asked over plain HTTP, as they are.
fn responder(leaf: &X509Certificate<'_>) -> Option<String> {
    leaf.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => access.accessdescs.iter().find_map(|way| {
            let GeneralName::URI(url) = &way.access_location else { return None };
            let asks = way.access_method.to_id_string() == RESPONDER_OID && url.starts_with("http://");
            asks.then(|| (*url).to_owned())
        }),
        _ => None,
    })
}

fn request([name, key, serial]: &[Vec<u8>; 3]) -> Vec<u8> {
    let hash = element(tag::SEQUENCE, &[&element(tag::OID, &[SHA1_OID]), &element(tag::NULL, &[])]);
    let (name, key) = (element(tag::OCTET_STRING, &[name]), element(tag::OCTET_STRING, &[key]));
    let id = element(tag::SEQUENCE, &[&hash, &name, &key, &element(tag::INTEGER, &[serial])]);
    let list = element(tag::SEQUENCE, &[&element(tag::SEQUENCE, &[&id])]);
    element(tag::SEQUENCE, &[&element(tag::SEQUENCE, &[&list])])
}

/// Whether the authority's key signed the certificate.
fn signed(certificate: &CertificateDer<'_>, authority: &X509Certificate<'_>, algorithms: Algorithms) -> bool {
    let parts = || {
        let mut reader = Reader(certificate).take(tag::SEQUENCE)?.inside();
        let message = reader.take(tag::SEQUENCE)?;
        let algorithm = reader.take(tag::SEQUENCE)?;
        let signature = reader.take(tag::BIT_STRING)?.content.strip_prefix(&[0])?;
        Some((message.whole, algorithm.content, signature))
    };
    parts()
        .is_some_and(|(message, algorithm, signature)| verified(authority, algorithm, message, signature, algorithms))
}

/// Whether the certificate's key made the signature by the algorithm named.
fn verified(
    by: &X509Certificate<'_>,
    algorithm: &[u8],
    message: &[u8],
    signature: &[u8],
    algorithms: Algorithms,
) -> bool {
    let key = by.public_key();
    let fitting =
        algorithms.iter().filter(|known| known.signature_alg_id().as_ref() == algorithm && key_fits(key.raw, **known));
    fitting
        .map(|known| known.verify_signature(&key.subject_public_key.data, message, signature))
        .any(|done| done.is_ok())
}
