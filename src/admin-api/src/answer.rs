//! What a handler gives back: status, body and the headers beyond those of every answer.

use gwctl_entities::{EntityError, Value};
use serde_json::json;

/// Body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// No body and no content type.
    Empty,
    Json(Value),
    Text {
        content_type: &'static str,
        text: String,
    },
}

/// An answer before it is put on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content: Content,
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: Value) -> Self {
        Self { status, content: Content::Json(body), headers: Vec::new() }
    }

    pub(crate) fn ok(body: Value) -> Self {
        Self::json(200, body)
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self { status, content: Content::Empty, headers: Vec::new() }
    }

    /// A bare `{"message": ...}`.
    pub(crate) fn message(status: u16, message: &str) -> Self {
        Self::json(status, json!({ "message": message }))
    }

    pub(crate) fn not_found() -> Self {
        Self::message(404, NOT_FOUND)
    }

    pub(crate) fn unexpected() -> Self {
        Self::message(500, UNEXPECTED)
    }

    /// The page a web server shows for a refusal that never reached a handler; clients look at the status only.
    pub(crate) fn page(status: u16, reason: &str) -> Self {
        let text = format!(
            "<html>\r\n<head><title>{status} {reason}</title></head>\r\n<body>\r\n<center><h1>{status} {reason}</h1></center>\r\n</body>\r\n</html>\r\n"
        );
        Self { status, content: Content::Text { content_type: "text/html; charset=UTF-8", text }, headers: Vec::new() }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

const NOT_FOUND: &str = "Not found";
const UNEXPECTED: &str = "An unexpected error occurred";

/// A bare 404 as an error, for `?`.
pub(crate) fn not_found() -> EntityError {
    bare(404, NOT_FOUND)
}

/// A bare 500 as an error.
pub(crate) fn unexpected() -> EntityError {
    bare(500, UNEXPECTED)
}

pub(crate) fn bare(status: u16, message: impl Into<String>) -> EntityError {
    EntityError::Bare { status, message: message.into() }
}

impl From<EntityError> for Answer {
    fn from(error: EntityError) -> Self {
        if let EntityError::Database(reason) = &error {
            tracing::error!(error = reason, "the store failed");
            return Self::unexpected();
        }
        Self::json(error.status(), error.body())
    }
}

impl From<Result<Answer, EntityError>> for Answer {
    fn from(outcome: Result<Answer, EntityError>) -> Self {
        outcome.unwrap_or_else(Answer::from)
    }
}

/// Numbers as clients expect them: integral ones without fraction (`80`, never `80.0`).
pub(crate) fn tidy_numbers(value: &mut Value) {
    /// Up to here every integral float is exactly an integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT) {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tidy_numbers),
        Value::Object(members) => members.values_mut().for_each(tidy_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integral_numbers_lose_their_fraction() {
        let mut value = json!({"port": 80.0, "list": [1.5, -2.0], "created_at": 1795984411.884});
        tidy_numbers(&mut value);
        assert_eq!(value.to_string(), r#"{"created_at":1795984411.884,"list":[1.5,-2],"port":80}"#);
    }

    #[test]
    fn the_store_never_speaks_to_clients() {
        let answer = Answer::from(EntityError::Database("disk /var/lib/x full".to_owned()));
        assert_eq!(answer, Answer::unexpected());
    }
}
