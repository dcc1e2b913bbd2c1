//! The log of changes: what each version did, and the way back to one.

use crate::{Client, ClientError};
use gwctl_entities::{Record, Value};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, IF_MATCH};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// A rollback writes as much as any number of versions did.
const ROLLBACK_LIMIT: Duration = Duration::from_secs(300);
/// Message of a server that does not know the path, unlike one that does not know the version.
const NO_SUCH_PATH: [&str; 2] = ["Not found", "no Route matched with those values"];

/// One version, as the history lists it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// Its number.
    pub version: u64,
    /// Unix time of the commit in milliseconds.
    pub time_millis: u64,
    /// Name of the token, user or program.
    #[serde(default)]
    pub who: String,
    /// Door and address.
    #[serde(default)]
    pub from: String,
    /// How many records it changed.
    pub changes: usize,
    /// How many it `created`, `updated` and `deleted`; None of an older server.
    #[serde(default)]
    pub counts: Option<BTreeMap<String, u64>>,
    /// The first of the records.
    #[serde(default)]
    pub records: Vec<NamedRecord>,
}

/// A record that a version changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedRecord {
    /// `created`, `updated` or `deleted`.
    pub action: String,
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
}

/// What happened to one record, secrets masked.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordDelta {
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// Before; None when it was created.
    #[serde(default)]
    pub old: Option<Record>,
    /// After; None when it was deleted.
    #[serde(default)]
    pub new: Option<Record>,
    /// Dotted paths of the secrets that changed.
    #[serde(default)]
    pub secrets_changed: Vec<String>,
}

/// One version with all it did.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct VersionDeltas {
    /// Its number.
    pub version: u64,
    /// Unix time of the commit in milliseconds.
    pub time_millis: u64,
    /// Name of the token, user or program.
    #[serde(default)]
    pub who: String,
    /// Door and address.
    #[serde(default)]
    pub from: String,
    /// Deletions first.
    pub changes: Vec<RecordDelta>,
}

/// What a rollback did or, tried only, would do.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RolledBack {
    /// The version it made; tried only, the one in force.
    pub version: u64,
    /// Parents before children.
    pub changes: Vec<RecordDelta>,
}

#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
}

impl Client {
    /// Versions of the log, newest first, with the first `records` records of each. None when there is no such
    /// endpoint: a plain Kong keeps no history.
    pub async fn history(
        &self,
        before: Option<u64>,
        size: usize,
        records: usize,
    ) -> Result<Option<Vec<HistoryRow>>, ClientError> {
        let before = before.map(|version| format!("&before={version}")).unwrap_or_default();
        let path = format!("/gwctl/history?size={size}&records={records}{before}");
        let Some(page) = known(self.get(&path).await)? else { return Ok(None) };
        let page: Page<HistoryRow> = self.shaped(&path, page)?;
        Ok(Some(page.data))
    }

    /// What one version did. None when there is no such endpoint.
    pub async fn version_deltas(&self, version: u64) -> Result<Option<VersionDeltas>, ClientError> {
        let path = format!("/gwctl/versions/{}..{version}", version.saturating_sub(1));
        let Some(page) = known(self.get(&path).await)? else { return Ok(None) };
        let page: Page<VersionDeltas> = self.shaped(&path, page)?;
        let found = page.data.into_iter().find(|found| found.version == version);
        found.map(Some).ok_or_else(|| self.strange(&path, format!("version {version} is not in it")))
    }

    /// Makes the configuration what it was at a version, with `base` only while that is the version in force (else the
    /// refusal has status 412); tried only, nothing is changed. None when there is no such endpoint.
    pub async fn rollback(
        &self,
        version: u64,
        base: Option<u64>,
        try_only: bool,
    ) -> Result<Option<RolledBack>, ClientError> {
        let path = if try_only { "/gwctl/rollback?dry_run=1" } else { "/gwctl/rollback" };
        let body = json!({ "version": version }).to_string();
        let mut request = self.request(Method::POST, path).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(base) = base {
            request = request.header(IF_MATCH, format!("\"{base}\""));
        }
        let Some(response) = known(self.send(request, &Method::POST, path, ROLLBACK_LIMIT).await)? else {
            return Ok(None);
        };
        self.read(path, response).await.map(Some)
    }

    fn shaped<T: serde::de::DeserializeOwned>(&self, path: &str, value: Value) -> Result<T, ClientError> {
        serde_json::from_value(value).map_err(|error| self.strange(path, format!("not the JSON expected: {error}")))
    }
}

/// None for the 404 of a server that does not know the path.
fn known<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(ClientError::PeerRefused { status: 404, refusal, .. }) if NO_SUCH_PATH.contains(&&*refusal.message) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
