use super::*;
use gwctl_entities::{NodeKind, Registry, RegistryOptions};
use gwctl_store::CachedConfiguration;
use serde_json::{Value, json};

struct Stage {
    cache: Arc<DataPlaneCache>,
    directory: RecordDirectory<DataPlaneCache>,
    _folder: tempfile::TempDir,
}

const CONSUMER: &str = "00000000-0000-4000-8000-000000000001";
const CREDENTIAL: &str = "00000000-0000-4000-8000-000000000002";

fn stage() -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let router_flavor = "traditional_compatible".to_owned();
    let options = RegistryOptions { kind: NodeKind::DataPlane, router_flavor, plugins: None };
    let registry = Arc::new(Registry::bundled(&options));
    let cache = Arc::new(DataPlaneCache::open(folder.path(), registry, "tag").unwrap());
    Stage { directory: RecordDirectory::new(cache.clone()), cache, _folder: folder }
}

impl Stage {
    /// A consumer of this name with a key of this lifetime.
    fn apply(&self, username: &str, ttl: &Value) {
        let row = |value: Value| value.as_object().cloned().unwrap();
        let consumer = row(json!({"id": CONSUMER, "username": username}));
        let credential = row(json!({"id": CREDENTIAL, "key": "k", "consumer": {"id": CONSUMER}, "ttl": ttl}));
        let records = [("consumers", consumer), ("keyauth_credentials", credential)];
        let records = records.into_iter().map(|(entity, row)| (entity.to_owned(), vec![row])).collect();
        self.cache.apply(&CachedConfiguration { hash: username.to_owned(), records }).unwrap();
    }

    fn consumer(&self) -> Option<Arc<Record>> {
        self.directory.get("consumers", CONSUMER).unwrap()
    }

    fn credential(&self) -> Option<Arc<Record>> {
        self.directory.find("keyauth_credentials", "key", "k").unwrap()
    }
}

#[test]
fn a_record_is_read_once_and_anew_after_a_change() {
    let stage = stage();
    assert!(stage.consumer().is_none(), "what is not there is not remembered");
    stage.apply("one", &Value::Null);
    let (first, again) = (stage.consumer().unwrap(), stage.consumer().unwrap());
    assert!(Arc::ptr_eq(&first, &again));
    assert!(Arc::ptr_eq(&stage.credential().unwrap(), &stage.credential().unwrap()));
    stage.apply("two", &Value::Null);
    assert_eq!(stage.consumer().unwrap()["username"], "two");
}

#[test]
fn a_record_that_is_gone_is_not_found_any_more() {
    let stage = stage();
    stage.apply("one", &Value::Null);
    assert!(stage.credential().is_some());
    let records = std::collections::BTreeMap::new();
    stage.cache.apply(&CachedConfiguration { hash: "none".to_owned(), records }).unwrap();
    assert!(stage.credential().is_none() && stage.consumer().is_none());
}

#[test]
fn a_credential_that_expires_by_itself_is_read_each_time() {
    let stage = stage();
    stage.apply("one", &json!(4_000_000_000_u64));
    let (first, again) = (stage.credential().unwrap(), stage.credential().unwrap());
    assert!(!Arc::ptr_eq(&first, &again) && first == again);
}
