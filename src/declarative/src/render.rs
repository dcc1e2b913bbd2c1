//! A plan as text and as JSON, secrets masked.

use crate::Plan;
use gwctl_entities::Value;

impl Plan {
    /// One block per operation (`+ create`, `~ change`, `- delete`), then counts and what was left.
    pub fn to_text(&self) -> String {
        String::new()
    }

    /// Object with `version`, `operations`, `summary`, `left` and `warnings`; secrets masked.
    pub fn to_json(&self) -> Value {
        Value::Null
    }
}
