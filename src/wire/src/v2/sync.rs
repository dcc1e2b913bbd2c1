//! `kong.sync.v2`: the methods by which a configuration travels as changes.
//!
//! Versions count up by one for each change at the control plane; 0 is "nothing". A data plane asks for what came
//! after its version and gets the rows in order; an answer that says `wipe` replaces everything it has.

use crate::ConfigHash;
use crate::v2::rpc::RpcError;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The group of methods.
pub const CAPABILITY: &str = "kong.sync.v2";
/// Data plane to control plane: what came after a version?
pub const GET_DELTA: &str = "kong.sync.v2.get_delta";
/// Control plane to data plane: there is a new version.
pub const NOTIFY: &str = "kong.sync.v2.notify_new_version";

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
#[derive(Debug, Clone, Serialize)]
pub struct SentDelta<'a> {
    /// Kind of entity.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The row after the change; None: it was deleted.
    pub entity: Option<Map<String, Value>>,
    /// Its primary key; full answers leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pk: Option<Map<String, Value>>,
    /// Its workspace.
    pub ws_id: &'a str,
    /// The version that made the change; in full answers the latest on each row.
    pub version: u64,
}

/// The result of `get_delta` as JSON text.
pub fn result(deltas: &[SentDelta<'_>], wipe: bool) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Namespace<'a> {
        deltas: &'a [SentDelta<'a>],
        wipe: bool,
    }
    #[derive(Serialize)]
    struct Answer<'a> {
        default: Namespace<'a>,
    }
    serde_json::to_string(&Answer { default: Namespace { deltas, wipe } })
}

/// Parameters of `get_delta`.
pub fn pull_params(version: u64) -> Value {
    json!({ NAMESPACE: { "version": version } })
}

/// The version of `get_delta`'s parameters. Negative ones are what they are: less than nothing.
pub fn pulled_version(params: &Value) -> Result<i64, RpcError> {
    let version = member(params, "version")?;
    let number = version.as_i64().or_else(|| version.as_str().and_then(|text| text.parse().ok()));
    number.ok_or_else(|| RpcError::invalid_params("`version` is no integer"))
}

/// Parameters of `notify_new_version`.
pub fn notify_params(version: u64) -> Value {
    json!({ NAMESPACE: { "new_version": version } })
}

/// The version of `notify_new_version`'s parameters.
pub fn notified_version(params: &Value) -> Result<u64, RpcError> {
    let version = match member(params, "new_version")? {
        Value::Null => return Err(RpcError::failed("'new_version' key does not exist")),
        version => version,
    };
    version.as_u64().ok_or_else(|| RpcError::invalid_params("`new_version` is no integer"))
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
        let Value::Array(deltas) = deltas else { return Ok(Self { wipe: flag(&answer), deltas: Vec::new() }) };
        let deltas: Result<Vec<Delta>, String> = deltas.into_iter().map(Delta::read).collect();
        Ok(Self { wipe: flag(&answer), deltas: deltas? })
    }

    /// The version they lead to: that of the last one.
    pub fn version(&self) -> Option<u64> {
        self.deltas.last().map(|delta| delta.version)
    }
}

/// Kong 3.10 calls it `full_sync`.
fn flag(answer: &Map<String, Value>) -> bool {
    ["wipe", "full_sync"].iter().any(|name| answer.get(*name) == Some(&Value::Bool(true)))
}

impl Delta {
    fn read(value: Value) -> Result<Self, String> {
        let Value::Object(mut row) = value else { return Err("a delta is no object".to_owned()) };
        let Some(Value::String(kind)) = row.remove("type") else { return Err("a delta has no `type`".to_owned()) };
        let version = row.get("version").and_then(Value::as_u64);
        let version = version.ok_or_else(|| format!("a delta of {kind} has no integer `version`"))?;
        let entity = match row.remove("entity") {
            None | Some(Value::Null) => None,
            Some(Value::Object(entity)) => Some(entity),
            Some(_) => return Err(format!("a delta of {kind} has an `entity` that is no object")),
        };
        let pk = match row.remove("pk") {
            Some(Value::Object(pk)) => pk,
            _ => entity.clone().ok_or_else(|| format!("a deletion of {kind} has no `pk`"))?,
        };
        Ok(Self { kind, entity, pk, version })
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

/// A version in the place of a configuration hash: 32 decimal digits.
pub fn hash_of(version: i64) -> ConfigHash {
    ConfigHash::from(format!("{version:032}").as_str())
}

/// The version a hash stands for; 0, so that everything is asked for, when it is a real hash.
pub fn version_of(hash: &str) -> u64 {
    // A digest of 32 decimal digits that begins with twelve zeros does not happen.
    let version = (hash.len() == 32 && hash.bytes().all(|byte| byte.is_ascii_digit())).then(|| hash.parse().ok());
    version.flatten().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_stand_in_the_place_of_hashes() {
        assert_eq!(hash_of(42).as_str(), "00000000000000000000000000000042");
        assert_eq!(hash_of(-1).as_str(), "-0000000000000000000000000000001");
        assert_eq!(version_of("00000000000000000000000000000042"), 42);
        for hash in ["8dd89138b0eac8dc78edbcae31b2d3b9", "99999999999999999999999999999999", "42", ""] {
            assert_eq!(version_of(hash), 0, "{hash}");
        }
    }

    #[test]
    fn parameters_are_read_as_kong_reads_them() {
        assert_eq!(pulled_version(&json!([pull_params(3)])), Ok(3));
        assert_eq!(pulled_version(&json!([{"default": {"version": -1}}])), Ok(-1));
        assert_eq!(pulled_version(&json!([{"default": {"version": "3"}}])), Ok(3));
        assert_eq!(pulled_version(&json!([{"other": {}}])).unwrap_err(), RpcError::failed(NO_NAMESPACE));
        for params in [json!([]), json!({"default": {"version": 3}}), json!([{"default": {}}]), json!(null)] {
            assert_eq!(pulled_version(&params).unwrap_err().code, -32602, "{params}");
        }
        assert_eq!(notified_version(&json!([notify_params(6)])), Ok(6));
        let error = notified_version(&json!([{"default": {}}])).unwrap_err();
        assert_eq!(error, RpcError::failed("'new_version' key does not exist"));
    }

    #[test]
    fn what_is_sent_is_what_is_received() {
        let row = json!({"id": "a", "service": {"id": "s"}, "methods": null});
        let (entity, pk) = (row.as_object().cloned(), json!({"id": "a"}).as_object().cloned());
        let sent = [
            SentDelta { kind: "routes", entity: entity.clone(), pk: pk.clone(), ws_id: "w", version: 43 },
            SentDelta { kind: "routes", entity: None, pk: pk.clone(), ws_id: "w", version: 44 },
            SentDelta { kind: "routes", entity: entity.clone(), pk: None, ws_id: "w", version: 44 },
        ];
        let text = result(&sent, false).unwrap();
        assert!(text.contains(r#""entity":null"#) && text.contains(r#""ws_id":"w""#), "{text}");
        let received = Deltas::read(serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(received.version(), Some(44));
        assert_eq!(
            received.deltas[0],
            Delta { kind: "routes".into(), entity: entity.clone(), pk: pk.clone().unwrap(), version: 43 }
        );
        assert_eq!(received.deltas[1].entity, None);
        assert_eq!(received.deltas[2].pk, entity.unwrap());
    }

    #[test]
    fn an_empty_list_may_be_an_object_and_nonsense_is_named() {
        let read = |text: &str| Deltas::read(serde_json::from_str(text).unwrap());
        assert_eq!(read(r#"{"default":{"deltas":{},"wipe":true}}"#), Ok(Deltas { wipe: true, deltas: vec![] }));
        assert_eq!(read(r#"{"default":{"deltas":[]}}"#), Ok(Deltas::default()));
        for (text, fault) in [
            ("{}", "the default namespace is missing"),
            (r#"{"default":{}}"#, "`deltas` is missing"),
            (r#"{"default":{"deltas":{"a":1}}}"#, "`deltas` is no list"),
            (
                r#"{"default":{"deltas":[{"type":"services","entity":{}}]}}"#,
                "a delta of services has no integer `version`",
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

    proptest! {
        #[test]
        fn every_version_is_found_again_in_its_hash(version in 0_i64..) {
            prop_assert_eq!(version_of(hash_of(version).as_str()), version as u64);
        }
    }
}
