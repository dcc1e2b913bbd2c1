//! `gwctl.apply.v1`: what a data plane could not apply, and why. Our own addition: Kong's protocol has no word for it, and
//! a Kong peer is neither offered nor sent it.

use crate::v2::dialect::{self, Dialect};
use crate::v2::rpc::RpcError;
use serde_json::{Value, json};

/// The group of methods.
pub const CAPABILITY: &str = "gwctl.apply.v1";
/// Data plane to control plane, no answer wanted: rows were refused.
pub const REFUSED: &str = "gwctl.apply.v1.refused";

/// Characters of a fault that are sent and kept.
const FAULT_LIMIT: usize = 1000;

/// Rows that a data plane refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The version it serves still.
    pub version: u64,
    /// What is wrong with the rows.
    pub fault: String,
}

impl Refusal {
    /// As it is sent.
    pub fn params(&self) -> Value {
        json!({"version": self.version, "fault": cut(&self.fault)})
    }

    /// As a control plane of Kong 3.10 hears it ([`crate::v2::sync::INVALID`]), which writes it to its log.
    pub fn kong_params(&self) -> Value {
        let error = json!({"code": 21, "name": "sync deltas parse failure", "source": "kong.sync.v2",
            "message": cut(&self.fault), "fields": {}, "flattened_errors": []});
        json!({"version": Dialect::Texts.value(self.version), "error": error})
    }

    /// As a data plane of Kong 3.10 says it. The version is the one it refused; it serves what it had.
    pub fn read_kong(params: &Value) -> Result<Self, RpcError> {
        let member = |name| params.get(0).and_then(|first| first.get(name));
        let Some(error) = member("error") else { return Err(RpcError::invalid_params("expected `error`")) };
        let words = ["message", "flattened_errors", "fields"].iter().filter_map(|name| match error.get(*name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Null) | None => None,
            Some(other) if other.as_array().is_some_and(Vec::is_empty) => None,
            Some(other) if other.as_object().is_some_and(serde_json::Map::is_empty) => None,
            Some(other) => Some(other.to_string()),
        });
        let fault = words.collect::<Vec<_>>().join(": ");
        let version = member("version").and_then(Value::as_str).map_or(0, dialect::version_of);
        Ok(Self { version, fault: cut(&fault) })
    }

    /// As it came.
    pub fn read(params: &Value) -> Result<Self, RpcError> {
        let member = |name| params.get(0).and_then(|first| first.get(name));
        match (member("version").and_then(Value::as_u64), member("fault").and_then(Value::as_str)) {
            (Some(version), Some(fault)) => Ok(Self { version, fault: cut(fault) }),
            _ => Err(RpcError::invalid_params("expected `version` and `fault`")),
        }
    }
}

fn cut(fault: &str) -> String {
    fault.chars().take(FAULT_LIMIT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_kong_as_well() {
        let refusal = Refusal { version: 5, fault: "bad".to_owned() };
        assert_eq!(Refusal::read_kong(&json!([refusal.kong_params()])), Ok(refusal));
        let params = json!([{"version": "v02_deltas_have_no_latest_version_field",
            "error": {"message": "bad", "flattened_errors": [{"entity_type": "route"}], "fields": {}}}]);
        let read = Refusal::read_kong(&params).unwrap();
        assert_eq!((read.version, read.fault.as_str()), (0, r#"bad: [{"entity_type":"route"}]"#));
        assert_eq!(Refusal::read_kong(&json!([{}])).unwrap_err().code, -32602);
    }

    #[test]
    fn a_refusal_survives_the_wire_in_bounded_length() {
        let refusal = Refusal { version: 5, fault: "ä".repeat(5000) };
        let read = Refusal::read(&json!([refusal.params()])).unwrap();
        assert_eq!((read.version, read.fault), (5, "ä".repeat(FAULT_LIMIT)));
        for params in
            [json!([]), json!([{"version": 5}]), json!([{"version": -1, "fault": "x"}]), json!({"version": 5})]
        {
            assert_eq!(Refusal::read(&params).unwrap_err().code, -32602, "{params}");
        }
    }
}
