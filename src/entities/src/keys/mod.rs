//! Certificates and keys in PEM: can they be read, and do they belong together?
//!
//! A key is compared by its public half: algorithm and key bits as a certificate carries them.

mod der;
mod jwk;
mod private;

pub(crate) use jwk::content as jwk_content;

use crate::engine::is_vault_reference;
use crate::transform::hex;
use aws_lc_rs::digest;
use serde_json::Value;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo, X509Certificate};

/// What OpenSSL says of text that is no certificate; clients of Kong know the words.
const NO_CERTIFICATE: &str = "x509.new: error:680007B:asn1 encoding routines:ASN1_get_object:header too long:\
                              crypto/asn1/asn1_lib.c:105:";
/// What OpenSSL says of text that is no key.
const NO_KEY: &str = "pkey.new:load_key: error:1E08010C:DECODER routines:OSSL_DECODER_from_bio:unsupported:\
                      crypto/encode_decode/decoder_lib.c:103:";

/// The public half of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// Object identifier of the algorithm.
    algorithm: String,
    /// The key bits: for RSA modulus and exponent, for curves the point.
    bits: Vec<u8>,
}

/// The PEM blocks of a text, unreadable ones left out.
fn blocks(text: &str) -> Vec<Pem> {
    Pem::iter_from_buffer(text.as_bytes()).filter_map(Result::ok).collect()
}

fn certificate_der(text: &str) -> Option<Vec<u8>> {
    let labels = ["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"];
    blocks(text).into_iter().find(|block| labels.contains(&block.label.as_str())).map(|block| block.contents)
}

fn with_certificate<T>(text: &str, work: impl FnOnce(&X509Certificate<'_>) -> T) -> Option<T> {
    let der = certificate_der(text)?;
    X509Certificate::from_der(&der).ok().map(|(_, certificate)| work(&certificate))
}

fn public_half(info: &SubjectPublicKeyInfo<'_>) -> PublicKey {
    PublicKey { algorithm: info.algorithm.algorithm.to_id_string(), bits: info.subject_public_key.data.to_vec() }
}

fn certificate_key(text: &str) -> Option<PublicKey> {
    with_certificate(text, |certificate| public_half(certificate.public_key()))
}

/// The public key of a PEM, which may hold the public or the private half.
fn any_key(text: &str) -> Option<PublicKey> {
    blocks(text).iter().find_map(|block| match block.label.as_str() {
        "PUBLIC KEY" => SubjectPublicKeyInfo::from_der(&block.contents).ok().map(|(_, info)| public_half(&info)),
        "RSA PUBLIC KEY" => {
            Some(PublicKey { algorithm: private::RSA.to_owned(), bits: der::rsa_public(&block.contents)? })
        }
        label => private::public_half(label, &block.contents),
    })
}

fn private_key(text: &str) -> Option<PublicKey> {
    blocks(text).iter().find_map(|block| private::public_half(&block.label, &block.contents))
}

pub(crate) fn check_certificate(text: &str) -> Result<(), String> {
    with_certificate(text, |_| ()).ok_or_else(|| format!("invalid certificate: {NO_CERTIFICATE}"))
}

pub(crate) fn check_private_key(text: &str) -> Result<(), String> {
    private_key(text).map(|_| ()).ok_or_else(|| format!("invalid key: {NO_KEY}"))
}

pub(crate) fn check_public_key(text: &str) -> Result<(), String> {
    any_key(text).map(|_| ()).ok_or_else(|| "invalid key".to_owned())
}

/// A record of `private_key` and `public_key`, each optional; both together must belong together.
pub(crate) fn check_pair(pair: &Value) -> Result<(), String> {
    let text = |name: &str| pair.get(name).filter(|value| !is_vault_reference(value)).and_then(Value::as_str);
    let (private, public) = (text("private_key"), text("public_key"));
    let load = |text: Option<&str>, load: fn(&str) -> Option<PublicKey>, name: &str| match text {
        Some(text) => load(text).map(Some).ok_or_else(|| format!("could not load {name} key")),
        None => Ok(None),
    };
    let private = load(private, private_key, "private")?;
    let public = load(public, any_key, "public")?;
    match (private, public) {
        (Some(private), Some(public)) if private != public => Err("public key does not match private key".to_owned()),
        _ => Ok(()),
    }
}

/// `name` is how the message calls the certificate. Unset or unreadable halves are another check's business.
pub(crate) fn certificate_matches_key(certificate: Option<&str>, key: Option<&str>, name: &str) -> Result<(), String> {
    let keys = (certificate.and_then(certificate_key), key.and_then(private_key));
    match keys {
        (Some(theirs), Some(ours)) if theirs != ours => Err(format!("{name} does not match key")),
        _ => Ok(()),
    }
}

/// A certificate and its alternative must differ in the type of key.
pub(crate) fn types_differ(first: Option<&str>, second: Option<&str>) -> Result<(), String> {
    match (first.and_then(certificate_key), second.and_then(certificate_key)) {
        (Some(first), Some(second)) if first.algorithm == second.algorithm => {
            Err("certificate and alternative certificate need to have different type (e.g. RSA and ECDSA), \
                 the provided certificates were both of the same type"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// One certificate, not expired, marked as an authority.
pub(crate) fn is_authority(certificate: Option<&str>, now_seconds: u64) -> Result<(), String> {
    let Some(text) = certificate else { return Ok(()) };
    if text.matches("-----BEGIN CERTIFICATE-----").count() > 1 {
        return Err("please submit only one certificate at a time".to_owned());
    }
    let facts = with_certificate(text, |certificate| {
        let constraints = certificate.basic_constraints().ok().flatten();
        let authority = constraints.is_some_and(|constraints| constraints.value.ca);
        (certificate.validity().not_after.timestamp(), authority)
    });
    match facts {
        Some((not_after, _)) if not_after < i64::try_from(now_seconds).unwrap_or(i64::MAX) => {
            Err("certificate expired, \"Not After\" time is in the past".to_owned())
        }
        Some((_, false)) => Err("certificate does not appear to be a CA because it is missing the \"CA\" basic \
                                 constraint"
            .to_owned()),
        _ => Ok(()),
    }
}

/// Lower-case hex SHA-256 of the certificate's DER.
pub(crate) fn certificate_digest(text: &str) -> Option<String> {
    let der = certificate_der(text)?;
    Some(hex(digest::digest(&digest::SHA256, &der).as_ref()))
}
