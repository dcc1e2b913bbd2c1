//! The `reconfigure` message: the whole configuration, as gzip of JSON in one binary frame.

use crate::v1::dp_link::Outcome;
use crate::{ConfigHash, Hashes};
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::{GzDecoder, ZlibDecoder};
use flate2::write::GzEncoder;
use gwctl_entities::Record;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{BufWriter, Read, Write};

/// Largest frame a node sends or accepts unless `cluster_max_payload` says otherwise, in bytes as sent.
pub const DEFAULT_MAX_PAYLOAD: usize = 16 * 1024 * 1024;

/// How many times larger than the largest frame the inflated message may be, unless set otherwise.
///
/// Configurations shrink to a tenth to a thirtieth; a bomb of zeros would be a thousand times larger.
pub const DEFAULT_EXPANSION: usize = 32;

/// Longest hash that fits the ping in which a data plane returns it.
const LONGEST_HASH: usize = 125;

/// Size of the pieces in which JSON is handed to the compressor.
const CHUNK: usize = 64 * 1024;

/// What a payload may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one frame as sent (`cluster_max_payload`).
    pub max_payload: usize,
    /// Bytes of the inflated message.
    pub max_inflated: usize,
}

impl Limits {
    /// The limits that follow from `cluster_max_payload` and a factor ([`DEFAULT_EXPANSION`]).
    pub fn new(max_payload: usize, expansion: usize) -> Self {
        Self { max_payload, max_inflated: max_payload.saturating_mul(expansion) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_PAYLOAD, DEFAULT_EXPANSION)
    }
}

/// Why a payload could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The table's own serialisation failed.
    #[error("failed to write the configuration as JSON: {0}")]
    BugSerialize(#[from] serde_json::Error),
    /// The compressor failed; it writes to memory only.
    #[error("failed to compress the configuration: {0}")]
    BugCompress(#[from] std::io::Error),
    /// No data plane would take it.
    #[error(
        "the configuration takes {actual} bytes compressed, more than cluster_max_payload = {limit}: \
         raise it on control planes and data planes"
    )]
    ConfigTooLarge {
        /// Bytes of the compressed message.
        actual: usize,
        /// The limit.
        limit: usize,
    },
}

/// Why a payload is not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconfigureError {
    /// The frame is larger than allowed.
    #[error("payload of {actual} bytes, at most {limit} are allowed (cluster_max_payload)")]
    PeerTooLarge {
        /// Bytes that came.
        actual: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Neither gzip nor zlib data, or a damaged stream.
    #[error("payload of {length} bytes cannot be inflated: {reason}")]
    PeerNotCompressed {
        /// Bytes that came.
        length: usize,
        /// What the decompressor said.
        reason: String,
    },
    /// It inflates to more than allowed.
    #[error("payload of {length} bytes inflates to more than the {limit} bytes allowed")]
    PeerInflates {
        /// Bytes that came.
        length: usize,
        /// Bytes allowed after inflating.
        limit: usize,
    },
    /// The inflated text is no JSON object, or too deep.
    #[error("message of {length} bytes is not readable as JSON: {reason}")]
    PeerNotJson {
        /// Bytes of the inflated message.
        length: usize,
        /// What the JSON reader said.
        reason: String,
    },
    /// `config_table` is missing or no object.
    #[error("expected config_table to be an object, got {actual}")]
    PeerNoTable {
        /// The JSON type that came.
        actual: &'static str,
    },
    /// `config_hash` is no text that a ping can carry.
    #[error("expected config_hash to be a text of 1 to {LONGEST_HASH} bytes, got {actual}")]
    PeerBadHash {
        /// What came.
        actual: String,
    },
    /// `hashes` has members that are no texts.
    #[error("expected hashes to be an object of texts: {reason}")]
    PeerBadHashes {
        /// What the reader said.
        reason: String,
    },
}

impl ReconfigureError {
    /// Whether nothing can be known of the message, so that the link must end.
    pub fn is_undecodable(&self) -> bool {
        match self {
            Self::PeerTooLarge { .. }
            | Self::PeerNotCompressed { .. }
            | Self::PeerInflates { .. }
            | Self::PeerNotJson { .. } => true,
            Self::PeerNoTable { .. } | Self::PeerBadHash { .. } | Self::PeerBadHashes { .. } => false,
        }
    }
}

impl From<ReconfigureError> for Outcome {
    fn from(error: ReconfigureError) -> Self {
        if error.is_undecodable() { Self::Undecodable(error.to_string()) } else { Self::Refused(error.to_string()) }
    }
}

#[derive(Serialize)]
struct Message<'a, T> {
    r#type: &'static str,
    timestamp: f64,
    config_hash: &'a ConfigHash,
    hashes: &'a Hashes,
    config_table: &'a T,
}

/// Writes the message for a table, compressed on the way: the JSON text as a whole never exists.
///
/// `timestamp` is the wall clock in seconds; data planes only log it.
pub fn encode<T: Serialize>(table: &T, hashes: &Hashes, timestamp: f64, limits: &Limits) -> Result<Bytes, EncodeError> {
    let message =
        Message { r#type: "reconfigure", timestamp, config_hash: &hashes.config, hashes, config_table: table };
    let mut writer = BufWriter::with_capacity(CHUNK, GzEncoder::new(Vec::new(), Compression::default()));
    serde_json::to_writer(&mut writer, &message)?;
    writer.flush()?;
    let encoder = writer.into_inner().map_err(|error| error.into_error())?;
    let payload = encoder.finish()?;
    if payload.len() > limits.max_payload {
        return Err(EncodeError::ConfigTooLarge { actual: payload.len(), limit: limits.max_payload });
    }
    Ok(payload.into())
}

/// A payload, looked at against the hash in force.
#[derive(Debug, Clone, PartialEq)]
pub enum Examined {
    /// A message of another type: to be skipped in silence.
    OtherType,
    /// It carries the hash in force: nothing to do.
    Unchanged,
    /// A configuration to apply.
    Change(Reconfigure),
}

/// A `reconfigure` message.
#[derive(Debug, Clone, PartialEq)]
pub struct Reconfigure {
    /// The name of the configuration. Taken as the control plane gave it; computed when it gave none.
    pub config_hash: ConfigHash,
    /// The hashes of the parts; None: the control plane gave none, so every part counts as changed.
    pub hashes: Option<Hashes>,
    /// When the control plane made it, Unix seconds.
    pub timestamp: Option<f64>,
    /// The table: `_format_version`, `_transform` and a list of rows for each entity.
    pub config_table: Record,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    r#type: Value,
    #[serde(default)]
    config_hash: Value,
    #[serde(default, rename = "config_table")]
    _config_table: IgnoredAny,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    hashes: Value,
    #[serde(default)]
    timestamp: Value,
    #[serde(default)]
    config_table: Value,
}

/// Inflates and reads a payload. Costs the memory of the inflated text and, when it is a change, of the table.
pub fn examine(payload: &[u8], in_force: &ConfigHash, limits: &Limits) -> Result<Examined, ReconfigureError> {
    if payload.len() > limits.max_payload {
        return Err(ReconfigureError::PeerTooLarge { actual: payload.len(), limit: limits.max_payload });
    }
    let text = inflate(payload, limits.max_inflated)?;
    if text.trim_ascii_start().first() != Some(&b'{') {
        let reason = "expected an object".to_owned();
        return Err(ReconfigureError::PeerNotJson { length: text.len(), reason });
    }
    // Two passes: the first builds nothing of the table, and after a reconnection it is usually the only one.
    let head: Head = read(&text)?;
    if head.r#type != "reconfigure" {
        return Ok(Examined::OtherType);
    }
    let config_hash = match head.config_hash {
        Value::Null => None,
        Value::String(text) if (1..=LONGEST_HASH).contains(&text.len()) => Some(ConfigHash::from(text.as_str())),
        other => return Err(ReconfigureError::PeerBadHash { actual: shortened(&other) }),
    };
    if config_hash.as_ref() == Some(in_force) {
        return Ok(Examined::Unchanged);
    }
    let body: Body = read(&text)?;
    drop(text);
    change(config_hash, body, in_force)
}

fn change(config_hash: Option<ConfigHash>, body: Body, in_force: &ConfigHash) -> Result<Examined, ReconfigureError> {
    let config_table = match body.config_table {
        Value::Object(table) => table,
        other => return Err(ReconfigureError::PeerNoTable { actual: type_name(&other) }),
    };
    let (config_hash, hashes) = match config_hash {
        Some(config_hash) => (config_hash, part_hashes(body.hashes)?),
        None => {
            let hashes = Hashes::of(&config_table);
            if hashes.config == *in_force {
                return Ok(Examined::Unchanged);
            }
            (hashes.config.clone(), Some(hashes))
        }
    };
    let timestamp = body.timestamp.as_f64();
    Ok(Examined::Change(Reconfigure { config_hash, hashes, timestamp, config_table }))
}

fn part_hashes(value: Value) -> Result<Option<Hashes>, ReconfigureError> {
    if value.is_null() {
        return Ok(None);
    }
    serde_json::from_value(value)
        .map(Some)
        .map_err(|error| ReconfigureError::PeerBadHashes { reason: error.to_string() })
}

fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, ReconfigureError> {
    serde_json::from_slice(text)
        .map_err(|error| ReconfigureError::PeerNotJson { length: text.len(), reason: error.to_string() })
}

/// Inflates gzip or zlib data, whichever it is, to at most `limit` bytes.
fn inflate(payload: &[u8], limit: usize) -> Result<Vec<u8>, ReconfigureError> {
    let gzip = payload.starts_with(&[0x1f, 0x8b]);
    let announced = announced_length(payload).filter(|_| gzip && u32::try_from(limit).is_ok());
    // One byte more shows that there is more. To grow while reading would hold old and new text at a time, so a gzip
    // text gets the room it announces and is cut off there; for others the usual ratio is a guess.
    let most = announced.map_or(limit, |announced| announced.min(limit)).saturating_add(1);
    let room = announced.map_or_else(|| payload.len().saturating_mul(8).min(limit), |_| most);
    let mut text = Vec::with_capacity(room);
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let outcome = if gzip {
        GzDecoder::new(payload).take(most).read_to_end(&mut text)
    } else {
        ZlibDecoder::new(payload).take(most).read_to_end(&mut text)
    };
    if text.len() > limit {
        return Err(ReconfigureError::PeerInflates { length: payload.len(), limit });
    }
    if announced.is_some_and(|announced| text.len() > announced) {
        return Err(not_compressed(payload, "it is longer than it announces"));
    }
    match outcome {
        Ok(0) => Err(not_compressed(payload, "no data")),
        Ok(_) => Ok(text),
        Err(error) => Err(not_compressed(payload, &error.to_string())),
    }
}

/// Length of the inflated text by the end of a gzip payload, modulo 4 GiB (RFC 1952, ISIZE).
fn announced_length(payload: &[u8]) -> Option<usize> {
    let (_, end) = payload.split_last_chunk::<4>()?;
    usize::try_from(u32::from_le_bytes(*end)).ok()
}

fn not_compressed(payload: &[u8], reason: &str) -> ReconfigureError {
    ReconfigureError::PeerNotCompressed { length: payload.len(), reason: reason.to_owned() }
}

/// A value for a message: all of a scalar's text that fits a line.
fn shortened(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => type_name(value).to_owned(),
        scalar => scalar.to_string().chars().take(160).collect(),
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
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

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn examined(message: &Value) -> Result<Examined, ReconfigureError> {
        examine(&gzip(message.to_string().as_bytes()), &ConfigHash::zero(), &Limits::default())
    }

    fn changed(message: &Value) -> Reconfigure {
        match examined(message).unwrap() {
            Examined::Change(change) => change,
            other => panic!("{other:?}"),
        }
    }

    fn table() -> Value {
        json!({"_format_version": "3.0", "_transform": false, "services": [{"id": "a"}]})
    }

    #[test]
    fn what_is_encoded_reads_the_same() {
        let table = table();
        let hashes = Hashes::of(table.as_object().unwrap());
        let payload = encode(&table, &hashes, 17.5, &Limits::default()).unwrap();
        let expected = Reconfigure {
            config_hash: hashes.config.clone(),
            hashes: Some(hashes.clone()),
            timestamp: Some(17.5),
            config_table: table.as_object().unwrap().clone(),
        };
        let at = |hash: &ConfigHash| examine(&payload, hash, &Limits::default()).unwrap();
        assert_eq!(at(&ConfigHash::zero()), Examined::Change(expected));
        assert_eq!(at(&hashes.config), Examined::Unchanged);
    }

    #[test]
    fn zlib_data_is_understood_too() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(json!({"type": "reconfigure", "config_table": table()}).to_string().as_bytes()).unwrap();
        let payload = encoder.finish().unwrap();
        let change = examine(&payload, &ConfigHash::zero(), &Limits::default()).unwrap();
        assert!(matches!(change, Examined::Change(_)));
    }

    #[test]
    fn a_missing_config_hash_is_computed_with_all_parts() {
        let change = changed(&json!({"type": "reconfigure", "hashes": {"routes": "r"}, "config_table": table()}));
        let hashes = Hashes::of(table().as_object().unwrap());
        assert_eq!(change.config_hash, hashes.config);
        assert_eq!(change.hashes, Some(hashes));
    }

    #[test]
    fn missing_part_hashes_mean_rebuild_everything_and_missing_members_are_zero() {
        let mut message = json!({"type": "reconfigure", "config_hash": "A".repeat(40), "config_table": {}});
        assert_eq!(changed(&message).hashes, None);
        assert_eq!(changed(&message).config_hash.as_str(), "A".repeat(40));
        message["hashes"] = json!({"routes": "r", "more": "m"});
        let hashes = changed(&message).hashes.unwrap();
        assert_eq!(hashes, Hashes { routes: "r".into(), ..Hashes::default() });
    }

    #[test]
    fn other_types_are_skipped() {
        for message in [json!({"type": "hello"}), json!({}), json!({"type": 7, "config_hash": 7})] {
            assert_eq!(examined(&message), Ok(Examined::OtherType));
        }
    }

    #[test]
    fn a_message_without_table_or_with_a_bad_hash_is_refused_but_does_not_end_the_link() {
        for message in [
            json!({"type": "reconfigure"}),
            json!({"type": "reconfigure", "config_table": []}),
            json!({"type": "reconfigure", "config_table": {}, "config_hash": 7}),
            json!({"type": "reconfigure", "config_table": {}, "config_hash": "x".repeat(126)}),
            json!({"type": "reconfigure", "config_table": {}, "config_hash": "x", "hashes": {"routes": 7}}),
        ] {
            let error = examined(&message).unwrap_err();
            assert!(!error.is_undecodable(), "{error}");
            assert!(matches!(Outcome::from(error), Outcome::Refused(_)));
        }
    }

    #[test]
    fn what_is_no_compressed_json_is_undecodable() {
        let payloads: [&[u8]; 5] = [b"", b"plain", &gzip(b"no json"), &gzip(b"[1]"), &gzip(b"{}")[..12]];
        for payload in payloads {
            let error = examine(payload, &ConfigHash::zero(), &Limits::default()).unwrap_err();
            assert!(error.is_undecodable(), "{error}");
        }
    }

    #[test]
    fn a_bomb_a_large_frame_and_a_deep_message_stop_at_the_limit() {
        let limits = Limits::new(1000, 2);
        let error = |payload: &[u8]| examine(payload, &ConfigHash::zero(), &limits).unwrap_err();
        let bomb = gzip(&[b' '; 100_000]);
        assert_eq!(error(&bomb), ReconfigureError::PeerInflates { length: bomb.len(), limit: 2000 });
        assert_eq!(error(&[0; 1001]), ReconfigureError::PeerTooLarge { actual: 1001, limit: 1000 });
        let deep = format!("{{\"type\":\"reconfigure\",\"config_table\":{}{}}}", "[".repeat(500), "]".repeat(500));
        assert!(error(&gzip(deep.as_bytes())).to_string().contains("recursion limit"));
    }

    #[test]
    fn a_text_longer_than_it_announces_is_cut_off_there() {
        let mut bomb = gzip(&[b' '; 100_000]);
        let end = bomb.len() - 4;
        bomb[end..].copy_from_slice(&10_u32.to_le_bytes());
        let error = examine(&bomb, &ConfigHash::zero(), &Limits::default()).unwrap_err();
        assert!(error.is_undecodable(), "{error}");
        assert!(error.to_string().contains("longer than it announces"), "{error}");
    }

    #[test]
    fn a_configuration_no_data_plane_would_take_is_not_encoded() {
        let limits = Limits::new(16, 2);
        let error = encode(&table(), &Hashes::default(), 0.0, &limits).unwrap_err();
        assert!(matches!(error, EncodeError::ConfigTooLarge { limit: 16, .. }), "{error}");
    }
}
