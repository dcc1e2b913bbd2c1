//! `kong.debug.log_level.v1`: the level of a data plane's log, read and set from the control plane. Kong 3.7 and 3.8 had it;
//! a peer that does not list the group is never asked.

use crate::v2::rpc::RpcError;
use serde_json::{Value, json};

/// The group of methods.
pub const CAPABILITY: &str = "kong.debug.log_level.v1";
/// Control plane to data plane: which levels?
pub const GET: &str = "kong.debug.log_level.v1.get_log_level";
/// Control plane to data plane: this level for so many seconds.
pub const SET: &str = "kong.debug.log_level.v1.set_log_level";

/// Seconds a level lasts when none are said.
pub const DEFAULT_SECONDS: u64 = 60;

/// Levels that can be set, in Kong's words.
pub const LEVELS: [&str; 9] = ["debug", "info", "notice", "warn", "error", "crit", "alert", "emerg", "off"];

/// What a data plane is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Which level is in force?
    Get,
    /// Take this one.
    Set {
        /// The level.
        level: String,
        /// How long; 0: the node's own level comes back at once.
        seconds: u64,
    },
}

/// The levels of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// The one in force.
    pub current: String,
    /// Seconds until it ends; 0 when it does not.
    pub seconds: u64,
    /// The one that follows then.
    pub original: String,
}

impl Asked {
    /// The method by which it is asked.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Get => GET,
            Self::Set { .. } => SET,
        }
    }

    /// The parameters by position.
    pub fn params(&self) -> Vec<Value> {
        match self {
            Self::Get => Vec::new(),
            Self::Set { level, seconds } => vec![json!(level), json!(seconds)],
        }
    }

    /// Reads a call; None when the method is another.
    pub fn read(method: &str, params: &Value) -> Option<Result<Self, RpcError>> {
        match method {
            GET => Some(Ok(Self::Get)),
            SET => Some(Self::read_level(params)),
            _ => None,
        }
    }

    fn read_level(params: &Value) -> Result<Self, RpcError> {
        let level = params.get(0).and_then(Value::as_str).unwrap_or_default();
        if !LEVELS.contains(&level) {
            let shown: String = level.chars().take(40).collect();
            return Err(RpcError::failed(format!("unknown log level: {shown}")));
        }
        let seconds = params.get(1).and_then(Value::as_f64).filter(|seconds| *seconds >= 0.0);
        let seconds = seconds.map_or(DEFAULT_SECONDS, |seconds| seconds.ceil() as u64);
        Ok(Self::Set { level: level.to_owned(), seconds })
    }
}

impl Levels {
    /// As it is answered, by the data plane and by the Admin API.
    pub fn value(&self) -> Value {
        json!({"current_level": self.current, "timeout": self.seconds, "original_level": self.original})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_the_wire_and_levels_are_checked() {
        for asked in [Asked::Get, Asked::Set { level: "debug".to_owned(), seconds: 5 }] {
            assert_eq!(Asked::read(asked.method(), &Value::from(asked.params())), Some(Ok(asked.clone())));
        }
        let default = Asked::Set { level: "off".to_owned(), seconds: DEFAULT_SECONDS };
        assert_eq!(Asked::read(SET, &json!(["off"])), Some(Ok(default)));
        for params in [json!([]), json!(["loud", 5]), json!({}), json!(null)] {
            assert_eq!(Asked::read(SET, &params).unwrap().unwrap_err().code, -32000, "{params}");
        }
        assert_eq!(Asked::read("kong.sync.v2.get_delta", &json!([])), None);
    }
}
