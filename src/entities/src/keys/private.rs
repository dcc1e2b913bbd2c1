//! The public half of a private key: RSA, the NIST curves, Ed25519. Encrypted keys are refused.

use super::PublicKey;
use super::der::{Reader, dotted, rsa_from, tag};
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair};

pub(super) const RSA: &str = "1.2.840.113549.1.1.1";
const EC: &str = "1.2.840.10045.2.1";
const ED25519: &str = "1.3.101.112";

/// None when the block is no private key or cannot be read.
pub(super) fn public_half(label: &str, der: &[u8]) -> Option<PublicKey> {
    match label {
        "PRIVATE KEY" => from_pkcs8(der),
        "RSA PRIVATE KEY" => rsa(der),
        "EC PRIVATE KEY" => ec(der, None, der),
        _ => None,
    }
}

fn from_pkcs8(der: &[u8]) -> Option<PublicKey> {
    let mut members = Reader(Reader(der).value(tag::SEQUENCE)?);
    members.value(tag::INTEGER)?;
    let mut algorithm = Reader(members.value(tag::SEQUENCE)?);
    let name = dotted(algorithm.value(tag::OBJECT_IDENTIFIER)?);
    let key = members.value(tag::OCTET_STRING)?;
    match name.as_str() {
        RSA => rsa(key),
        EC => ec(key, algorithm.value(tag::OBJECT_IDENTIFIER), der),
        ED25519 => {
            let pair = Ed25519KeyPair::from_seed_unchecked(Reader(key).value(tag::OCTET_STRING)?).ok()?;
            Some(PublicKey { algorithm: name, bits: pair.public_key().as_ref().to_vec() })
        }
        _ => None,
    }
}

fn rsa(der: &[u8]) -> Option<PublicKey> {
    let mut members = Reader(Reader(der).value(tag::SEQUENCE)?);
    members.value(tag::INTEGER)?;
    let bits = rsa_from(members.whole(tag::INTEGER)?, members.whole(tag::INTEGER)?);
    Some(PublicKey { algorithm: RSA.to_owned(), bits })
}

/// Takes the point the key carries, else computes it. `outer` is the file as a whole.
fn ec(der: &[u8], curve: Option<&[u8]>, outer: &[u8]) -> Option<PublicKey> {
    let mut members = Reader(Reader(der).value(tag::SEQUENCE)?);
    members.value(tag::INTEGER)?;
    members.value(tag::OCTET_STRING)?;
    let named = members.value(tag::CONTEXT_0).and_then(|inner| Reader(inner).value(tag::OBJECT_IDENTIFIER));
    let carried = members.value(tag::CONTEXT_1).and_then(|inner| Reader(inner).value(tag::BIT_STRING));
    let bits = match carried {
        Some(bits) => bits.get(1..)?.to_vec(),
        None => {
            let pair = EcdsaKeyPair::from_private_key_der(algorithm(&dotted(curve.or(named)?))?, outer).ok()?;
            pair.public_key().as_ref().to_vec()
        }
    };
    Some(PublicKey { algorithm: EC.to_owned(), bits })
}

fn algorithm(curve: &str) -> Option<&'static EcdsaSigningAlgorithm> {
    match curve {
        "1.2.840.10045.3.1.7" => Some(&signature::ECDSA_P256_SHA256_ASN1_SIGNING),
        "1.3.132.0.34" => Some(&signature::ECDSA_P384_SHA384_ASN1_SIGNING),
        "1.3.132.0.35" => Some(&signature::ECDSA_P521_SHA512_ASN1_SIGNING),
        _ => None,
    }
}
