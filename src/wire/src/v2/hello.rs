//! The first exchange of a link, in plain JSON: who the data plane is and what both can do.

use crate::Frame;
use crate::v2::sync::list;
use crate::v2::{Dialect, report};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Method of the first call.
pub const METHOD: &str = "kong.meta.v1.hello";

/// The only encoding there is; see [`crate::v2::block`].
pub const ENCODING: &str = "x-snappy-framed";

/// Id of the first call and its answer. Kong answers with it whatever the call's id was.
const ID: u64 = 1;

/// Key of our own addition to a control plane's answer.
const CLUSTER_ID: &str = "gwctl_cluster_id";

/// What a data plane says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hello {
    /// Groups of methods it answers.
    pub capabilities: Vec<String>,
    /// Version of Kong it stands for.
    pub version: String,
    /// Its id, a UUID in all but hostile cases.
    pub node_id: String,
    /// Its host name.
    pub hostname: String,
    /// Its settings, secrets masked.
    pub conf: Map<String, Value>,
}

/// What a control plane answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Welcome {
    /// Groups of methods it answers.
    pub capabilities: Vec<String>,
    /// Which cluster it is the control plane of. Our own addition, said to nodes of gwctl only: the version of one cluster
    /// means nothing in another.
    pub cluster_id: Option<String>,
}

/// Why a first frame is refused. Nothing is answered; the link ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Not a binary frame.
    #[error("expected a binary frame with the hello, got a {0} frame")]
    Kind(&'static str),
    /// Not JSON.
    #[error("the hello is not JSON: {0}")]
    Json(String),
    /// Not the first call.
    #[error("expected a call of {METHOD}, got `{0}`")]
    Method(String),
    /// A field is missing or of the wrong type.
    #[error("the hello has no usable `{0}`")]
    Field(&'static str),
    /// The peer does not speak the encoding.
    #[error("the peer does not speak {ENCODING} but {0}")]
    Encoding(String),
    /// The control plane answered with an error.
    #[error("the control plane refused the hello: {0}")]
    Refused(String),
}

impl Hello {
    /// The frame a data plane begins with.
    pub fn encode(&self) -> Frame {
        let said = json!({
            "rpc_capabilities": self.capabilities,
            "rpc_frame_encodings": [ENCODING],
            "kong_version": self.version,
            "kong_node_id": self.node_id,
            "kong_hostname": self.hostname,
            "kong_conf": self.conf,
        });
        plain(&json!({"jsonrpc": "2.0", "id": ID, "method": METHOD, "params": [said]}))
    }

    /// Reads a data plane's first frame. Its id does not matter.
    pub fn decode(frame: &Frame) -> Result<Self, HelloError> {
        let mut call = object(frame)?;
        if call.get("method").and_then(Value::as_str) != Some(METHOD) {
            return Err(HelloError::Method(shown(call.get("method"))));
        }
        let said = call.get_mut("params").and_then(|params| params.get_mut(0)).map(Value::take);
        let Some(Value::Object(mut said)) = said else { return Err(HelloError::Field("params")) };
        let encodings = texts(&said, "rpc_frame_encodings")?;
        if !encodings.iter().any(|name| name == ENCODING) {
            return Err(HelloError::Encoding(encodings.join(", ")));
        }
        let Some(Value::Object(conf)) = said.remove("kong_conf").map(empty_object) else {
            return Err(HelloError::Field("kong_conf"));
        };
        Ok(Self {
            capabilities: texts(&said, "rpc_capabilities")?,
            version: text(&said, "kong_version")?,
            node_id: text(&said, "kong_node_id")?,
            hostname: text(&said, "kong_hostname")?,
            conf,
        })
    }

    /// Its labels, from its settings (`cluster_dp_labels`: a list of `key:value`).
    pub fn labels(&self) -> BTreeMap<String, String> {
        let labels = self.conf.get("cluster_dp_labels").and_then(list).unwrap_or_default();
        let pairs = labels.iter().filter_map(|label| label.as_str()?.split_once(':'));
        pairs.map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned())).collect()
    }

    /// How the node writes versions.
    pub fn dialect(&self) -> Dialect {
        Dialect::of(&self.version)
    }

    /// Whether the node turns to protocol v1 where it is not kept up to date by this one: Kong 3.10 and gwctl do, Kong 3.9
    /// does not.
    pub fn falls_back(&self) -> bool {
        self.dialect() == Dialect::Texts || self.offers(report::CAPABILITY)
    }

    /// Whether the node answers methods of this group.
    pub fn offers(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|name| name == capability)
    }
}

impl Welcome {
    /// The frame a control plane answers with.
    pub fn encode(&self) -> Frame {
        let mut result = json!({"rpc_capabilities": self.capabilities, "rpc_frame_encoding": ENCODING});
        if let Some(id) = &self.cluster_id {
            result[CLUSTER_ID] = id.as_str().into();
        }
        plain(&json!({"jsonrpc": "2.0", "id": ID, "result": result}))
    }

    /// Reads a control plane's first frame.
    pub fn decode(frame: &Frame) -> Result<Self, HelloError> {
        let answer = object(frame)?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            return Err(HelloError::Refused(shown(error.get("message"))));
        }
        let Some(Value::Object(result)) = answer.get("result") else { return Err(HelloError::Field("result")) };
        let encoding = text(result, "rpc_frame_encoding")?;
        if encoding != ENCODING {
            return Err(HelloError::Encoding(encoding));
        }
        let cluster_id = text(result, CLUSTER_ID).ok();
        Ok(Self { capabilities: texts(result, "rpc_capabilities")?, cluster_id })
    }

    /// Whether the control plane answers methods of this group.
    pub fn offers(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|name| name == capability)
    }
}

fn plain(message: &Value) -> Frame {
    Frame::Binary(Bytes::from(message.to_string()))
}

fn object(frame: &Frame) -> Result<Map<String, Value>, HelloError> {
    let Frame::Binary(payload) = frame else { return Err(HelloError::Kind(frame.kind())) };
    serde_json::from_slice(payload).map_err(|error| HelloError::Json(error.to_string()))
}

fn text(map: &Map<String, Value>, name: &'static str) -> Result<String, HelloError> {
    map.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(HelloError::Field(name))
}

fn texts(map: &Map<String, Value>, name: &'static str) -> Result<Vec<String>, HelloError> {
    let items = map.get(name).and_then(list).ok_or(HelloError::Field(name))?;
    items.iter().map(|item| item.as_str().map(str::to_owned).ok_or(HelloError::Field(name))).collect()
}

/// Lua writes an empty object as a list when it was told to, and the other way round.
fn empty_object(value: Value) -> Value {
    if value.as_array().is_some_and(Vec::is_empty) { Value::Object(Map::new()) } else { value }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default();
    text.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            capabilities: vec!["kong.sync.v2".to_owned()],
            version: "3.9.1".to_owned(),
            node_id: "d".to_owned(),
            hostname: "h".to_owned(),
            conf: Map::new(),
        }
    }

    fn without(field: &str) -> Result<Hello, HelloError> {
        let Frame::Binary(payload) = hello().encode() else { unreachable!("a hello is binary") };
        let mut call: Value = serde_json::from_slice(&payload).unwrap();
        call["params"][0].as_object_mut().unwrap().remove(field);
        Hello::decode(&plain(&call))
    }

    #[test]
    fn a_hello_and_its_answer_survive_the_wire() {
        assert_eq!(Hello::decode(&hello().encode()), Ok(hello()));
        for capabilities in [vec![], vec!["kong.sync.v2".to_owned()]] {
            for cluster_id in [None, Some("c".to_owned())] {
                let welcome = Welcome { capabilities: capabilities.clone(), cluster_id };
                assert_eq!(Welcome::decode(&welcome.encode()), Ok(welcome));
            }
        }
    }

    #[test]
    fn kong_3_9_alone_does_not_fall_back() {
        let of = |version: &str, capability: &str| {
            Hello { version: version.to_owned(), capabilities: vec![capability.to_owned()], ..hello() }.falls_back()
        };
        let falls = [of("3.9.1", "kong.sync.v2"), of("3.10.0", "kong.sync.v2"), of("3.9.1", report::CAPABILITY)];
        assert_eq!(falls, [false, true, true]);
    }

    #[test]
    fn labels_are_read_from_the_settings() {
        let labels = |conf: Value| Hello { conf: conf.as_object().cloned().unwrap(), ..hello() }.labels();
        let two = labels(json!({"cluster_dp_labels": ["region:eu", "url:http://x", "none"]}));
        let expected = [("region", "eu"), ("url", "http://x")];
        assert_eq!(two, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        assert!(labels(json!({"cluster_dp_labels": {}})).is_empty() && labels(json!({})).is_empty());
    }

    #[test]
    fn every_field_of_a_hello_is_needed() {
        for field in
            ["rpc_capabilities", "rpc_frame_encodings", "kong_version", "kong_node_id", "kong_hostname", "kong_conf"]
        {
            assert!(matches!(without(field), Err(HelloError::Field(name)) if name == field), "{field}");
        }
    }

    #[test]
    fn another_frame_method_or_encoding_is_refused() {
        let decode = |text: &str| Hello::decode(&Frame::Binary(Bytes::from(text.to_owned()))).unwrap_err();
        assert_eq!(Hello::decode(&Frame::Ping(Bytes::new())), Err(HelloError::Kind("ping")));
        assert!(matches!(decode("xx"), HelloError::Json(_)));
        assert!(matches!(decode("[]"), HelloError::Json(_)));
        assert_eq!(decode(r#"{"method":"kong.meta.v1.hi"}"#), HelloError::Method("kong.meta.v1.hi".to_owned()));
        let gzip = r#"{"method":"kong.meta.v1.hello","params":[{"rpc_frame_encodings":["x-gzip"]}]}"#;
        assert_eq!(decode(gzip), HelloError::Encoding("x-gzip".to_owned()));
    }

    #[test]
    fn an_empty_list_may_come_as_an_object() {
        let text = r#"{"result":{"rpc_capabilities":{},"rpc_frame_encoding":"x-snappy-framed"}}"#;
        let welcome = Welcome::decode(&Frame::Binary(Bytes::from_static(text.as_bytes()))).unwrap();
        assert!(!welcome.offers("kong.sync.v2"));
    }
}
