//! Rules between records: uniqueness, references, what a delete takes along.

use super::Case;
use super::fixtures::{consumer, delete, id, insert, key_auth, origin, plugin, record, replace, route, service, what};
use crate::Store;
use gwctl_entities::{EntityError, Value};
use serde_json::json;

pub(super) const CASES: &[Case] = &[
    ("unique fields occur once", unique_fields),
    ("a freed value can be taken in the same batch", freed_value),
    ("cache keys occur once and all components are reported", cache_keys),
    ("a cache key of one field may be null any number of times", null_cache_keys),
    ("primary keys occur once", primary_keys),
    ("foreign keys must lead somewhere", foreign_missing),
    ("restricting references keep a record", restrict),
    ("deletes cascade and write deltas for children", cascade),
    ("a cascade stops at a restricting grandchild", cascade_restricted),
    ("a certificate takes its SNIs along", snis),
    ("a listed CA certificate stays", ca_certificates),
    ("replacing needs a record", replace_absent),
];

fn unique_violation(fields: Value) -> EntityError {
    EntityError::UniqueViolation { fields: record(fields) }
}

fn unique_fields(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("services", service(2, "b"))]).unwrap();
    let taken = unique_violation(json!({"name": "a"}));
    assert_eq!(insert(store, vec![("services", service(3, "a"))]).map(|commit| commit.version), Err(taken.clone()));
    assert_eq!(replace(store, "services", &service(2, "a")).map(|commit| commit.version), Err(taken));
    let nameless = |number| record(json!({"id": id(number), "name": null, "host": "h"}));
    insert(store, vec![("services", nameless(4)), ("services", nameless(5))]).unwrap();
}

fn freed_value(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("services", service(2, "b"))]).unwrap();
    store
        .write(&origin(), &mut |write| {
            write.replace("services", service(1, "c"))?;
            write.replace("services", service(2, "a"))?;
            write.replace("services", service(1, "b"))
        })
        .unwrap();
    let read = store.read().unwrap();
    assert_eq!(read.get_by("services", "name", "a").unwrap(), Some(service(2, "a")));
    assert_eq!(read.get_by("services", "name", "b").unwrap(), Some(service(1, "b")));
    assert_eq!(read.get_by("services", "name", "c").unwrap(), None);
}

fn cache_keys(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("plugins", plugin(2, "cors", Some(1)))]).unwrap();
    insert(store, vec![("plugins", plugin(3, "cors", None)), ("plugins", plugin(4, "jwt", Some(1)))]).unwrap();
    let refusal = insert(store, vec![("plugins", plugin(5, "cors", Some(1)))]).map(|commit| commit.version);
    let EntityError::UniqueViolation { fields } = refusal.unwrap_err() else { panic!("another refusal") };
    assert_eq!(
        Value::Object(fields),
        json!({"name": "cors", "route": null, "service": {"id": id(1)}, "consumer": null})
    );
    assert!(insert(store, vec![("plugins", plugin(6, "cors", None))]).is_err());
}

fn null_cache_keys(store: &dyn Store) {
    let keyless = |number: u64| {
        let mut row = key_auth(number, 1, "", Value::Null);
        row.insert("key".to_owned(), Value::Null);
        ("keyauth_credentials", row)
    };
    insert(store, vec![("consumers", consumer(1, "a")), keyless(2), keyless(3)]).unwrap();
    insert(store, vec![("keyauth_credentials", key_auth(4, 1, "k:1", Value::Null))]).unwrap();
    let found = store.read().unwrap().get_by("keyauth_credentials", "cache_key", "keyauth_credentials:k:1");
    assert_eq!(found.unwrap(), Some(key_auth(4, 1, "k:1", Value::Null)));
}

fn primary_keys(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a"))]).unwrap();
    let refusal = insert(store, vec![("services", service(1, "b"))]).map(|commit| commit.version);
    assert_eq!(refusal, Err(EntityError::PrimaryKeyViolation { key: record(json!({"id": id(1)})) }));
    // The same id in another entity is another record.
    insert(store, vec![("consumers", consumer(1, "a"))]).unwrap();
    let parameter = record(json!({"key": "cluster_id", "value": "x", "created_at": 1}));
    insert(store, vec![("parameters", parameter.clone())]).unwrap();
    assert_eq!(store.read().unwrap().get("parameters", "cluster_id").unwrap(), Some(parameter));
}

fn foreign_missing(store: &dyn Store) {
    let missing = EntityError::ForeignKeyMissing {
        field: "service".to_owned(),
        entity: "services".to_owned(),
        key: record(json!({"id": id(1)})),
    };
    assert_eq!(insert(store, vec![("routes", route(2, 1))]).map(|commit| commit.version), Err(missing.clone()));
    insert(store, vec![("services", service(3, "a")), ("routes", route(2, 3))]).unwrap();
    assert_eq!(replace(store, "routes", &route(2, 1)).map(|commit| commit.version), Err(missing));
    let unbound = record(json!({"id": id(2), "name": "r", "service": null}));
    assert_eq!(what(store, &replace(store, "routes", &unbound).unwrap()), ["~routes 2"]);
    assert!(delete(store, "services", 3).unwrap().0, "nothing refers to it any more");
}

fn restrict(store: &dyn Store) {
    insert(store, vec![("services", service(1, "a")), ("routes", route(2, 1))]).unwrap();
    let kept = EntityError::ForeignKeyRestrict { entity: "services".to_owned(), by: "routes".to_owned() };
    assert_eq!(delete(store, "services", 1).map(|(found, _)| found), Err(kept));
    let commit = store
        .write(&origin(), &mut |write| {
            write.delete("routes", &id(2))?;
            write.delete("services", &id(1)).map(drop)
        })
        .unwrap();
    assert_eq!(what(store, &commit), ["-routes 2", "-services 1"], "children before parents");
}

fn cascade(store: &dyn Store) {
    let group = record(json!({"id": id(3), "consumer": {"id": id(1)}, "group": "g", "tags": null}));
    let bound = record(json!({"id": id(4), "name": "cors", "service": null, "route": null, "consumer": {"id": id(1)},
        "instance_name": null, "config": {}}));
    let records = vec![
        ("consumers", consumer(1, "a")),
        ("keyauth_credentials", key_auth(2, 1, "k", Value::Null)),
        ("acls", group),
        ("plugins", bound),
        ("consumers", consumer(5, "b")),
        ("keyauth_credentials", key_auth(6, 5, "other", Value::Null)),
    ];
    insert(store, records).unwrap();
    let (found, commit) = delete(store, "consumers", 1).unwrap();
    assert!(found);
    let mut gone = what(store, &commit);
    assert_eq!(gone.last().map(String::as_str), Some("-consumers 1"));
    gone.sort();
    assert_eq!(gone, ["-acls 3", "-consumers 1", "-keyauth_credentials 2", "-plugins 4"]);
    let read = store.read().unwrap();
    assert_eq!(read.get_by("keyauth_credentials", "key", "k").unwrap(), None);
    assert!(read.get_by("keyauth_credentials", "key", "other").unwrap().is_some());
    insert(store, vec![("keyauth_credentials", key_auth(7, 5, "k", Value::Null))]).unwrap();
}

fn cascade_restricted(store: &dyn Store) {
    // The plugin would go with its service, but the route keeps the service, so the plugin stays too.
    let records = vec![("services", service(1, "a")), ("plugins", plugin(2, "cors", Some(1))), ("routes", route(3, 1))];
    insert(store, records).unwrap();
    assert!(delete(store, "services", 1).is_err());
    assert!(store.read().unwrap().get("plugins", &id(2)).unwrap().is_some());
}

fn snis(store: &dyn Store) {
    let certificate = record(json!({"id": id(1), "cert": "c", "key": "k", "tags": null}));
    let sni = record(json!({"id": id(2), "name": "a.test", "certificate": {"id": id(1)}, "tags": null}));
    let mut user = service(3, "a");
    user.insert("client_certificate".to_owned(), json!({"id": id(1)}));
    insert(store, vec![("certificates", certificate), ("snis", sni), ("services", user)]).unwrap();
    let kept = EntityError::ForeignKeyRestrict { entity: "certificates".to_owned(), by: "services".to_owned() };
    assert_eq!(delete(store, "certificates", 1).map(|(found, _)| found), Err(kept));
    assert!(store.read().unwrap().get("snis", &id(2)).unwrap().is_some(), "a refused delete takes no SNI");
    delete(store, "services", 3).unwrap();
    assert_eq!(what(store, &delete(store, "certificates", 1).unwrap().1), ["-snis 2", "-certificates 1"]);
}

fn ca_certificates(store: &dyn Store) {
    let authority = record(json!({"id": id(1), "cert": "c", "cert_digest": "d", "tags": null}));
    let mut user = service(2, "a");
    user.insert("ca_certificates".to_owned(), json!([id(9), id(1)]));
    insert(store, vec![("ca_certificates", authority), ("services", user)]).unwrap();
    let refusal = delete(store, "ca_certificates", 1).map(|(found, _)| found);
    let listed = EntityError::ReferencedByOthers {
        entity: format!("ca certificate {}", id(1)),
        by: format!("services (id = {})", id(2)),
    };
    assert_eq!(refusal, Err(listed));
    replace(store, "services", &service(2, "a")).unwrap();
    assert!(delete(store, "ca_certificates", 1).unwrap().0);
}

fn replace_absent(store: &dyn Store) {
    let refusal = replace(store, "services", &service(1, "a")).map(|commit| commit.version);
    assert_eq!(refusal, Err(EntityError::NotFound { key: record(json!({"id": id(1)})), primary: true }));
}
