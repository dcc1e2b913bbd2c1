//! Which values must not be shown.

use gwctl_entities::Value;
use gwctl_entities::schema::Field;

/// Fields that hold secrets whatever their schema says.
const SECRET_NAMES: [&str; 14] = [
    "key",
    "key_alt",
    "password",
    "secret",
    "client_secret",
    "private_key",
    "access_token",
    "refresh_token",
    "provision_key",
    "code",
    "session_id",
    "jwk",
    "pem",
    "aws_secret",
];

/// Stands for a secret value.
pub const MASK: &str = "••••";

/// Whether values of this field are secret: marked so in its schema, or named like one.
pub fn is_secret(field: Option<&Field>, path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or(path);
    let elements = field.and_then(|field| field.elements.as_deref().or(field.values.as_deref()));
    let marked = |field: &Field| field.encrypted || field.referenceable;
    field.is_some_and(marked) || elements.is_some_and(marked) || SECRET_NAMES.contains(&name)
}

/// The value as it may be shown. References to a vault are no secrets.
pub fn shown(value: &Value, secret: bool) -> Value {
    let reference = |text: &str| text.starts_with("{vault://") && text.ends_with('}');
    match value {
        Value::String(text) if secret && !reference(text) => Value::from(MASK),
        Value::Number(_) | Value::Array(_) | Value::Object(_) if secret => Value::from(MASK),
        _ => value.clone(),
    }
}

/// Whether a line of a file has a member that is named like a secret.
pub(crate) fn names_a_secret(line: &str) -> bool {
    SECRET_NAMES.iter().any(|name| {
        line.match_indices(name).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            let after = line[at + name.len()..].trim_start_matches(['"', '\'']).trim_start();
            // `redis_password` is one too: only letters and digits make it another word.
            !before.is_some_and(char::is_alphanumeric) && after.starts_with(':')
        })
    })
}
