//! What is made and read, without connections.

use super::{V1, V1_LEAF, identity, now, source};
use crate::{Authority, CertError, Facts, Identity, cluster_pair, read_certificates, read_roots, self_signed};

fn facts(pem: &str) -> Facts {
    Facts::read(&read_certificates(source("cluster_cert", pem)).unwrap()[0]).unwrap()
}

fn refused(certificate: &str, key: &str) -> String {
    Identity::read(source("cluster_cert", certificate), source("cluster_cert_key", key)).unwrap_err().to_string()
}

#[test]
fn the_cluster_pair_has_the_name_and_the_validity_that_kong_gives_it() {
    let pair = cluster_pair(1_800_000_000, 1095).unwrap();
    let facts = facts(&pair.certificate);
    assert_eq!((facts.version, facts.subject.as_str()), (3, "CN=kong_clustering"));
    assert_eq!(facts.names, ["kong_clustering"]);
    assert_eq!(facts.not_after, 1_800_000_000 + 1095 * 86_400);
    assert!(facts.valid_at(1_800_000_000) && !facts.valid_at(1_900_000_000) && !facts.valid_at(1_700_000_000));
    assert!(pair.key.starts_with("-----BEGIN PRIVATE KEY-----"));
    assert!(!format!("{pair:?}").contains("PRIVATE KEY"));
    identity(&pair.certificate, &pair.key);
}

#[test]
fn version_1_certificates_are_read() {
    let facts = facts(V1.0);
    assert_eq!((facts.version, facts.common_name.as_deref()), (1, Some("kong_clustering")));
    assert_eq!((facts.names.len(), facts.fingerprint().len(), facts.authority), (0, 64, false));
    identity(V1.0, V1.1);
}

#[test]
fn an_authority_that_was_written_and_read_again_issues_the_same() {
    let (_, pair) = Authority::create("our cluster", now(), 3650).unwrap();
    let authority = Authority::read(source("ca", &pair.certificate), source("ca key", &pair.key)).unwrap();
    let issued = authority.issue_control_plane(&["cp.example.com".into(), "10.0.0.1".into()], now(), 90).unwrap();
    let facts = facts(&issued.certificate);
    assert_eq!(facts.issuer, "CN=our cluster");
    assert_eq!(facts.names, ["cp.example.com", "10.0.0.1"]);
    assert!(!facts.authority);
    identity(&issued.certificate, &issued.key);
    assert_eq!(read_roots(&[source("cluster_ca_cert", authority.certificate())]).unwrap().len(), 1);
}

#[test]
fn names_that_no_certificate_can_carry_are_refused() {
    let error = self_signed(&["ok.example.com".into(), "not a host".into()], now()).unwrap_err();
    assert_eq!(error, CertError::InputName { name: "not a host".into() });
    assert!(self_signed(&["localhost".into(), "::1".into()], now()).is_ok());
}

#[test]
fn each_mistake_names_setting_and_place() {
    let other = cluster_pair(now(), 1).unwrap();
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let cases = [
        (V1.0, "", "cluster_cert_key: no private key in inline text, expected PKCS#8, PKCS#1 or SEC1 in PEM"),
        ("hello", V1.1, "cluster_cert: no certificate in inline text, expected `-----BEGIN CERTIFICATE-----`"),
        (V1.1, V1.1, "cluster_cert: inline text holds a private key, expected a certificate"),
        (V1.0, V1.0, "cluster_cert_key: inline text holds a certificate, expected a private key"),
        (
            V1.0,
            encrypted,
            "cluster_cert_key: the private key in inline text is encrypted, remove the pass phrase (`openssl pkey -in ... -out ...`)",
        ),
        (
            V1.0,
            &other.key,
            "cluster_cert_key (inline text) is not the key of the certificate in cluster_cert (inline text)",
        ),
    ];
    for (certificate, key, expected) in cases {
        assert_eq!(refused(certificate, key), expected);
    }
    let swapped = format!("{}{}", V1_LEAF.0, V1.0);
    assert_eq!(
        refused(&swapped, V1.1),
        "cluster_cert: certificate 2 in inline text belongs to the key, it has to stand first"
    );
}

#[test]
fn broken_texts_are_errors_and_never_panics() {
    for cut in (0..V1.0.trim_end().len()).step_by(7) {
        let broken = &V1.0[..cut];
        assert!(Identity::read(source("c", broken), source("k", V1.1)).is_err(), "{broken}");
    }
    let der = read_certificates(source("c", V1.0)).unwrap().remove(0);
    for at in 0..der.len() {
        let mut changed = der.to_vec();
        changed[at] ^= 0xff;
        drop(Facts::read(&changed));
        assert!(Facts::read(&der[..at]).is_err());
    }
}
