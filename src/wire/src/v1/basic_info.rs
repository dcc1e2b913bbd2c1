//! The first frame of a data plane: who it is and which plugins it has.

use crate::Frame;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a data plane says of itself in its first frame.
///
/// On the wire: a binary frame of plain (not compressed) JSON with `type` = `basic_info`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasicInfo {
    /// Every enabled plugin of the node.
    pub plugins: Vec<PluginVersion>,
    /// Names of its wasm filters.
    pub filters: BTreeSet<String>,
    /// Labels from its settings; empty when it sent none.
    pub labels: BTreeMap<String, String>,
}

/// A plugin a node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginVersion {
    /// Plugin name as configured, for example `key-auth`.
    pub name: String,
    /// Version the plugin states; None when it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Why a first frame is no basic information. Each ends the link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BasicInfoError {
    /// Something else than a binary frame.
    #[error("expected a binary frame with the basic info, got a {actual} frame")]
    PeerFrameKind {
        /// The frame's kind.
        actual: &'static str,
    },
    /// The payload is not JSON.
    #[error("failed to decode the basic info: {reason}")]
    PeerNotJson {
        /// What the JSON reader said.
        reason: String,
    },
    /// JSON, but no object.
    #[error("expected an object as basic info, got {actual}")]
    PeerNotObject {
        /// The JSON type that came.
        actual: &'static str,
    },
    /// `type` is missing or not `basic_info`.
    #[error("expected type \"basic_info\", got {actual}")]
    PeerWrongType {
        /// The value that came, as JSON.
        actual: String,
    },
    /// A member has the wrong shape.
    #[error("expected {field} of the basic info to be {expected}, got {actual}")]
    PeerField {
        /// Path of the member.
        field: String,
        /// The shape wanted, in words.
        expected: &'static str,
        /// The JSON type that came.
        actual: &'static str,
    },
}

#[derive(Serialize)]
struct Message<'a> {
    r#type: &'static str,
    plugins: &'a [PluginVersion],
    filters: BTreeMap<&'a str, Filter<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    process_conf: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Filter<'a> {
    name: &'a str,
}

impl BasicInfo {
    /// The message as a payload for a binary frame.
    ///
    /// `process_conf` is the node's effective configuration with its secrets already masked; control planes of the
    /// open-source edition ignore it.
    pub fn encode(&self, process_conf: &Map<String, Value>) -> Bytes {
        let message = Message {
            r#type: "basic_info",
            plugins: &self.plugins,
            filters: self.filters.iter().map(|name| (name.as_str(), Filter { name })).collect(),
            labels: &self.labels,
            process_conf,
        };
        serde_json::to_vec(&message).expect("strings and JSON values always serialise").into()
    }

    /// Reads the first frame of a data plane.
    ///
    /// Empty lists may arrive as `{}`. Unknown members are ignored. The version of a plugin that is no text counts
    /// as not stated.
    pub fn decode(frame: &Frame) -> Result<Self, BasicInfoError> {
        let Frame::Binary(payload) = frame else {
            return Err(BasicInfoError::PeerFrameKind { actual: frame.kind() });
        };
        let message: Value = serde_json::from_slice(payload)
            .map_err(|error| BasicInfoError::PeerNotJson { reason: error.to_string() })?;
        let Value::Object(message) = message else {
            return Err(BasicInfoError::PeerNotObject { actual: type_name(&message) });
        };
        match message.get("type") {
            Some(Value::String(name)) if name == "basic_info" => {}
            other => {
                let actual = other.map_or_else(|| "nothing".to_owned(), Value::to_string);
                return Err(BasicInfoError::PeerWrongType { actual });
            }
        }
        Ok(Self {
            plugins: plugins(message.get("plugins"))?,
            filters: filters(message.get("filters"))?,
            labels: labels(message.get("labels"))?,
        })
    }
}

fn plugins(value: Option<&Value>) -> Result<Vec<PluginVersion>, BasicInfoError> {
    let entries = match value {
        Some(Value::Array(entries)) => entries,
        Some(Value::Object(empty)) if empty.is_empty() => return Ok(Vec::new()),
        other => return Err(field("plugins", "a list", other)),
    };
    let read = |(index, entry): (usize, &Value)| {
        let name = entry.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| field(&format!("plugins[{index}].name"), "a text", entry.get("name")))?;
        let version = entry.get("version").and_then(Value::as_str).map(str::to_owned);
        Ok(PluginVersion { name: name.to_owned(), version })
    };
    entries.iter().enumerate().map(read).collect()
}

fn filters(value: Option<&Value>) -> Result<BTreeSet<String>, BasicInfoError> {
    match value {
        None | Some(Value::Null) => Ok(BTreeSet::new()),
        Some(Value::Object(filters)) => Ok(filters.keys().cloned().collect()),
        Some(Value::Array(empty)) if empty.is_empty() => Ok(BTreeSet::new()),
        other => Err(field("filters", "an object", other)),
    }
}

fn labels(value: Option<&Value>) -> Result<BTreeMap<String, String>, BasicInfoError> {
    let labels = match value {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(labels)) => labels,
        Some(Value::Array(empty)) if empty.is_empty() => return Ok(BTreeMap::new()),
        other => return Err(field("labels", "an object", other)),
    };
    let read = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        other => Err(field(&format!("labels.{key}"), "a text", Some(other))),
    };
    labels.iter().map(read).collect()
}

fn field(field: &str, expected: &'static str, actual: Option<&Value>) -> BasicInfoError {
    BasicInfoError::PeerField { field: field.to_owned(), expected, actual: actual.map_or("nothing", type_name) }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(message: &Value) -> Frame {
        Frame::Binary(serde_json::to_vec(message).unwrap().into())
    }

    fn info() -> BasicInfo {
        let plugin = |name: &str, version: Option<&str>| PluginVersion {
            name: name.to_owned(),
            version: version.map(str::to_owned),
        };
        BasicInfo {
            plugins: vec![plugin("acl", Some("3.9.1")), plugin("mine", None)],
            filters: BTreeSet::from(["f".to_owned()]),
            labels: BTreeMap::from([("region".to_owned(), "eu".to_owned())]),
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        let payload = info().encode(&Map::new());
        assert_eq!(BasicInfo::decode(&Frame::Binary(payload)).unwrap(), info());
    }

    #[test]
    fn the_message_has_kongs_shape() {
        let conf = json!({"role": "data_plane"});
        let message: Value = serde_json::from_slice(&info().encode(conf.as_object().unwrap())).unwrap();
        let expected = json!({
            "type": "basic_info",
            "plugins": [{"name": "acl", "version": "3.9.1"}, {"name": "mine"}],
            "filters": {"f": {"name": "f"}},
            "labels": {"region": "eu"},
            "process_conf": {"role": "data_plane"},
        });
        assert_eq!(message, expected);
    }

    #[test]
    fn empty_lua_lists_are_objects() {
        let message = json!({"type": "basic_info", "plugins": {}, "filters": [], "labels": []});
        assert_eq!(BasicInfo::decode(&frame(&message)).unwrap(), BasicInfo::default());
    }

    #[test]
    fn each_mistake_is_named() {
        let error = |message: &Value| BasicInfo::decode(&frame(message)).unwrap_err().to_string();
        assert_eq!(error(&json!([])), "expected an object as basic info, got a list");
        assert_eq!(error(&json!({"type": "hello"})), "expected type \"basic_info\", got \"hello\"");
        assert_eq!(
            error(&json!({"type": "basic_info"})),
            "expected plugins of the basic info to be a list, got nothing"
        );
        assert_eq!(
            error(&json!({"type": "basic_info", "plugins": [{"name": "a"}, {"version": "1.0.0"}]})),
            "expected plugins[1].name of the basic info to be a text, got nothing"
        );
        assert_eq!(
            error(&json!({"type": "basic_info", "plugins": [], "labels": {"a": 1}})),
            "expected labels.a of the basic info to be a text, got a number"
        );
        let text = Frame::Text(info().encode(&Map::new()));
        assert_eq!(BasicInfo::decode(&text).unwrap_err(), BasicInfoError::PeerFrameKind { actual: "text" });
        let broken = Frame::Binary(Bytes::from_static(b"not json"));
        assert!(matches!(BasicInfo::decode(&broken).unwrap_err(), BasicInfoError::PeerNotJson { .. }));
    }
}
