//! Why a request has no good answer.

use gwctl_entities::{Map, Value};
use std::time::Duration;

/// A failed request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The address is none.
    #[error("{address:?} is not an address of an Admin API: {why}")]
    ConfigAddress {
        /// As given.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// No connection.
    #[error("no connection to the Admin API at {address}: {why}")]
    PeerUnreachable {
        /// Base URL.
        address: String,
        /// The system's reason.
        why: String,
    },
    /// Connected, but no answer in time.
    #[error("the Admin API at {address} did not answer {method} {path} within {} s", .after.as_secs_f64())]
    PeerSilent {
        /// Base URL.
        address: String,
        /// Method of the request.
        method: String,
        /// Path of the request.
        path: String,
        /// The limit that passed.
        after: Duration,
    },
    /// An answer with an error status.
    #[error("{method} {path} was refused with status {status}: {refusal}")]
    PeerRefused {
        /// Method of the request.
        method: String,
        /// Path of the request.
        path: String,
        /// HTTP status.
        status: u16,
        /// What the body says.
        refusal: Box<Refusal>,
    },
    /// An answer that is not what an Admin API sends.
    #[error("the answer to {path} of {address} is not an Admin API's: {why}")]
    PeerAnswer {
        /// Base URL.
        address: String,
        /// Path of the request.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ClientError {
    /// What to try.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ConfigAddress { .. } => Some("give one like http://127.0.0.1:8001 with --addr or GWCTL_ADDR"),
            Self::PeerUnreachable { .. } => {
                Some("is the control plane running? another address goes with --addr or GWCTL_ADDR")
            }
            Self::PeerSilent { .. } => Some("a longer limit goes with --timeout"),
            Self::PeerAnswer { .. } => Some("--addr must name the Admin API (admin_listen), not the proxy"),
            Self::PeerRefused { status: 401 | 403, .. } => Some("the Admin API asks for a login that was not given"),
            Self::PeerRefused { .. } => None,
        }
    }

    /// Whether the control plane could not be asked at all: nothing has changed there.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::PeerUnreachable { .. })
    }

    /// HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::PeerRefused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// The body of an error answer: `message`, `code`, `name`, `fields`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Refusal {
    /// Text for people; the status line's words when the body has none.
    pub message: String,
    /// Kong's error code, for example 2 for a schema violation.
    pub code: Option<u64>,
    /// Name of the code, for example `schema violation`.
    pub name: Option<String>,
    /// Error tree by field.
    pub fields: Map<String, Value>,
}

impl Refusal {
    /// Reads a body; anything that is no such object becomes the message.
    pub(crate) fn read(body: &str, fallback: &str) -> Refusal {
        let Ok(Value::Object(mut body)) = serde_json::from_str(body) else {
            let first = body.lines().next().unwrap_or_default().trim();
            let message = if first.is_empty() || first.starts_with('<') { fallback } else { first };
            return Refusal { message: message.chars().take(300).collect(), ..Refusal::default() };
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let message = text(body.get("message")).or_else(|| text(body.get("error")));
        Refusal {
            message: message.unwrap_or_else(|| fallback.to_owned()),
            code: body.get("code").and_then(Value::as_u64),
            name: text(body.get("name")),
            fields: match body.remove("fields") {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            },
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)?;
        match self.code {
            Some(code) => write!(formatter, " (code {code})"),
            None => Ok(()),
        }
    }
}
