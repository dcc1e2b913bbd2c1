//! `kong.sync.v2`: the methods by which a configuration travels as changes.
//!
//! Versions count up by one for each change at the control plane; 0 is "nothing". A data plane asks for what came
//! after its version and gets the rows in order; an answer that says `wipe` replaces everything it has. How versions are
//! written is a matter of the [`Dialect`].

use crate::ConfigHash;
use crate::v2::dialect::{self, Dialect};
use crate::v2::rpc::RpcError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The group of methods.
pub const CAPABILITY: &str = "kong.sync.v2";
/// Data plane to control plane: what came after a version?
pub const GET_DELTA: &str = "kong.sync.v2.get_delta";
/// Control plane to data plane: there is a new version.
pub const NOTIFY: &str = "kong.sync.v2.notify_new_version";
/// Data plane to control plane, no answer wanted: rows are not valid. Kong 3.10 only.
pub const INVALID: &str = "kong.sync.v2.notify_validation_error";

const NAMESPACE: &str = "default";
const NO_NAMESPACE: &str = "default namespace does not exist inside params";

/// Versions a data plane may lag behind before it is sent everything.
///
/// Source: Kong 3.9.1 `kong/clustering/services/sync/rpc.lua`, `FULL_SYNC_THRESHOLD`.
pub const FULL_SYNC_BEHIND: u64 = 512;

/// Kinds of entities in the order of a full answer, parents first; those of plugins follow by name.
///
/// Source: Kong 3.9.1, topological order of its schemas.
const ORDER: [&str; 15] = [
    "workspaces",
    "ca_certificates",
    "certificates",
    "consumers",
    "key_sets",
    "keys",
    "parameters",
    "services",
    "routes",
    "filter_chains",
    "plugins",
    "snis",
    "upstreams",
    "targets",
    "vaults",
];

/// Sorts kinds of entities as a full answer has them.
pub fn order(kind: &str) -> (usize, &str) {
    (ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len()), kind)
}

/// One row as it is sent.
#[derive(Debug, Clone)]
pub struct SentDelta<'a> {
    /// Kind of entity.
    pub kind: &'a str,
    /// The row after the change; None: it was deleted.
    pub entity: Option<Map<String, Value>>,
    /// Its primary key; full answers leave it out.
    pub pk: Option<Map<String, Value>>,
    /// Its workspace.
    pub ws_id: &'a str,
    /// The version that made the change; in full answers the latest on each row.
    pub version: u64,
}

/// A row with the words of a dialect.
struct Worded<'a>(&'a SentDelta<'a>, Dialect);

impl Serialize for Worded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(delta, dialect) = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", delta.kind)?;
        map.serialize_entry("entity", &delta.entity)?;
        if let Some(pk) = &delta.pk {
            map.serialize_entry("pk", pk)?;
        }
        map.serialize_entry("ws_id", delta.ws_id)?;
        map.serialize_entry("version", &dialect.value(delta.version))?;
        map.end()
    }
}

/// The result of `get_delta` as JSON text.
pub fn result(deltas: &[SentDelta<'_>], wipe: bool, dialect: Dialect) -> Result<String, serde_json::Error> {
    struct Namespace<'a>(&'a [SentDelta<'a>], bool, Dialect);
    impl Serialize for Namespace<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let Self(deltas, wipe, dialect) = self;
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("deltas", &deltas.iter().map(|delta| Worded(delta, *dialect)).collect::<Vec<_>>())?;
            map.serialize_entry(dialect.flag(), wipe)?;
            map.end()
        }
    }
    #[derive(Serialize)]
    struct Answer<'a> {
        default: Namespace<'a>,
    }
    serde_json::to_string(&Answer { default: Namespace(deltas, wipe, dialect) })
}

/// Parameters of `get_delta`.
pub fn pull_params(version: u64, dialect: Dialect) -> Value {
    json!({ NAMESPACE: { "version": dialect.value(version) } })
}

/// What a data plane says it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The version; 0 when it has nothing, or nothing with a version.
    pub version: u64,
    /// As it is shown in the place of its configuration hash.
    pub hash: ConfigHash,
    /// How it is written, which is how the answer is written.
    pub dialect: Dialect,
}

impl Held {
    /// Reads the parameters of `get_delta` from a node whose version has this dialect. One of texts that writes an
    /// integer nevertheless is taken at its word.
    pub fn read(params: &Value, announced: Dialect) -> Result<Self, RpcError> {
        let said = member(params, "version")?;
        if let (Dialect::Texts, Value::String(text)) = (announced, said) {
            // A node that was configured by protocol v1 names the hash of what it has.
            let hash = if text.len() == 32 { ConfigHash::from(text.as_str()) } else { ConfigHash::zero() };
            return Ok(Self { version: dialect::version_of(text), hash, dialect: Dialect::Texts });
        }
        let dialect = Dialect::Integers;
        let number = said.as_i64().or_else(|| said.as_str().and_then(|text| text.parse().ok()));
        let number = number.ok_or_else(|| RpcError::invalid_params("`version` is no integer"))?;
        // Negative ones are less than nothing.
        let version = u64::try_from(number).unwrap_or(0);
        Ok(Self { version, hash: dialect.hash(version), dialect })
    }
}

/// Parameters of `notify_new_version`.
pub fn notify_params(version: u64, dialect: Dialect) -> Value {
    json!({ NAMESPACE: { "new_version": dialect.value(version) } })
}

/// The version of `notify_new_version`'s parameters, and how it was written.
pub fn notified_version(params: &Value) -> Result<(u64, Dialect), RpcError> {
    let version = match member(params, "new_version")? {
        Value::Null => return Err(RpcError::failed("'new_version' key does not exist")),
        version => version,
    };
    Dialect::read(version).ok_or_else(|| RpcError::invalid_params("`new_version` is no version"))
}

/// A member of the only namespace; null when it is not there.
fn member<'a>(params: &'a Value, name: &str) -> Result<&'a Value, RpcError> {
    let Some(Value::Object(first)) = params.get(0) else {
        return Err(RpcError::invalid_params("expected an array with one object"));
    };
    match first.get(NAMESPACE) {
        None => Err(RpcError::failed(NO_NAMESPACE)),
        Some(namespace) => Ok(namespace.get(name).unwrap_or(&Value::Null)),
    }
}

/// What a data plane received for its `get_delta`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deltas {
    /// They replace everything.
    pub wipe: bool,
    /// How their versions were written.
    pub dialect: Dialect,
    /// Rows in the order of their changes.
    pub deltas: Vec<Delta>,
}

/// One row as received.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    /// Kind of entity.
    pub kind: String,
    /// The row after the change; None: it was deleted.
    pub entity: Option<Map<String, Value>>,
    /// Its primary key, from the row where the message names none.
    pub pk: Map<String, Value>,
    /// The version that made the change.
    pub version: u64,
}

impl Deltas {
    /// Reads the result of `get_delta`; the error says what is wrong with it.
    pub fn read(result: Value) -> Result<Self, String> {
        let Value::Object(mut result) = result else { return Err("expected an object".to_owned()) };
        let Some(Value::Object(mut answer)) = result.remove(NAMESPACE) else {
            return Err("the default namespace is missing".to_owned());
        };
        let deltas = answer.remove("deltas").ok_or("`deltas` is missing")?;
        let deltas = list(&deltas).is_some().then_some(deltas).ok_or("`deltas` is no list")?;
        let wipe = flag(&answer);
        let mut dialect = if answer.contains_key(Dialect::Texts.flag()) { Dialect::Texts } else { Dialect::Integers };
        let mut rows = Vec::new();
        for row in if let Value::Array(rows) = deltas { rows } else { Vec::new() } {
            let (row, written) = Delta::read(row)?;
            dialect = written;
            rows.push(row);
        }
        Ok(Self { wipe, dialect, deltas: rows })
    }

    /// The version they lead to: that of the last one.
    pub fn version(&self) -> Option<u64> {
        self.deltas.last().map(|delta| delta.version)
    }
}

fn flag(answer: &Map<String, Value>) -> bool {
    [Dialect::Integers, Dialect::Texts].iter().any(|dialect| answer.get(dialect.flag()) == Some(&Value::Bool(true)))
}

impl Delta {
    fn read(value: Value) -> Result<(Self, Dialect), String> {
        let Value::Object(mut row) = value else { return Err("a delta is no object".to_owned()) };
        let Some(Value::String(kind)) = row.remove("type") else { return Err("a delta has no `type`".to_owned()) };
        let version = row.get("version").and_then(Dialect::read);
        let (version, dialect) = version.ok_or_else(|| format!("a delta of {kind} has no usable `version`"))?;
        let entity = match row.remove("entity") {
            None | Some(Value::Null) => None,
            Some(Value::Object(entity)) => Some(entity),
            Some(_) => return Err(format!("a delta of {kind} has an `entity` that is no object")),
        };
        let pk = match row.remove("pk") {
            Some(Value::Object(pk)) => pk,
            _ => entity.clone().ok_or_else(|| format!("a deletion of {kind} has no `pk`"))?,
        };
        Ok((Self { kind, entity, pk, version }, dialect))
    }
}

/// A list, also one that Lua wrote as an empty object.
pub(crate) fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) => Some(items),
        Value::Object(map) if map.is_empty() => Some(&[]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(params: &Value, dialect: Dialect) -> Result<(u64, String), RpcError> {
        Held::read(params, dialect).map(|held| (held.version, held.hash.to_string()))
    }

    #[test]
    fn parameters_are_read_as_kong_reads_them() {
        let version = |version| json!([{"default": {"version": version}}]);
        let integers = |params| held(&params, Dialect::Integers);
        let hash = |version| Dialect::Integers.hash(version).to_string();
        assert_eq!(integers(json!([pull_params(3, Dialect::Integers)])), Ok((3, hash(3))));
        assert_eq!(integers(version(json!(-1))), Ok((0, hash(0))));
        assert_eq!(integers(version(json!("3"))), Ok((3, hash(3))));
        assert_eq!(integers(json!([{"other": {}}])).unwrap_err(), RpcError::failed(NO_NAMESPACE));
        for params in [json!([]), json!({"default": {"version": 3}}), json!([{"default": {}}]), json!(null)] {
            assert_eq!(integers(params.clone()).unwrap_err().code, -32602, "{params}");
        }
        for dialect in [Dialect::Integers, Dialect::Texts] {
            assert_eq!(notified_version(&json!([notify_params(6, dialect)])), Ok((6, dialect)));
        }
        let error = notified_version(&json!([{"default": {}}])).unwrap_err();
        assert_eq!(error, RpcError::failed("'new_version' key does not exist"));
        assert_eq!(notified_version(&json!([{"default": {"new_version": "x"}}])).unwrap_err().code, -32602);
    }

    #[test]
    fn a_node_of_the_newer_dialect_names_whatever_it_has() {
        let texts = |version: &str| held(&json!([{"default": {"version": version}}]), Dialect::Texts).unwrap();
        let (version, digest) = ("v02_000000000000000000000000002a", "8dd89138b0eac8dc78edbcae31b2d3b9");
        assert_eq!(texts(version), (42, version.to_owned()));
        assert_eq!(texts(digest), (0, digest.to_owned()));
        assert_eq!(texts("short"), (0, "0".repeat(32)));
    }

    #[test]
    fn what_is_sent_is_what_is_received_in_both_dialects() {
        let row = json!({"id": "a", "service": {"id": "s"}, "methods": null});
        let (entity, pk) = (row.as_object().cloned(), json!({"id": "a"}).as_object().cloned());
        let sent = [
            SentDelta { kind: "routes", entity: entity.clone(), pk: pk.clone(), ws_id: "w", version: 43 },
            SentDelta { kind: "routes", entity: None, pk: pk.clone(), ws_id: "w", version: 44 },
            SentDelta { kind: "routes", entity: entity.clone(), pk: None, ws_id: "w", version: 44 },
        ];
        for dialect in [Dialect::Integers, Dialect::Texts] {
            for wipe in [true, false] {
                let text = result(&sent, wipe, dialect).unwrap();
                assert!(text.contains(r#""entity":null"#) && text.contains(r#""ws_id":"w""#), "{text}");
                let received = Deltas::read(serde_json::from_str(&text).unwrap()).unwrap();
                assert_eq!((received.version(), received.dialect, received.wipe), (Some(44), dialect, wipe));
                let kind = "routes".to_owned();
                let first = Delta { kind, entity: entity.clone(), pk: pk.clone().unwrap(), version: 43 };
                assert_eq!(received.deltas[0], first);
                assert_eq!(received.deltas[1].entity, None);
                assert_eq!(Some(&received.deltas[2].pk), entity.as_ref());
            }
        }
        assert_eq!(result(&[], false, Dialect::Integers).unwrap(), r#"{"default":{"deltas":[],"wipe":false}}"#);
        assert_eq!(result(&[], false, Dialect::Texts).unwrap(), r#"{"default":{"deltas":[],"full_sync":false}}"#);
    }

    #[test]
    fn an_empty_list_may_be_an_object_and_nonsense_is_named() {
        let read = |text: &str| Deltas::read(serde_json::from_str(text).unwrap());
        assert_eq!(read(r#"{"default":{"deltas":{},"wipe":true}}"#), Ok(Deltas { wipe: true, ..Deltas::default() }));
        assert_eq!(read(r#"{"default":{"deltas":[]}}"#), Ok(Deltas::default()));
        for (text, fault) in [
            ("{}", "the default namespace is missing"),
            (r#"{"default":{}}"#, "`deltas` is missing"),
            (r#"{"default":{"deltas":{"a":1}}}"#, "`deltas` is no list"),
            (
                r#"{"default":{"deltas":[{"type":"services","entity":{}}]}}"#,
                "a delta of services has no usable `version`",
            ),
            (r#"{"default":{"deltas":[{"type":"services","version":1}]}}"#, "a deletion of services has no `pk`"),
        ] {
            assert_eq!(read(text), Err(fault.to_owned()));
        }
    }

    #[test]
    fn parents_come_before_children_and_plugins_entities_last() {
        let mut kinds = ["acls", "targets", "routes", "services", "workspaces", "upstreams", "jwt_secrets"];
        kinds.sort_by(|one, other| order(one).cmp(&order(other)));
        assert_eq!(kinds, ["workspaces", "services", "routes", "upstreams", "targets", "acls", "jwt_secrets"]);
    }
}
