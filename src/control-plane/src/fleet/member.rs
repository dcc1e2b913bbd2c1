//! One data plane: who it is, and what is known of it.

use super::lags::Recent;
use gwctl_entities::fleet::FleetRefusal;
use gwctl_wire::stream::{HEARTBEAT, LATE_BEATS};
use gwctl_wire::v2::dialect::version_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long, in milliseconds, an older connection that was heard counts: longer than the pings of protocol v1 are apart.
const TWIN_FOR: u64 = 90_000;

/// What the upgrade request and the connection said of a data plane.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    pub id: String,
    pub hostname: String,
    pub ip: String,
    pub version: String,
    /// End of its certificate, Unix seconds.
    pub certificate_expires_at: Option<u64>,
    pub protocol: Protocol,
    /// Why this protocol and no other, in words.
    pub reason: &'static str,
}

/// What a connection is there for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Whole configurations.
    #[default]
    V1,
    /// Changes.
    V2,
    /// Our own sync.
    Stream,
    /// Calls only, beside a connection that brings the configuration.
    Calls,
}

impl Protocol {
    /// Its name in rows; None where it says nothing about the way of the configuration.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::V1 => Some("v1"),
            Self::V2 => Some("v2"),
            Self::Stream => Some("gwctl"),
            Self::Calls => None,
        }
    }
}

/// One data plane as stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Member {
    pub(super) hostname: String,
    pub(super) ip: String,
    pub(super) version: String,
    pub(super) sync_status: String,
    pub(super) sync_detail: Option<String>,
    pub(super) config_hash: String,
    pub(super) last_seen_millis: u64,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) certificate_expires_at: Option<u64>,
    pub(super) protocol: String,
    /// Groups of methods it answers; written by protocol v2 only.
    pub(super) rpc_capabilities: Vec<String>,
    /// Why it refused what it was sent last; it serves what it had.
    pub(super) last_error: Option<String>,
    /// Names of its plugins; told by protocol v1 only.
    pub(super) plugins: Option<Vec<String>>,
    /// Its link has reported something; before, Kong's table has no row of it.
    pub(super) recorded: bool,
    /// Version it serves; told by our own sync only.
    pub(super) applied_version: Option<u64>,
    pub(super) stored_micros: Option<u64>,
    pub(super) active_micros: Option<u64>,
    pub(super) refusal: Option<FleetRefusal>,
    pub(super) divergences: u64,
    /// It said goodbye.
    pub(super) left: bool,
    #[serde(skip)]
    pub(super) protocol_reason: Option<&'static str>,
    #[serde(skip)]
    pub(super) connected_millis: u64,
    #[serde(skip)]
    pub(super) lags: Recent,
    #[serde(skip)]
    pub(super) connections: usize,
    /// Number of its newest connection.
    #[serde(skip)]
    pub(super) newest: u64,
    /// When an older connection was heard last beside the newest one.
    #[serde(skip)]
    pub(super) twin_millis: u64,
}

impl Member {
    /// `online`, `late`, `offline` or `left`.
    pub(super) fn state(&self, now_millis: u64) -> &'static str {
        // By Kong's protocols a node pings every 30 s.
        let heartbeat = if self.protocol == "gwctl" { HEARTBEAT } else { Duration::from_secs(30) };
        let late = u64::try_from((heartbeat * LATE_BEATS).as_millis()).unwrap_or(u64::MAX);
        match self.connections {
            0 if self.left => "left",
            0 => "offline",
            _ if now_millis.saturating_sub(self.last_seen_millis) >= late => "late",
            _ => "online",
        }
    }

    /// Whether two nodes have its id.
    pub(super) fn shares_id(&self, now_millis: u64) -> bool {
        self.connections > 1 && now_millis.saturating_sub(self.twin_millis) < TWIN_FOR
    }

    /// Whether it tells the version it serves; else a hash.
    pub(super) fn names_versions(&self) -> bool {
        matches!(self.protocol.as_str(), "v2" | "gwctl")
    }

    /// The version it serves where it is told as such.
    pub(super) fn version(&self) -> Option<u64> {
        match self.protocol.as_str() {
            "v2" => Some(version_of(&self.config_hash)),
            "gwctl" => self.applied_version,
            _ => None,
        }
    }
}
