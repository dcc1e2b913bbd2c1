//! JSON-RPC 2.0 as far as the cluster speaks it: calls with positional parameters, answers, errors; batches are read
//! only, and not in the dialect of Kong 3.9.

use crate::Frame;
use crate::v2::block::{self, BlockError};
use serde_json::{Map, Value};

/// Code: no request at all.
pub const INVALID_REQUEST: i64 = -32600;
/// Code: no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Code: the parameters make no sense.
pub const INVALID_PARAMS: i64 = -32602;
/// Code: the call failed; the message says why.
pub const SERVER_ERROR: i64 = -32000;

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The peer calls.
    Call {
        /// To be repeated in the answer; None when none is wanted.
        id: Option<Value>,
        /// Name of the method.
        method: String,
        /// Its parameters as they came.
        params: Value,
    },
    /// The peer answers.
    Answer {
        /// The call's id; None when the peer could not tell.
        id: Option<u64>,
        /// Result or error.
        outcome: Result<Value, RpcError>,
    },
}

/// An error as it travels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// Its number.
    pub code: i64,
    /// Its words.
    pub message: String,
}

impl RpcError {
    /// No request at all.
    pub fn invalid_request() -> Self {
        Self { code: INVALID_REQUEST, message: "Invalid Request".to_owned() }
    }

    /// No method of this name.
    pub fn method_not_found() -> Self {
        Self { code: METHOD_NOT_FOUND, message: "Method not found".to_owned() }
    }

    /// The parameters make no sense.
    pub fn invalid_params(why: &str) -> Self {
        Self { code: INVALID_PARAMS, message: format!("Invalid params: {why}") }
    }

    /// The call failed.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { code: SERVER_ERROR, message: why.into() }
    }
}

/// Messages of one batch at most.
pub const BATCH_LIMIT: usize = 64;

/// Why a frame is no message. It ends the link: the ends no longer understand each other.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Not a binary frame.
    #[error("expected a binary frame, got a {0} frame")]
    Kind(&'static str),
    /// Not a block.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// Not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// Not one JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
}

impl Message {
    /// Reads a binary frame that unpacks to at most `limit` bytes.
    pub fn decode(frame: &Frame, limit: usize) -> Result<Self, MessageError> {
        match unpacked(frame, limit)? {
            Value::Object(message) => Self::read(message),
            Value::Array(_) => Err(MessageError::Shape("batches are not spoken here")),
            _ => Err(MessageError::Shape("expected an object")),
        }
    }

    /// Reads one message or a batch of at most [`BATCH_LIMIT`] of them.
    pub fn decode_batch(frame: &Frame, limit: usize) -> Result<Vec<Self>, MessageError> {
        let items = match unpacked(frame, limit)? {
            Value::Array(items) if items.len() > BATCH_LIMIT => return Err(MessageError::Shape("too long a batch")),
            Value::Array(items) => items,
            single => vec![single],
        };
        let read = |item| match item {
            Value::Object(message) => Self::read(message),
            _ => Err(MessageError::Shape("expected an object")),
        };
        items.into_iter().map(read).collect()
    }

    fn read(mut message: Map<String, Value>) -> Result<Self, MessageError> {
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(MessageError::Shape("`jsonrpc` is not \"2.0\""));
        }
        let id = message.remove("id").filter(|id| !id.is_null());
        if id.as_ref().is_some_and(|id| !id.is_number() && !id.is_string()) {
            return Err(MessageError::Shape("`id` is neither a number nor a string"));
        }
        if let Some(method) = message.remove("method") {
            let Value::String(method) = method else { return Err(MessageError::Shape("`method` is not a string")) };
            let params = message.remove("params").unwrap_or_default();
            return Ok(Self::Call { id, method, params });
        }
        let id = id.as_ref().and_then(Value::as_u64);
        if let Some(error) = message.remove("error").filter(|error| !error.is_null()) {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or(SERVER_ERROR);
            let text = error.get("message").and_then(Value::as_str).unwrap_or("error without a message");
            let message = text.chars().take(500).collect();
            return Ok(Self::Answer { id, outcome: Err(RpcError { code, message }) });
        }
        match message.remove("result") {
            Some(result) => Ok(Self::Answer { id, outcome: Ok(result) }),
            None => Err(MessageError::Shape("neither method, result nor error")),
        }
    }
}

fn unpacked(frame: &Frame, limit: usize) -> Result<Value, MessageError> {
    let Frame::Binary(payload) = frame else { return Err(MessageError::Kind(frame.kind())) };
    let text = block::unpack(payload, limit)?;
    serde_json::from_slice(&text).map_err(|error| MessageError::Json(error.to_string()))
}

/// The frame of a call with one parameter.
pub fn call(id: u64, method: &str, params: &Value) -> Result<Frame, BlockError> {
    call_with(id, method, std::slice::from_ref(params))
}

/// The frame of a call with parameters by position.
pub fn call_with(id: u64, method: &str, params: &[Value]) -> Result<Frame, BlockError> {
    packed(&serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
}

/// The frame of a call that wants no answer. Kong 3.9 drops the link upon one.
pub fn notification(method: &str, params: &Value) -> Result<Frame, BlockError> {
    packed(&serde_json::json!({"jsonrpc": "2.0", "method": method, "params": [params]}).to_string())
}

/// The frame of an answer; `result` is JSON text, so that a large one is written once for many.
pub fn answer(id: &Value, result: &str) -> Result<Frame, BlockError> {
    packed(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
}

/// The frame of an answer that is an error.
pub fn failure(id: &Value, error: &RpcError) -> Result<Frame, BlockError> {
    let error = serde_json::json!({"code": error.code, "message": error.message});
    packed(&serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
}

fn packed(text: &str) -> Result<Frame, BlockError> {
    Ok(Frame::Binary(block::pack(text.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;
    use serde_json::json;

    fn decode(value: &Value) -> Result<Message, MessageError> {
        Message::decode(&packed(&value.to_string()).unwrap(), 1 << 20)
    }

    #[test]
    fn calls_and_answers_survive_the_wire() {
        let params = json!({"default": {"version": 3}});
        let sent = Message::decode(&call(7, "a.b", &params).unwrap(), 1000).unwrap();
        assert_eq!(sent, Message::Call { id: Some(json!(7)), method: "a.b".to_owned(), params: json!([params]) });
        let sent = Message::decode(&answer(&json!(7), "true").unwrap(), 1000).unwrap();
        assert_eq!(sent, Message::Answer { id: Some(7), outcome: Ok(json!(true)) });
        let error = RpcError::failed("boom");
        let sent = Message::decode(&failure(&json!(7), &error).unwrap(), 1000).unwrap();
        assert_eq!(sent, Message::Answer { id: Some(7), outcome: Err(error) });
    }

    #[test]
    fn a_text_id_is_kept_and_a_missing_one_asks_for_no_answer() {
        let id = |value| match decode(&value) {
            Ok(Message::Call { id, .. }) => id,
            other => panic!("{other:?}"),
        };
        assert_eq!(id(json!({"jsonrpc": "2.0", "method": "m", "id": "abc"})), Some(json!("abc")));
        assert_eq!(id(json!({"jsonrpc": "2.0", "method": "m"})), None);
        assert_eq!(id(json!({"jsonrpc": "2.0", "method": "m", "id": null})), None);
    }

    #[test]
    fn other_versions_batches_and_shapeless_messages_are_refused() {
        for value in [
            json!({"jsonrpc": "1.0", "method": "m", "id": 1}),
            json!({"method": "m", "id": 1}),
            json!([{"jsonrpc": "2.0", "method": "m", "id": 1}]),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": [], "method": "m"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": 5}),
            json!(true),
        ] {
            assert!(matches!(decode(&value), Err(MessageError::Shape(_))), "{value}");
        }
        let text = Frame::Text(Bytes::from_static(b"x"));
        assert_eq!(Message::decode(&text, 10), Err(MessageError::Kind("text")));
        let deep = "[".repeat(100_000);
        assert!(matches!(Message::decode(&packed(&deep).unwrap(), 1 << 20), Err(MessageError::Json(_))));
    }

    #[test]
    fn a_batch_is_a_list_of_messages() {
        let batch = |value: &Value| Message::decode_batch(&packed(&value.to_string()).unwrap(), 1 << 20);
        let call = json!({"jsonrpc": "2.0", "method": "m", "id": 1, "params": []});
        assert_eq!(batch(&call).unwrap().len(), 1);
        assert_eq!(batch(&json!([call, call])).unwrap().len(), 2);
        assert_eq!(batch(&json!([])), Ok(Vec::new()));
        assert!(matches!(batch(&json!([call, 5])), Err(MessageError::Shape(_))));
        assert!(matches!(batch(&Value::from(vec![call; BATCH_LIMIT + 1])), Err(MessageError::Shape(_))));
    }

    proptest! {
        #[test]
        fn random_blocks_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Message::decode(&Frame::Binary(Bytes::from(bytes.clone())), 1 << 16);
            let _ = Message::decode(&Frame::Binary(block::pack(&bytes).unwrap()), 1 << 16);
            let _ = Message::decode_batch(&Frame::Binary(block::pack(&bytes).unwrap()), 1 << 16);
        }
    }
}
