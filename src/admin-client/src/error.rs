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
    /// The address holds a user or a password.
    #[error("the address of {host} holds a user or password; it would be seen by others and kept in histories")]
    ConfigUserinfo {
        /// Host of the address.
        host: String,
    },
    /// Another option that cannot be used.
    #[error("{option} cannot be used: {why}")]
    ConfigOption {
        /// What it is, in words.
        option: &'static str,
        /// What is wrong with it; no secret.
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
    /// It has no data planes.
    #[error("the node at {address} is no control plane: it knows of no data planes")]
    PeerRole {
        /// Base URL.
        address: String,
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

/// Reason when https is asked of a port that does not speak it.
pub(crate) const NO_TLS: &str = "it does not speak https";
/// Reason when http is asked of a port that does not speak it.
pub(crate) const NO_HTTP: &str = "it does not speak plain http";
/// The address leads somewhere else.
const NOT_ADMIN: &str = "--addr must name the Admin API (admin_listen, by default port 8001), not the proxy, the Status API or \
                         the cluster's port";

impl ClientError {
    /// What to try.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ConfigAddress { .. } => Some("give one like http://127.0.0.1:8001 with --addr or GWCTL_ADDR"),
            Self::ConfigUserinfo { .. } => {
                Some("take it out of the address; a token goes with --token-file, GWCTL_TOKEN_FILE or GWCTL_TOKEN")
            }
            Self::ConfigOption { .. } => None,
            Self::PeerUnreachable { why, .. } if why.contains("certificate") => {
                Some("give the authority that issued it with --cacert FILE, or trust any certificate with --insecure")
            }
            Self::PeerUnreachable { why, .. } if why == NO_TLS => Some("try the address with http://"),
            Self::PeerUnreachable { why, .. } if why == NO_HTTP => Some(
                "the Admin API's https takes https://; the cluster's port (cluster_listen) is for data planes only",
            ),
            Self::PeerUnreachable { .. } => {
                Some("is the control plane running? another address goes with --addr or GWCTL_ADDR")
            }
            Self::PeerRole { .. } => {
                Some("give the address of the Admin API of a node with role = control_plane with --addr or GWCTL_ADDR")
            }
            Self::PeerSilent { .. } => Some("a longer limit goes with --timeout"),
            Self::PeerAnswer { .. } => Some(NOT_ADMIN),
            Self::PeerRefused { status: 401, .. } => {
                Some("give a token with --token-file FILE, GWCTL_TOKEN_FILE or GWCTL_TOKEN (admin_auth = token)")
            }
            Self::PeerRefused { status: 403, .. } => {
                Some("give a token that may do this with --token-file FILE, GWCTL_TOKEN_FILE or GWCTL_TOKEN")
            }
            Self::PeerRefused { status: 400, refusal, .. } if refusal.message.contains("plain HTTP") => Some(
                "the port speaks https; try the address with https://, or the cluster's port was given for the Admin API's",
            ),
            Self::PeerRefused { status: 404, refusal, .. } if refusal.message.starts_with("no Route matched") => {
                Some(NOT_ADMIN)
            }
            // Every Admin API answers what it is.
            Self::PeerRefused { status: 404, path, .. } if path == "/" => Some(NOT_ADMIN),
            Self::PeerRefused { status: 404, path, .. } if path.contains("?size=") => Some(
                "is the plugin that brings this list enabled there? and does --addr name the Admin API (admin_listen), not \
                 the Status API?",
            ),
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
    /// One entry per refused operation of a batch: `index`, `status`, `error` ...
    pub errors: Vec<Value>,
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
            errors: match body.remove("errors") {
                Some(Value::Array(errors)) => errors,
                _ => Vec::new(),
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
