//! Certificates of listeners, chosen by the server name a client asks for.

use crate::snapshot::SnapshotHandle;
use crate::tables::{Change, Link, Tables, changes};
use gwctl_certs::{Identity, ListenerPairs, Source};
use gwctl_entities::view::{Certificate, Sni};
use imbl::HashMap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// The pairs of one `certificates` row: its main one, and an alternative with a key of another kind.
pub(crate) type Pairs = Arc<[Arc<CertifiedKey>]>;

/// All certificates of a snapshot. Names are exact, `*.rest` or `rest.*`. A copy costs nothing.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    read: HashMap<Arc<str>, Pairs>,
    by_name: HashMap<Arc<str>, Pairs>,
}

impl Certificates {
    /// The certificates after a change of the tables; pairs of rows that did not change are taken over. A row that
    /// cannot be read is left out and logged: its names get the node's own certificate, all else is served.
    pub(crate) fn changed(&self, old: &Tables, new: &Tables) -> Certificates {
        let mut certificates = self.clone();
        let mut snis: Vec<Change<Sni>> = changes(old, new);
        for Change { id, new: row, .. } in changes::<Certificate>(old, new) {
            certificates.read.remove(&id);
            match row.as_deref().map(read_pairs) {
                Some(Ok(pairs)) => _ = certificates.read.insert(id.clone(), pairs),
                Some(Err(error)) => tracing::error!(certificate = &*id, %error, "certificate cannot be used"),
                None => {}
            }
            snis.extend(new.linked(Link::SniOfCertificate, &id).map(|sni| {
                let row = |tables: &Tables| tables.snis.get(sni).cloned();
                Change { id: sni.clone(), old: row(old), new: row(new) }
            }));
        }
        // All old names go first: a name may pass from one row to another.
        for sni in snis.iter().filter_map(|change| change.old.as_ref()) {
            certificates.by_name.remove(&*sni.name.to_ascii_lowercase());
        }
        for sni in snis.iter().filter_map(|change| change.new.as_ref()) {
            let pairs = sni.certificate.as_ref().and_then(|id| certificates.pairs(id));
            if let Some(pairs) = pairs.cloned() {
                certificates.by_name.insert(sni.name.to_ascii_lowercase().into(), pairs);
            }
        }
        certificates
    }

    /// The pairs of a row.
    pub(crate) fn pairs(&self, id: &str) -> Option<&Pairs> {
        self.read.get(id)
    }

    /// Exact name, then a wildcard in place of the first label, then of the last, then the name `*`.
    pub(crate) fn find(&self, name: &str) -> Option<&Pairs> {
        let first = || self.by_name.get(&*format!("*{}", &name[name.find('.')?..]));
        let last = || self.by_name.get(&*format!("{}*", &name[..=name.rfind('.')?]));
        self.by_name.get(name).or_else(first).or_else(last).or_else(|| self.by_name.get("*"))
    }
}

fn read_pairs(row: &Certificate) -> Result<Pairs, gwctl_certs::CertError> {
    let mut pairs = vec![read_pair(("cert", &row.cert), ("key", &row.key))?];
    if let (Some(cert), Some(key)) = (&row.cert_alt, &row.key_alt) {
        pairs.push(read_pair(("cert_alt", cert), ("key_alt", key))?);
    }
    Ok(pairs.into())
}

fn read_pair(cert: (&str, &str), key: (&str, &str)) -> Result<Arc<CertifiedKey>, gwctl_certs::CertError> {
    let source = |(setting, pem)| Source { setting, place: "certificates row", pem };
    Ok(Identity::read(source(cert), source(key))?.certified_key())
}

/// Chooses by the snapshot in force; the node's own certificates answer for names it does not know.
pub(crate) struct ByName {
    pub(crate) snapshots: SnapshotHandle,
    pub(crate) own: ListenerPairs,
}

impl std::fmt::Debug for ByName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ByName").finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let snapshot = self.snapshots.load();
        let named = hello.server_name().and_then(|name| snapshot.certificates.find(&name.to_ascii_lowercase()));
        let Some(pairs) = named else { return self.own.resolve(hello) };
        let fitting = pairs.iter().find(|pair| pair.key.choose_scheme(hello.signature_schemes()).is_some());
        fitting.or(pairs.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tables(names: &[&str]) -> Tables {
        let pair = gwctl_certs::self_signed(&["a.test".to_owned()], 1_700_000_000).unwrap();
        let mut tables = Tables::default();
        for name in names {
            let certificate = json!({"id": name, "cert": pair.certificate, "key": pair.key});
            let sni = json!({"id": name, "name": name, "certificate": {"id": name}});
            assert!(tables.put("certificates", certificate.as_object().unwrap()).unwrap());
            assert!(tables.put("snis", sni.as_object().unwrap()).unwrap());
        }
        tables
    }

    #[test]
    fn exact_beats_wildcards_and_the_first_label_beats_the_last() {
        let tables = tables(&["a.b.test", "*.b.test", "a.b.*", "*"]);
        let certificates = Certificates::default().changed(&Tables::default(), &tables);
        let finds =
            |name: &str, row: &str| Arc::ptr_eq(certificates.find(name).unwrap(), certificates.pairs(row).unwrap());
        assert!(finds("a.b.test", "a.b.test"));
        assert!(finds("x.b.test", "*.b.test"));
        assert!(finds("a.b.example", "a.b.*"));
        assert!(finds("other", "*"));
    }

    #[test]
    fn unchanged_rows_keep_their_pairs_and_broken_ones_are_left_out() {
        let mut tables = tables(&["a.test"]);
        let first = Certificates::default().changed(&Tables::default(), &tables);
        let before = tables.clone();
        let broken = json!({"id": "broken", "cert": "no", "key": "no"});
        tables.put("certificates", broken.as_object().unwrap()).unwrap();
        let second = first.changed(&before, &tables);
        assert!(Arc::ptr_eq(first.pairs("a.test").unwrap(), second.pairs("a.test").unwrap()));
        assert!(second.pairs("broken").is_none());
    }
}
