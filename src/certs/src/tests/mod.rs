//! Real handshakes in memory, over certificates of both X.509 versions.

mod handshakes;
mod texts;

use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::{Identity, Source, read_certificates};

/// A pair as Kong's generator makes it: version 1, no names but the common one. Thrown away after it was made.
const V1: (&str, &str) = (include_str!("data/v1.crt"), include_str!("data/v1.key"));
/// A version 1 leaf `cp.example.com`, issued by [`V1_AUTHORITY`] with `openssl x509 -req`.
const V1_LEAF: (&str, &str) = (include_str!("data/leaf.crt"), include_str!("data/leaf.key"));
const V1_AUTHORITY: &str = include_str!("data/ca.crt");

/// rustls reads the system's clock in a handshake, so certificates are made for today.
fn now() -> u64 {
    rustls_pki_types::UnixTime::now().as_secs()
}

fn source<'a>(setting: &'a str, pem: &'a str) -> Source<'a> {
    Source { setting, place: "inline text", pem }
}

fn identity(certificate: &str, key: &str) -> Identity {
    Identity::read(source("cluster_cert", certificate), source("cluster_cert_key", key)).unwrap()
}

fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    read_certificates(source("cluster_ca_cert", pem)).unwrap()
}

/// Both ends after a handshake, or the error of the end that refused it.
fn handshake(
    server: &Arc<ServerConfig>,
    client: (Arc<ClientConfig>, ServerName<'static>),
) -> Result<(ServerConnection, ClientConnection), rustls::Error> {
    let mut server = ServerConnection::new(Arc::clone(server))?;
    let mut client = ClientConnection::new(client.0, client.1)?;
    while server.is_handshaking() || client.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server.process_new_packets()?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok((server, client))
}

/// A client without a certificate that trusts these roots.
fn anonymous(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    builder.with_root_certificates(roots).with_no_client_auth()
}
