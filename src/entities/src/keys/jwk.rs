//! JSON Web Keys of the `keys` entity.

use crate::engine::is_vault_reference;
use serde_json::{Map, Value};

/// Members a key may have.
const MEMBERS: [&str; 22] = [
    "alg", "crv", "d", "dp", "dq", "e", "issuer", "k", "key_ops", "kid", "kty", "n", "oth", "p", "q", "qi", "r", "t",
    "use", "x", "x5c", "y",
];
const MORE_MEMBERS: [&str; 3] = ["x5t", "x5t#S256", "x5u"];

/// The text must be JSON, name the same key id, hold an asymmetric key and nothing unknown.
pub(crate) fn content(jwk: Option<&str>, kid: Option<&str>) -> Result<(), String> {
    let Some(text) = jwk.filter(|text| !is_vault_reference(&Value::from(*text))) else { return Ok(()) };
    let Ok(Value::Object(key)) = serde_json::from_str(text) else {
        return Err("could not json decode jwk string".to_owned());
    };
    if key.get("kid").and_then(Value::as_str) != kid {
        return Err("kid in jwk.kid must be equal to keys.kid".to_owned());
    }
    if !is_asymmetric(&key) {
        return Err("could not load JWK, likely not a valid key".to_owned());
    }
    let unknown: Vec<String> = key
        .keys()
        .filter(|name| !MEMBERS.contains(&name.as_str()) && !MORE_MEMBERS.contains(&name.as_str()))
        .map(|name| format!("{name}: unknown field"))
        .collect();
    if unknown.is_empty() { Ok(()) } else { Err(unknown.join(", ")) }
}

fn is_asymmetric(key: &Map<String, Value>) -> bool {
    let text = |name: &str| key.get(name).and_then(Value::as_str).filter(|text| is_base64url(text)).is_some();
    match key.get("kty").and_then(Value::as_str) {
        Some("RSA") => text("n") && text("e"),
        Some("EC") => text("crv") && text("x") && text("y"),
        Some("OKP") => text("crv") && text("x"),
        _ => false,
    }
}

fn is_base64url(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'='))
}
