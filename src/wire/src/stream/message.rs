//! The frames: one byte for the kind, then JSON; the highest bit of the kind says that the JSON is compressed (zstd).

use crate::Frame;
use crate::v1::PluginVersion;
use bytes::Bytes;
use gwctl_entities::Record;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::Read as _;

/// Bit of the kind that marks compressed JSON.
const COMPRESSED: u8 = 0x80;
/// JSON shorter than this is not worth compressing.
const WORTH_COMPRESSING: usize = 512;
/// Level of the compression: above, time grows much faster than the frame shrinks.
const LEVEL: i32 = 3;
/// Largest window a decoder allows, as a power of two, so that a frame cannot ask for memory it does not fill.
const WINDOW_LOG: u32 = 23;

/// Bytes of JSON of a message of the control plane, at most. Read into memory it may take some times as much.
pub const CP_LIMIT: usize = 16 * 1024 * 1024;

/// Bytes of JSON of a message of a data plane, at most.
pub const DP_LIMIT: usize = 1024 * 1024;

/// Which configuration a data plane holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Id of the control plane's store.
    pub store_id: String,
    /// Version of that store.
    pub version: u64,
    /// Digest of the rows, 32 hexadecimal digits.
    pub digest: String,
}

/// What a data plane says of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// Node id, a UUID.
    pub node_id: String,
    /// Host name.
    pub hostname: String,
    /// Version of gwctl.
    pub version: String,
    /// Version of Kong it stands for.
    pub kong_version: String,
    /// Labels from its settings.
    pub labels: BTreeMap<String, String>,
    /// Every plugin it has.
    pub plugins: Vec<PluginVersion>,
    /// Its effective settings with the secrets masked.
    pub configuration: Map<String, Value>,
    /// The configuration it holds; None when none, or one of another protocol.
    pub held: Option<Held>,
}

/// A row as the store of the control plane keeps it, or that it is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Schema name of the entity.
    pub entity: String,
    /// Primary key text.
    pub id: String,
    /// The row; None: it was deleted.
    #[serde(default)]
    pub new: Option<Record>,
}

/// Something a data plane would not apply. It serves what it had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    /// The version that was to be applied.
    pub version: u64,
    /// The version it serves; None: another configuration than any of this store.
    pub serving: Option<u64>,
    /// Entity of the row that is at fault; None: not one row alone.
    pub entity: Option<String>,
    /// Its id.
    pub id: Option<String>,
    /// What is wrong, in words.
    pub fault: String,
    /// The same may be sent again after so long: the fault lies with this node (disk full).
    pub retry_after_ms: Option<u64>,
}

/// A configuration is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Its version.
    pub version: u64,
    /// Its digest as the data plane counts it.
    pub digest: String,
    /// Microseconds from its receipt until it was on disk.
    #[serde(default)]
    pub stored_us: u64,
    /// Microseconds from its receipt until requests saw it.
    #[serde(default)]
    pub active_us: u64,
}

/// A message of a data plane.
#[derive(Debug, Clone, PartialEq)]
pub enum FromDp {
    /// The first one.
    Hello(Box<Hello>),
    /// A version is in force.
    Report(Applied),
    /// A version was refused.
    Refused(Refused),
    /// What came does not fit what is held: everything is asked for.
    WantSnapshot {
        /// In words.
        why: String,
    },
    /// So many pieces of the copy under way have been dealt with since the last such message.
    Taken {
        /// How many.
        pieces: u64,
    },
    /// The node stops on purpose.
    Goodbye,
    /// The answer to a question.
    Answer(Answer),
    /// A kind of a later generation, to be ignored.
    Unknown(u8),
}

/// What comes of a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// Id of the question.
    pub id: u64,
    /// The result, when there is no fault.
    pub result: Value,
    /// Why there is none, in words.
    pub fault: Option<String>,
}

/// Changes that lead from one version to a later one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// The version they build on.
    pub from: u64,
    /// The version they lead to.
    pub to: u64,
    /// Digest of the rows at that version.
    pub digest: String,
    /// When that version was committed, Unix milliseconds of the control plane.
    #[serde(default)]
    pub committed_millis: u64,
    /// Each row once, as it is at that version.
    pub rows: Vec<Row>,
}

/// A message of a control plane.
#[derive(Debug, Clone, PartialEq)]
pub enum FromCp {
    /// The answer to the hello.
    Welcome {
        /// Id of its store: versions are of this store from now on.
        store_id: String,
        /// Its newest version.
        version: u64,
        /// Time between two pings of the data plane in milliseconds.
        heartbeat_ms: u64,
    },
    /// Rows that changed.
    Changes(Changes),
    /// What the data plane holds is this version: only version and store change their names.
    Same {
        /// The version.
        version: u64,
        /// Its digest.
        digest: String,
    },
    /// A copy of everything begins.
    SnapshotBegin {
        /// The version it begins with; it ends with this or a later one.
        version: u64,
        /// Why no changes are sent, in words.
        why: String,
    },
    /// A piece of the copy. A row may come more than once, the last one counts.
    SnapshotRows {
        /// The rows.
        rows: Vec<Row>,
    },
    /// The copy is whole.
    SnapshotEnd {
        /// The version it is of.
        version: u64,
        /// Its digest.
        digest: String,
    },
    /// The configuration is withheld from this node.
    Withheld {
        /// Kong's word for it (`plugin_set_incompatible`).
        status: String,
        /// Why, in words.
        words: String,
    },
    /// The control plane stops.
    Goodbye {
        /// How long to wait before dialing it again.
        reconnect_after_ms: u64,
    },
    /// A question, by the methods of protocol v2.
    Ask {
        /// To be repeated in the answer.
        id: u64,
        /// What is asked.
        method: String,
        /// With what, by position.
        params: Vec<Value>,
    },
    /// A kind of a later generation, to be ignored.
    Unknown(u8),
}

/// Why a frame is no message. Ends the link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Not a binary frame, or an empty one.
    #[error("expected a binary frame with a message, got {actual}")]
    PeerFrame {
        /// What came.
        actual: &'static str,
    },
    /// It is longer than allowed when unpacked.
    #[error("message of kind {kind} has more than {limit} bytes when unpacked")]
    PeerTooLong {
        /// Its kind.
        kind: u8,
        /// Bytes allowed.
        limit: usize,
    },
    /// It cannot be unpacked.
    #[error("message of kind {kind} cannot be unpacked: {detail}")]
    PeerDamaged {
        /// Its kind.
        kind: u8,
        /// What the decoder said.
        detail: String,
    },
    /// Not the JSON of its kind. Says where, never what.
    #[error("message of kind {kind} is not the JSON it should be (line {line}, column {column})")]
    PeerJson {
        /// Its kind.
        kind: u8,
        /// Line of the fault.
        line: usize,
        /// Column of the fault.
        column: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct Why {
    why: String,
}

#[derive(Serialize, Deserialize)]
struct Taken {
    pieces: u64,
}

#[derive(Serialize, Deserialize)]
struct Empty {}

#[derive(Serialize, Deserialize)]
struct Welcome {
    store_id: String,
    version: u64,
    heartbeat_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct At {
    version: u64,
    digest: String,
}

#[derive(Serialize, Deserialize)]
struct Begin {
    version: u64,
    #[serde(default)]
    why: String,
}

#[derive(Serialize, Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Withheld {
    status: String,
    words: String,
}

#[derive(Serialize, Deserialize)]
struct Goodbye {
    #[serde(default)]
    reconnect_after_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct Ask {
    id: u64,
    method: String,
    #[serde(default)]
    params: Vec<Value>,
}

impl FromDp {
    /// The message as a frame.
    pub fn encode(&self) -> Frame {
        match self {
            Self::Hello(hello) => pack(1, hello),
            Self::Report(applied) => pack(2, applied),
            Self::Refused(refused) => pack(3, refused),
            Self::WantSnapshot { why } => pack(4, &Why { why: why.clone() }),
            Self::Taken { pieces } => pack(5, &Taken { pieces: *pieces }),
            Self::Goodbye => pack(6, &Empty {}),
            Self::Answer(answer) => pack(7, answer),
            Self::Unknown(kind) => pack(kind & !COMPRESSED, &Empty {}),
        }
    }

    /// Reads a frame of a data plane.
    pub fn decode(frame: &Frame) -> Result<Self, MessageError> {
        let (kind, json) = unpack(frame, DP_LIMIT)?;
        Ok(match kind {
            1 => Self::Hello(read(kind, &json)?),
            2 => Self::Report(read(kind, &json)?),
            3 => Self::Refused(read(kind, &json)?),
            4 => Self::WantSnapshot { why: read::<Why>(kind, &json)?.why },
            5 => Self::Taken { pieces: read::<Taken>(kind, &json)?.pieces },
            6 => Self::Goodbye,
            7 => Self::Answer(read(kind, &json)?),
            kind => Self::Unknown(kind),
        })
    }
}

impl FromCp {
    /// The message as a frame.
    pub fn encode(&self) -> Frame {
        match self {
            Self::Welcome { store_id, version, heartbeat_ms } => {
                let (version, heartbeat_ms) = (*version, *heartbeat_ms);
                pack(16, &Welcome { store_id: store_id.clone(), version, heartbeat_ms })
            }
            Self::Changes(changes) => pack(17, changes),
            Self::SnapshotBegin { version, why } => pack(18, &Begin { version: *version, why: why.clone() }),
            Self::SnapshotRows { rows } => {
                #[derive(Serialize)]
                struct Borrowed<'r> {
                    rows: &'r [Row],
                }
                pack(19, &Borrowed { rows })
            }
            Self::SnapshotEnd { version, digest } => pack(20, &At { version: *version, digest: digest.clone() }),
            Self::Withheld { status, words } => pack(21, &Withheld { status: status.clone(), words: words.clone() }),
            Self::Goodbye { reconnect_after_ms } => pack(22, &Goodbye { reconnect_after_ms: *reconnect_after_ms }),
            Self::Same { version, digest } => pack(23, &At { version: *version, digest: digest.clone() }),
            Self::Ask { id, method, params } => {
                pack(24, &Ask { id: *id, method: method.clone(), params: params.clone() })
            }
            Self::Unknown(kind) => pack(kind & !COMPRESSED, &Empty {}),
        }
    }

    /// Reads a frame of a control plane.
    pub fn decode(frame: &Frame) -> Result<Self, MessageError> {
        let (kind, json) = unpack(frame, CP_LIMIT)?;
        Ok(match kind {
            16 => {
                let Welcome { store_id, version, heartbeat_ms } = read(kind, &json)?;
                Self::Welcome { store_id, version, heartbeat_ms }
            }
            17 => Self::Changes(read(kind, &json)?),
            18 => {
                let Begin { version, why } = read(kind, &json)?;
                Self::SnapshotBegin { version, why }
            }
            19 => Self::SnapshotRows { rows: read::<Rows>(kind, &json)?.rows },
            20 => {
                let At { version, digest } = read(kind, &json)?;
                Self::SnapshotEnd { version, digest }
            }
            21 => {
                let Withheld { status, words } = read(kind, &json)?;
                Self::Withheld { status, words }
            }
            22 => Self::Goodbye { reconnect_after_ms: read::<Goodbye>(kind, &json)?.reconnect_after_ms },
            23 => {
                let At { version, digest } = read(kind, &json)?;
                Self::Same { version, digest }
            }
            24 => {
                let Ask { id, method, params } = read(kind, &json)?;
                Self::Ask { id, method, params }
            }
            kind => Self::Unknown(kind),
        })
    }
}

fn pack<T: Serialize>(kind: u8, message: &T) -> Frame {
    let mut plain = vec![kind];
    serde_json::to_writer(&mut plain, message).expect("texts, numbers and JSON values always serialise");
    if plain.len() > WORTH_COMPRESSING
        && let Ok(packed) = zstd::bulk::compress(plain.get(1..).unwrap_or_default(), LEVEL)
        && packed.len() + 1 < plain.len()
    {
        return Frame::Binary([&[kind | COMPRESSED], packed.as_slice()].concat().into());
    }
    Frame::Binary(plain.into())
}

/// Kind and JSON of a frame. What is unpacked is counted while it grows.
fn unpack(frame: &Frame, limit: usize) -> Result<(u8, Bytes), MessageError> {
    let Frame::Binary(payload) = frame else { return Err(MessageError::PeerFrame { actual: frame.kind() }) };
    let Some((first, _)) = payload.split_first() else {
        return Err(MessageError::PeerFrame { actual: "an empty one" });
    };
    let kind = first & !COMPRESSED;
    let body = payload.slice(1..);
    let too_long = MessageError::PeerTooLong { kind, limit };
    if first & COMPRESSED == 0 {
        return if body.len() > limit { Err(too_long) } else { Ok((kind, body)) };
    }
    let damaged = |error: std::io::Error| MessageError::PeerDamaged { kind, detail: error.to_string() };
    let mut decoder = zstd::stream::read::Decoder::with_buffer(&*body).map_err(damaged)?;
    decoder.window_log_max(WINDOW_LOG).map_err(damaged)?;
    let mut json = Vec::new();
    let allowed = u64::try_from(limit).unwrap_or(u64::MAX);
    decoder.take(allowed.saturating_add(1)).read_to_end(&mut json).map_err(damaged)?;
    if json.len() > limit { Err(too_long) } else { Ok((kind, json.into())) }
}

fn read<T: DeserializeOwned>(kind: u8, json: &[u8]) -> Result<T, MessageError> {
    serde_json::from_slice(json).map_err(|error| MessageError::PeerJson {
        kind,
        line: error.line(),
        column: error.column(),
    })
}

#[cfg(test)]
mod tests;
