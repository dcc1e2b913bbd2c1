//! Many operations in one transaction: `POST /gwctl/changes`.

use crate::{Client, ClientError};
use gwctl_entities::Record;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, IF_MATCH};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time for each operation of a batch, on top of the limit of a request.
const EACH: Duration = Duration::from_millis(10);

/// One operation of a batch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeOperation {
    /// `upsert`, `delete` ...
    pub action: &'static str,
    /// Schema name.
    pub entity: String,
    /// Id of the record.
    pub id: String,
    /// The record; none for a delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Record>,
    /// Some(false): passwords in the body are hashes already and are stored as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transform: Option<bool>,
}

/// What a batch did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ChangesDone {
    /// Version of the configuration that it made.
    pub version: u64,
}

#[derive(Serialize)]
struct Body<'a> {
    operations: &'a [ChangeOperation],
}

impl Client {
    /// All operations or none, as one version. With `base` only when that is still the version in force; else the
    /// refusal has status 412. None when there is no such endpoint: nothing was sent to a plain Kong.
    pub async fn change(
        &self,
        operations: &[ChangeOperation],
        base: Option<u64>,
    ) -> Result<Option<ChangesDone>, ClientError> {
        const PATH: &str = "/gwctl/changes?results=none";
        let body = serde_json::to_vec(&Body { operations })
            .map_err(|error| self.strange(PATH, format!("the operations cannot be written as JSON: {error}")))?;
        let mut request = self.request(Method::POST, PATH).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(base) = base {
            request = request.header(IF_MATCH, format!("\"{base}\""));
        }
        let operations = u32::try_from(operations.len()).unwrap_or(u32::MAX);
        match self.send(request, &Method::POST, PATH, self.timeout() + EACH.saturating_mul(operations)).await {
            Ok(response) => self.read(PATH, response).await.map(Some),
            Err(ClientError::PeerRefused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
