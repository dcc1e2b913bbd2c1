//! The fleet as a control plane sees it: the answer of `GET /gwctl/fleet`.
//!
//! Plain data, shared by the Admin API that writes it and by the client, the command line and the dashboard that
//! read it. Members added later must be optional, so that older readers keep working.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every data plane a control plane knows, and how far each is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// Always `fleet`: tells this document from others.
    pub kind: String,
    /// Version of the store: number of the last committed change.
    pub version: u64,
    /// Hash of the configuration in force, 32 hexadecimal digits; None where it was never computed.
    #[serde(default)]
    pub config_hash: Option<String>,
    /// The control plane's clock, Unix milliseconds: ages are counted from it, not from the reader's clock.
    pub now_millis: u64,
    /// Ascending by id.
    pub items: Vec<FleetMember>,
}

impl Fleet {
    /// Value of [`Fleet::kind`].
    pub const KIND: &'static str = "fleet";
}

/// One data plane.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FleetMember {
    /// Node id, a UUID.
    pub id: String,
    /// Name for people: the configured node name, else the host name.
    pub name: String,
    pub hostname: String,
    /// Labels the node announced.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Peer address of its connection.
    pub address: String,
    /// Software version it announced.
    pub version: String,
    /// Kong's word: `normal`, `unknown`, `kong_version_incompatible`, `plugin_set_incompatible` ...
    pub sync_status: String,
    /// Why it is not `normal`, in words for people.
    #[serde(default)]
    pub sync_detail: Option<String>,
    /// A connection to this control plane is open.
    pub connected: bool,
    /// Protocol of the connection: `v1`, `v2` or `gwctl`.
    #[serde(default)]
    pub protocol: Option<String>,
    /// Last sign of life, Unix milliseconds.
    pub last_seen_millis: u64,
    /// Hash it last reported.
    #[serde(default)]
    pub config_hash: Option<String>,
    /// Version it last reported as applied; None when it never did (v1 nodes report hashes only).
    #[serde(default)]
    pub applied_version: Option<u64>,
    /// Version it is meant to have: the store's, or less while a roll-out holds it back.
    #[serde(default)]
    pub target_version: Option<u64>,
    /// How long the oldest change it lacks has been waiting; 0 when it lacks none.
    #[serde(default)]
    pub lag_millis: Option<u64>,
    /// Names of the plugins it has; None when it did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<Vec<String>>,
    /// How long its last configuration took to apply.
    #[serde(default)]
    pub apply_millis: Option<u64>,
    /// Why it refused its last configuration.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Group of the roll-out it belongs to.
    #[serde(default)]
    pub rollout_group: Option<String>,
    /// End of its certificate, Unix seconds.
    #[serde(default)]
    pub certificate_expires_at: Option<u64>,
    /// How it is: `online`, `late` (no sign of life for two heartbeats), `offline`, `left` (it said goodbye).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why it is kept up to date by this protocol and no other, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_reason: Option<String>,
    /// From commit to report over the last five minutes; None without a change in that time, or by another protocol
    /// than gwctl's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lags: Option<Lags>,
    /// Microseconds from the receipt of its last change until it was on its disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_micros: Option<u64>,
    /// Microseconds from the receipt of its last change until requests saw it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_micros: Option<u64>,
    /// What it refused last, where it told more than `last_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<FleetRefusal>,
    /// Another data plane is connected under the same id: what is told of one may be the other's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_id: bool,
    /// How often it asked for everything because what it held did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergences: Option<u64>,
}

/// How long changes took from their commit until the report of the node, on the control plane's clock, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lags {
    /// Reports they are made of.
    pub reports: u64,
    /// Half of them took at most so long.
    pub p50_millis: u64,
    /// All but one in a hundred took at most so long.
    pub p99_millis: u64,
    /// The longest.
    pub max_millis: u64,
}

/// What a data plane refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetRefusal {
    /// The version it refused.
    pub version: u64,
    /// Entity of the row at fault; None: not one row alone.
    #[serde(default)]
    pub entity: Option<String>,
    /// Id of the row at fault.
    #[serde(default)]
    pub id: Option<String>,
    /// What is wrong, in words.
    pub fault: String,
}
