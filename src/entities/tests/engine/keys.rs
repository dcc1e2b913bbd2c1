//! Certificates and keys: what can be read, and what belongs together.

use crate::support::{Memory, Steady, record, registry};
use gwctl_entities::{EntityError, Record, Value};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SignatureAlgorithm, date_time_ymd};
use serde_json::json;

fn insert(entity: &str, input: Value) -> Result<Record, EntityError> {
    registry().process_insert(entity, record(input), &mut Steady::default(), &Memory::default())
}

fn entity_message(outcome: Result<Record, EntityError>) -> String {
    let body = outcome.unwrap_err().body();
    body["fields"]["@entity"][0].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

/// A certificate for a new key of this kind.
fn pair(algorithm: &'static SignatureAlgorithm) -> (String, KeyPair) {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let certificate = CertificateParams::new(vec!["a.test".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key)
}

fn authority(change: impl FnOnce(&mut CertificateParams)) -> String {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut parameters);
    parameters.self_signed(&key).unwrap().pem()
}

#[test]
fn a_certificate_needs_the_key_it_was_made_for() {
    let kinds =
        [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519, &rcgen::PKCS_RSA_SHA256];
    for kind in kinds {
        let (certificate, key) = pair(kind);
        let stored = insert("certificates", json!({"cert": certificate, "key": key.serialize_pem()}));
        assert!(stored.is_ok(), "{kind:?}: {stored:?}");
        let (_, other) = pair(kind);
        let mixed = insert("certificates", json!({"cert": certificate, "key": other.serialize_pem()}));
        assert_eq!(entity_message(mixed), "certificate does not match key", "{kind:?}");
    }
}

#[test]
fn an_alternative_certificate_has_another_type_of_key() {
    let (first, first_key) = pair(&rcgen::PKCS_ECDSA_P256_SHA256);
    for (kind, accepted) in [(&rcgen::PKCS_RSA_SHA256, true), (&rcgen::PKCS_ECDSA_P256_SHA256, false)] {
        let (second, second_key) = pair(kind);
        let outcome = insert(
            "certificates",
            json!({
                "cert": first, "key": first_key.serialize_pem(),
                "cert_alt": second, "key_alt": second_key.serialize_pem(),
            }),
        );
        assert_eq!(outcome.is_ok(), accepted, "{kind:?}");
    }
}

#[test]
fn what_is_no_pem_is_refused_without_showing_it() {
    let body = insert("certificates", json!({"cert": "secret", "key": "secret"})).unwrap_err().body().to_string();
    assert!(body.contains("invalid certificate") && body.contains("invalid key"), "{body}");
    assert!(!body.contains("secret"), "{body}");
}

#[test]
fn an_authority_is_one_valid_certificate_marked_as_such() {
    let good = authority(|_| ());
    let stored = insert("ca_certificates", json!({"cert": good, "cert_digest": "given"})).unwrap();
    assert_eq!(stored["cert_digest"].as_str().unwrap().len(), 64);
    let plain = authority(|parameters| parameters.is_ca = IsCa::NoCa);
    let message = entity_message(insert("ca_certificates", json!({"cert": plain})));
    assert!(message.starts_with("certificate does not appear to be a CA"), "{message}");
    let expired = authority(|parameters| parameters.not_after = date_time_ymd(2001, 1, 1));
    let message = entity_message(insert("ca_certificates", json!({"cert": expired})));
    assert!(message.starts_with("certificate expired"), "{message}");
    let both = format!("{good}{good}");
    let message = entity_message(insert("ca_certificates", json!({"cert": both})));
    assert_eq!(message, "please submit only one certificate at a time");
}

#[test]
fn key_pairs_must_belong_together() {
    let (_, key) = pair(&rcgen::PKCS_ED25519);
    let (_, other) = pair(&rcgen::PKCS_ED25519);
    let pem = |public: String| json!({"kid": "k", "pem": {"private_key": key.serialize_pem(), "public_key": public}});
    assert!(insert("keys", pem(key.public_key_pem())).is_ok());
    let body = insert("keys", pem(other.public_key_pem())).unwrap_err().body();
    assert_eq!(body["fields"], json!({"pem": "public key does not match private key"}));
}

#[test]
fn web_keys_are_asymmetric_and_carry_their_id() {
    for (jwk, expected) in [
        (r#"{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"k"}"#, None),
        (r#"{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"j"}"#, Some("kid in jwk.kid must be equal to keys.kid")),
        (r#"{"kty":"oct","k":"AA","kid":"k"}"#, Some("could not load JWK, likely not a valid key")),
        ("{", Some("could not json decode jwk string")),
    ] {
        let outcome = insert("keys", json!({"kid": "k", "jwk": jwk}));
        match expected {
            None => assert!(outcome.is_ok(), "{jwk}"),
            Some(expected) => assert_eq!(entity_message(outcome), expected, "{jwk}"),
        }
    }
}

#[test]
fn signing_algorithms_with_public_keys_need_one() {
    let consumer = json!({"id": "00000000-0000-4000-8000-000000000004"});
    let (_, key) = pair(&rcgen::PKCS_ED25519);
    let secret = |key: Option<String>| {
        insert("jwt_secrets", json!({"consumer": consumer, "algorithm": "EdDSA", "rsa_public_key": key}))
    };
    assert!(secret(Some(key.public_key_pem())).is_ok());
    assert!(secret(None).is_err());
    assert!(secret(Some("no key".to_owned())).is_err());
}
