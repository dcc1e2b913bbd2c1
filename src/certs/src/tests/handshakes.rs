//! Who is let in, and how refusals look.

use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::ServerName;

use super::{V1, V1_AUTHORITY, V1_LEAF, anonymous, certificates, handshake, identity, now, source};
use crate::client::with_versions;
use crate::{
    Answer, Authority, Identity, Peers, PemPair, Refusal, Trust, cluster_client_config, cluster_pair, listener_config,
    read_roots, self_signed,
};

fn of(pair: &PemPair) -> Identity {
    identity(&pair.certificate, &pair.key)
}

/// A handshake by the data plane's own configuration, and the judgement of the control plane at a time.
fn join(
    control_plane: &Peers,
    data_plane: &Identity,
    trust: &Trust,
    name: &str,
    time: u64,
) -> Result<Result<String, Refusal>, Error> {
    let client = cluster_client_config(data_plane, trust, RootCertStore::empty(), name).unwrap();
    let (server, _) = handshake(&control_plane.server_config().unwrap(), client)?;
    Ok(control_plane.peer_allowed(server.peer_certificates(), time).map(|facts| facts.subject))
}

#[test]
fn nodes_with_the_same_certificate_join_whatever_its_version() {
    let made = cluster_pair(now(), 1).unwrap();
    for shared in [of(&made), identity(V1.0, V1.1)] {
        let control_plane = Peers::new(shared.clone(), &Trust::Shared);
        let joined = join(&control_plane, &shared, &Trust::Shared, "ignored", now());
        assert_eq!(joined.unwrap().unwrap(), "CN=kong_clustering");
    }
}

#[test]
fn both_versions_of_tls_prove_possession_of_a_version_1_key() {
    let shared = identity(V1.0, V1.1);
    let control_plane = Peers::new(shared.clone(), &Trust::Shared);
    for version in [&TLS12, &TLS13] {
        let client = with_versions(&shared, &Trust::Shared, RootCertStore::empty(), "", &[version]).unwrap();
        let (server, _) = handshake(&control_plane.server_config().unwrap(), client).unwrap();
        assert_eq!(server.protocol_version(), Some(version.version));
        assert!(control_plane.peer_allowed(server.peer_certificates(), now()).is_ok());
        assert_eq!(server.server_name(), Some("kong_clustering"));
    }
}

#[test]
fn a_peer_without_the_key_of_its_certificate_fails_the_handshake() {
    let shared = identity(V1.0, V1.1);
    let control_plane = Peers::new(shared.clone(), &Trust::Shared);
    let other = of(&cluster_pair(now(), 1).unwrap());
    let forged =
        rustls::sign::CertifiedKey::new(shared.certified_key().cert.clone(), Arc::clone(&other.certified_key().key));
    let (config, name) = cluster_client_config(&shared, &Trust::Shared, RootCertStore::empty(), "").unwrap();
    let mut config = (*config).clone();
    config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(forged));
    let error = handshake(&control_plane.server_config().unwrap(), (Arc::new(config), name)).unwrap_err();
    assert_eq!(error, Error::InvalidCertificate(CertificateError::BadSignature));
}

#[test]
fn another_certificate_of_the_same_name_is_closed_without_an_answer() {
    let (ours, theirs) = (of(&cluster_pair(now(), 1).unwrap()), of(&cluster_pair(now(), 1).unwrap()));
    let control_plane = Peers::new(ours.clone(), &Trust::Shared);
    // The data plane refuses first ...
    let error = join(&control_plane, &theirs, &Trust::Shared, "", now()).unwrap_err();
    assert_eq!(error, Error::InvalidCertificate(CertificateError::UnknownIssuer));
    // ... and if it did not, the control plane would.
    let refusal = control_plane.peer_allowed(Some(&[theirs.leaf().clone()]), now()).unwrap_err();
    assert_eq!(refusal.answer(), Answer::Close);
    assert!(refusal.to_string().contains(&ours.facts().fingerprint()), "{refusal}");
}

#[test]
fn a_missing_certificate_passes_the_handshake_and_is_refused_afterwards() {
    let made = cluster_pair(now(), 1).unwrap();
    let trust = Trust::Pki(certificates(&made.certificate));
    for (trust, answer) in [(Trust::Shared, Answer::Close), (trust, Answer::BadRequest)] {
        let control_plane = Peers::new(of(&made), &trust);
        let roots = read_roots(&[source("roots", &made.certificate)]).unwrap();
        let client = (Arc::new(anonymous(roots)), ServerName::try_from("kong_clustering").unwrap());
        let (server, _) = handshake(&control_plane.server_config().unwrap(), client).unwrap();
        assert_eq!(
            control_plane.peer_allowed(server.peer_certificates(), now()),
            Err(Refusal::PeerNoCertificate { answer })
        );
    }
}

#[test]
fn an_expired_certificate_is_answered_even_if_it_is_the_cluster_certificate() {
    let shared = of(&cluster_pair(now(), 1).unwrap());
    let control_plane = Peers::new(shared.clone(), &Trust::Shared);
    for time in [now() + 2 * 86_400, now() - 86_400] {
        let refusal = join(&control_plane, &shared, &Trust::Shared, "", time).unwrap().unwrap_err();
        assert!(matches!(refusal, Refusal::PeerOutdated { .. }), "{refusal}");
        assert_eq!(refusal.answer(), Answer::BadRequest);
    }
}

#[test]
fn a_data_plane_does_not_connect_to_an_expired_certificate() {
    let old = of(&cluster_pair(now() - 10 * 86_400, 1).unwrap());
    let error = join(&Peers::new(old.clone(), &Trust::Shared), &old, &Trust::Shared, "", now()).unwrap_err();
    assert!(matches!(error, Error::InvalidCertificate(CertificateError::ExpiredContext { .. })), "{error}");
}

#[test]
fn a_trusted_certificate_of_the_shared_name_stands_in_for_the_pinned_one() {
    let (authority, _) = Authority::create("roots of the machine", now(), 1).unwrap();
    let other = of(&authority.issue_control_plane(&["kong_clustering".into()], now(), 1).unwrap());
    let ours = of(&cluster_pair(now(), 1).unwrap());
    let roots = read_roots(&[source("lua_ssl_trusted_certificate", authority.certificate())]).unwrap();
    let client = cluster_client_config(&ours, &Trust::Shared, roots, "").unwrap();
    handshake(&Peers::new(other, &Trust::Shared).server_config().unwrap(), client).unwrap();
}

#[test]
fn an_authority_stands_behind_both_ends_in_pki_mode() {
    let (authority, _) = Authority::create("cluster", now(), 1).unwrap();
    let trust = Trust::Pki(certificates(authority.certificate()));
    let names = ["cp.example.com".to_owned(), "10.0.0.1".to_owned()];
    let control_plane = Peers::new(of(&authority.issue_control_plane(&names, now(), 1).unwrap()), &trust);
    let data_plane = of(&authority.issue_data_plane("dp-1", now(), 1).unwrap());
    for name in ["cp.example.com", "10.0.0.1"] {
        assert_eq!(join(&control_plane, &data_plane, &trust, name, now()).unwrap().unwrap(), "CN=dp-1");
    }
    let error = join(&control_plane, &data_plane, &trust, "other.example.com", now()).unwrap_err();
    assert!(matches!(error, Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. })), "{error}");
}

#[test]
fn strangers_and_certificates_for_servers_are_answered_in_pki_mode() {
    let (authority, _) = Authority::create("cluster", now(), 1).unwrap();
    let (stranger, _) = Authority::create("cluster", now(), 1).unwrap();
    let trust = Trust::Pki(certificates(authority.certificate()));
    let names = ["cp.example.com".to_owned()];
    let control_plane = Peers::new(of(&authority.issue_control_plane(&names, now(), 1).unwrap()), &trust);
    let refused = [
        of(&stranger.issue_data_plane("dp-1", now(), 1).unwrap()),
        of(&authority.issue_control_plane(&names, now(), 1).unwrap()),
        of(&cluster_pair(now(), 1).unwrap()),
    ];
    for data_plane in refused {
        let refusal = join(&control_plane, &data_plane, &trust, "cp.example.com", now()).unwrap().unwrap_err();
        assert!(matches!(refusal, Refusal::PeerUntrusted { .. }), "{refusal}");
        assert_eq!(refusal.answer(), Answer::BadRequest);
    }
}

#[test]
fn a_version_1_leaf_of_the_authority_serves_at_both_ends() {
    let trust = Trust::Pki(certificates(V1_AUTHORITY));
    let leaf = identity(V1_LEAF.0, V1_LEAF.1);
    let control_plane = Peers::new(leaf.clone(), &trust);
    assert_eq!(join(&control_plane, &leaf, &trust, "cp.example.com", now()).unwrap().unwrap(), "CN=cp.example.com");
    let error = join(&control_plane, &leaf, &trust, "cp.example.org", now()).unwrap_err();
    assert_eq!(error, Error::InvalidCertificate(CertificateError::NotValidForName));
    let stranger = identity(V1.0, V1.1);
    assert!(control_plane.peer_allowed(Some(&[stranger.leaf().clone()]), now()).is_err());
}

#[test]
fn a_version_1_leaf_with_one_changed_bit_is_refused() {
    let trust = Trust::Pki(certificates(V1_AUTHORITY));
    let leaf = identity(V1_LEAF.0, V1_LEAF.1);
    let control_plane = Peers::new(leaf.clone(), &trust);
    for at in 0..leaf.leaf().len() {
        let mut changed = leaf.leaf().to_vec();
        changed[at] ^= 1;
        assert!(control_plane.peer_allowed(Some(&[changed.into()]), now()).is_err(), "byte {at}");
    }
}

#[test]
fn a_listener_for_anybody_shows_its_own_certificate_and_its_protocols() {
    let pair = self_signed(&["localhost".into()], now()).unwrap();
    let roots = read_roots(&[source("roots", &pair.certificate)]).unwrap();
    let mut client = anonymous(roots);
    client.alpn_protocols = vec![b"h2".to_vec()];
    let config = listener_config(&[of(&pair)], true).unwrap();
    let (server, _) = handshake(&config, (Arc::new(client), ServerName::try_from("localhost").unwrap())).unwrap();
    assert_eq!(server.alpn_protocol(), Some(&b"h2"[..]));
}
