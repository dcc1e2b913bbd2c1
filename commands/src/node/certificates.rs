//! The node's own certificates: how long they are valid, and whether their files have changed.

use gwctl_certs::{Facts, Source, read_certificates};
use gwctl_conf::{Materials, NodeConf};
use gwctl_lifecycle::Family;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// Settings that hold certificates which the node presents or trusts.
const CERTIFICATES: [&str; 6] =
    ["cluster_cert", "cluster_ca_cert", "ssl_cert", "admin_ssl_cert", "status_ssl_cert", "client_ssl_cert"];
/// A certificate is told of when it ends within so many days.
const WARN_DAYS: i64 = 30;
const DAY: i64 = 86_400;

/// End of one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expiry {
    setting: &'static str,
    subject: String,
    not_after: i64,
}

/// Ends of all own certificates. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expiries(Arc<RwLock<Vec<Expiry>>>);

impl Expiries {
    /// Takes the certificates in force over. What cannot be read is told elsewhere.
    pub(crate) fn set(&self, materials: &Materials) {
        let of = |setting: &'static str| {
            let sources = materials.all(setting).iter().map(move |(place, pem)| Source { setting, place, pem });
            let certificates = sources.filter_map(|source| read_certificates(source).ok()?.into_iter().next());
            let facts = certificates.filter_map(|der| Facts::read(&der).ok());
            facts.map(move |facts| Expiry { setting, subject: facts.subject, not_after: facts.not_after })
        };
        let all = CERTIFICATES.into_iter().flat_map(of).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// Writes those that end soon, or have ended, to the log.
    pub(crate) fn warn(&self, now: i64) {
        for Expiry { setting, subject, not_after } in self.0.read().unwrap_or_else(PoisonError::into_inner).iter() {
            let days = (not_after - now).div_euclid(DAY);
            if now >= *not_after {
                tracing::error!(
                    setting,
                    subject,
                    "certificate has expired: replace its file, it is read again by itself"
                );
            } else if days < WARN_DAYS {
                tracing::warn!(setting, subject, days_left = days, "certificate expires soon");
            }
        }
    }

    /// Figures for Prometheus.
    pub(crate) fn write(&self, out: &mut String) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return;
        }
        let help = "End of a certificate of this node, Unix seconds.";
        let mut family = Family::begin(out, "gwctl_certificate_expiry_timestamp_seconds", "gauge", help);
        // Two of one setting may have one subject.
        let mut seen = BTreeSet::new();
        for Expiry { setting, subject, not_after } in all.iter() {
            if seen.insert((setting, subject)) {
                family.line("", &[("setting", setting), ("subject", subject)], not_after);
            }
        }
    }
}

/// What a file looks like from outside; another one of its name looks different.
type Look = Vec<(PathBuf, Option<(u64, u64, i64, i64, u64)>)>;

/// Notices that certificate files have been replaced.
pub(crate) struct FileWatch {
    known: Look,
    /// What was seen last, when that is not what is known: files that are being written are left alone.
    changing: Option<Look>,
}

impl FileWatch {
    pub(crate) fn new(conf: &NodeConf) -> Self {
        Self { known: look(conf), changing: None }
    }

    /// Whether files have changed and look the same as the last time this was asked.
    pub(crate) fn settled(&mut self, conf: &NodeConf) -> bool {
        let seen = look(conf);
        if seen == self.known {
            self.changing = None;
            return false;
        }
        if self.changing.as_ref() == Some(&seen) {
            (self.known, self.changing) = (seen, None);
            return true;
        }
        self.changing = Some(seen);
        false
    }
}

fn look(conf: &NodeConf) -> Look {
    let seen = |path: PathBuf| {
        let facts = std::fs::metadata(&path).ok();
        let facts = facts.map(|facts| (facts.dev(), facts.ino(), facts.mtime(), facts.mtime_nsec(), facts.len()));
        (path, facts)
    };
    conf.material_files().into_iter().map(seen).collect()
}
