//! Values that are stored in another form than they are given: hashed passwords, certificate digests, addresses.

use crate::engine::is_empty;
use crate::registry::EntitySchema;
use crate::validators::parse_address;
use crate::{EntityError, Fill, Record, keys};
use aws_lc_rs::{digest, pbkdf2};
use serde_json::{Map, Value};
use std::num::NonZeroU32;

/// Transforms a validated record. `sent` names the fields the client gave.
pub(crate) fn apply(
    entity: &EntitySchema,
    record: &mut Record,
    sent: &[String],
    fill: &mut dyn Fill,
) -> Result<(), EntityError> {
    let given = |name: &str| sent.iter().any(|field| field == name);
    match entity.name.as_str() {
        "basicauth_credentials" if given("password") => hash_password(entity, record, given("consumer"))?,
        "ca_certificates" => certificate_digest(record),
        "oauth2_credentials" if given("client_secret") || given("hash_secret") => hash_secret(record, fill),
        _ => {}
    }
    Ok(())
}

/// Hex SHA-1 of the password and the consumer's id.
fn hash_password(entity: &EntitySchema, record: &mut Record, consumer_given: bool) -> Result<(), EntityError> {
    if !consumer_given {
        let text = "all or none of these fields must be set: 'password', 'consumer.id'";
        let fields = Map::from_iter([("@entity".to_owned(), Value::from(vec![text]))]);
        return Err(EntityError::SchemaViolation { fields });
    }
    let consumer = entity.foreign_id(record, "consumer").map(str::to_owned);
    if let (Some(Value::String(password)), Some(consumer)) = (record.get_mut("password"), consumer) {
        let hash = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, format!("{password}{consumer}").as_bytes());
        *password = hex(hash.as_ref());
    }
    Ok(())
}

fn certificate_digest(record: &mut Record) {
    let digest = record.get("cert").and_then(Value::as_str).and_then(keys::certificate_digest);
    if let Some(digest) = digest {
        record.insert("cert_digest".to_owned(), Value::from(digest));
    }
}

/// Rounds and length of a hashed client secret. Source: Kong 3.9.1 `kong/plugins/oauth2/secret.lua`.
const ROUNDS: NonZeroU32 = NonZeroU32::new(10_000).expect("ten thousand is not zero");
const HASH_LENGTH: usize = 32;

/// `$pbkdf2-sha512$i=10000,l=32$<salt>$<hash>` in place of the secret when `hash_secret` is set.
fn hash_secret(record: &mut Record, fill: &mut dyn Fill) {
    if record.get("hash_secret") != Some(&Value::Bool(true)) {
        return;
    }
    let Some(Value::String(secret)) = record.get_mut("client_secret") else { return };
    if secret.starts_with("$pbkdf2-sha512$") {
        return;
    }
    let token = fill.token();
    let salt = &token.as_bytes()[..token.len().min(16)];
    let mut hash = [0u8; HASH_LENGTH];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, ROUNDS, salt, secret.as_bytes(), &mut hash);
    *secret = format!("$pbkdf2-sha512$i={ROUNDS},l={HASH_LENGTH}${}${}", base64(salt), base64(&hash));
}

/// Adds port 8000 where there is none and writes IPv6 addresses in full. A text that is no address is refused alone.
pub(crate) fn normalise_target(record: &mut Record) -> Result<(), EntityError> {
    let Some(Value::String(target)) = record.get_mut("target").filter(|target| !is_empty(target)) else {
        return Ok(());
    };
    let Some(normalised) = normalised_target(target) else {
        let text = "Invalid target; not a valid hostname or ip address";
        let fields = Map::from_iter([("target".to_owned(), Value::from(text))]);
        return Err(EntityError::SchemaViolation { fields });
    };
    *target = normalised;
    Ok(())
}

/// The address of a target as it is stored: what [`Registry::process_insert`](crate::Registry::process_insert) makes
/// of it. None when it is no address.
pub fn normalised_target(target: &str) -> Option<String> {
    let address = parse_address(target).ok()?;
    Some(format!("{}:{}", address.host, address.port.unwrap_or(8000)))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Base64 without padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            let six = (word >> (18 - 6 * index)) & 63;
            text.push(char::from(ALPHABET[six as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, normalised_target};

    #[test]
    fn targets_get_a_port_and_full_addresses() {
        assert_eq!(normalised_target("a.test").as_deref(), Some("a.test:8000"));
        assert_eq!(normalised_target("[::1]:80").as_deref(), Some("[0000:0000:0000:0000:0000:0000:0000:0001]:80"));
        assert_eq!(normalised_target("a b"), None);
    }

    #[test]
    fn base64_leaves_padding_out() {
        assert_eq!(base64(b"any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw");
    }
}
