//! Questions about certificates made here, and answers signed by hand.

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SigningKey,
};

/// 2026-01-01T00:00:00Z.
const NOW: u64 = 1_767_225_600;
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const URL: &str = "http://127.0.0.1:8888/ocsp";

struct Stage {
    authority: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    leaf: CertificateDer<'static>,
}

fn parameters(name: &str) -> CertificateParams {
    let mut wanted = CertificateParams::new(Vec::new()).unwrap();
    wanted.distinguished_name.push(DnType::CommonName, name);
    wanted.not_before = rcgen::date_time_ymd(2025, 1, 1);
    wanted.not_after = rcgen::date_time_ymd(2035, 1, 1);
    wanted
}

fn access(url: &str) -> CustomExtension {
    let method = element(tag::OID, &[&BASIC_OID[..BASIC_OID.len() - 1]]);
    let way = element(tag::SEQUENCE, &[&method, &element(tag::implicit(6), &[url.as_bytes()])]);
    CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 1], element(tag::SEQUENCE, &[&way]))
}

fn stage(url: Option<&str>) -> Stage {
    let (mut authority, key) = (parameters("authority"), KeyPair::generate().unwrap());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&key).unwrap().der().clone();
    let issuer = Issuer::new(authority, key);
    let mut leaf = parameters("leaf");
    leaf.custom_extensions.extend(url.map(access));
    let leaf = leaf.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().clone();
    Stage { authority: certificate, issuer, leaf }
}

fn algorithms() -> Algorithms {
    rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.all
}

impl Stage {
    fn question(&self) -> Result<OcspQuestion, OcspFault> {
        OcspQuestion::about(&self.leaf, [&self.authority], algorithms())
    }

    /// An answer about the certificate asked for, signed by this key.
    fn answer(&self, said: &Said<'_>, key: &dyn SigningKey, with: &[&[u8]]) -> Vec<u8> {
        let question = self.question().unwrap();
        let id = Reader(&question.request).next().unwrap();
        let id = [(); 4].iter().fold(id, |element, ()| element.inside().next().unwrap());
        let until = said.until.map(|until| element(tag::context(0), &[&time(until)])).unwrap_or_default();
        let single = element(tag::SEQUENCE, &[id.whole, &said.status, &time(said.from), &until]);
        let responder = element(tag::context(2), &[&element(tag::OCTET_STRING, &[&[0; 20]])]);
        let list = element(tag::SEQUENCE, &[&single]);
        let data = element(tag::SEQUENCE, &[&responder, &time("20260101000000Z"), &list]);
        let algorithm = element(tag::SEQUENCE, &[&element(tag::OID, &[ECDSA_SHA256])]);
        let signature = element(tag::BIT_STRING, &[&[0], &key.sign(&data).unwrap()]);
        let certificates = element(tag::context(0), &[&element(tag::SEQUENCE, with)]);
        let basic = element(tag::SEQUENCE, &[&data, &algorithm, &signature, &certificates]);
        let bytes = [element(tag::OID, &[BASIC_OID]), element(tag::OCTET_STRING, &[&basic])].concat();
        let status = element(tag::ENUMERATED, &[&[0]]);
        element(tag::SEQUENCE, &[&status, &element(tag::context(0), &[&element(tag::SEQUENCE, &[&bytes])])])
    }

    fn judged(&self, said: &Said<'_>) -> Result<(), OcspFault> {
        self.question().unwrap().judge(&self.answer(said, self.issuer.key(), &[]), NOW)
    }
}

struct Said<'a> {
    status: Vec<u8>,
    from: &'a str,
    until: Option<&'a str>,
}

fn time(text: &str) -> Vec<u8> {
    element(tag::GENERALIZED_TIME, &[text.as_bytes()])
}

fn good() -> Said<'static> {
    Said { status: element(tag::implicit(0), &[]), from: "20251231000000Z", until: Some("20260102000000Z") }
}

fn revoked() -> Said<'static> {
    Said { status: element(tag::context(1), &[&time("20251230000000Z")]), ..good() }
}

#[test]
fn a_question_names_the_issuer_and_the_serial_number_for_the_responder_of_the_leaf() {
    let stage = stage(Some(URL));
    let question = stage.question().unwrap();
    assert_eq!(question.url, URL);
    assert_eq!(question.asked[2], facts::parse(&stage.leaf).unwrap().raw_serial());
    let others = super::tests::stage(Some(URL));
    assert_eq!(
        OcspQuestion::about(&stage.leaf, [&others.authority], algorithms()).unwrap_err(),
        OcspFault::PeerNoIssuer,
        "an authority of the same name with another key"
    );
    for url in [None, Some("ldap://x"), Some("https://x")] {
        assert_eq!(super::tests::stage(url).question().unwrap_err(), OcspFault::PeerNoResponder);
    }
}

#[test]
fn a_certificate_stands_when_its_authority_says_so_now() {
    let stage = stage(Some(URL));
    assert_eq!(stage.judged(&good()), Ok(()));
    assert_eq!(stage.judged(&Said { until: None, ..good() }), Ok(()));
    assert_eq!(stage.judged(&revoked()), Err(OcspFault::PeerRevoked));
    let unknown = Said { status: element(tag::implicit(2), &[]), ..good() };
    assert_eq!(stage.judged(&unknown), Err(OcspFault::PeerUnknown));
    let stale = stage.judged(&Said { until: Some("20251231120000Z"), ..good() });
    assert_eq!(stale, Err(OcspFault::PeerAnswer("it is out of date")));
    let early = stage.judged(&Said { from: "20260101010000Z", ..good() });
    assert_eq!(early, Err(OcspFault::PeerAnswer("it is of the future")));
    let old_news = stage.judged(&Said { until: Some("20251231120000Z"), ..revoked() });
    assert_eq!(old_news, Err(OcspFault::PeerRevoked));
}

#[test]
fn only_the_authority_and_its_responders_are_believed() {
    let stage = stage(Some(URL));
    let forged = Err(OcspFault::PeerAnswer("neither the authority nor a responder of it has signed it"));
    let question = stage.question().unwrap();
    let key = KeyPair::generate().unwrap();
    let mut responder = parameters("responder");
    let without_purpose = responder.clone().signed_by(&key, &stage.issuer).unwrap();
    responder.extended_key_usages = vec![ExtendedKeyUsagePurpose::OcspSigning];
    let with_purpose = responder.clone().signed_by(&key, &stage.issuer).unwrap();
    let of_another = responder.signed_by(&key, &super::tests::stage(None).issuer).unwrap();
    for (certificates, believed) in [
        (vec![&with_purpose], true),
        (vec![&without_purpose, &with_purpose], true),
        (vec![&without_purpose], false),
        (vec![&of_another], false),
        (vec![], false),
    ] {
        let with: Vec<&[u8]> = certificates.iter().map(|certificate| certificate.der().as_ref()).collect();
        let judged = question.judge(&stage.answer(&good(), &key, &with), NOW);
        assert_eq!(judged, if believed { Ok(()) } else { forged.clone() });
    }
}

#[test]
fn an_answer_about_another_certificate_or_a_damaged_one_is_of_no_use() {
    let (stage, other) = (stage(Some(URL)), stage(Some(URL)));
    let key = stage.issuer.key();
    let about_other = other.answer(&good(), key, &[]);
    let judged = stage.question().unwrap().judge(&about_other, NOW);
    assert_eq!(judged, Err(OcspFault::PeerAnswer("it is about other certificates")));
    let answer = stage.answer(&good(), key, &[]);
    for end in 0..answer.len() {
        assert!(stage.question().unwrap().judge(&answer[..end], NOW).is_err(), "cut at {end}");
    }
    for at in 0..answer.len() {
        let mut changed = answer.clone();
        changed[at] ^= 0x55;
        // The lengths around what is signed are all that may be different and still mean the same.
        let judged = stage.question().unwrap().judge(&changed, NOW);
        assert!(judged.is_err() || at >= answer.len() - 4, "changed at {at}");
    }
    let later = element(tag::SEQUENCE, &[&element(tag::ENUMERATED, &[&[3]])]);
    let judged = stage.question().unwrap().judge(&later, NOW);
    assert_eq!(judged, Err(OcspFault::PeerAnswer("it asks to try later")));
}
