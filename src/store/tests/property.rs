//! Random batches against a naive model: scans instead of indexes, rules written out by hand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use gwctl_entities::{EntityError, NodeKind, PageQuery, Record, Registry, RegistryOptions, Value, Write};
use gwctl_lifecycle::{Clock as _, TestClock};
use gwctl_store::{Changes, LmdbOptions, LmdbStore, MapSize, Origin, Store};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the model knows of an entity: unique fields, cache key, foreign fields with parent and on-delete rule.
struct Rules {
    entity: &'static str,
    unique: &'static [&'static str],
    cache_key: &'static [&'static str],
    foreign: &'static [(&'static str, &'static str, OnDelete)],
}

#[derive(PartialEq)]
enum OnDelete {
    Restrict,
    Cascade,
}
use OnDelete::{Cascade, Restrict};

const RULES: &[Rules] = &[
    Rules { entity: "certificates", unique: &[], cache_key: &[], foreign: &[] },
    Rules { entity: "consumers", unique: &["username", "custom_id"], cache_key: &[], foreign: &[] },
    Rules {
        entity: "services",
        unique: &["name"],
        cache_key: &[],
        foreign: &[("client_certificate", "certificates", Restrict)],
    },
    // Kong deletes SNIs with their certificate.
    Rules { entity: "snis", unique: &["name"], cache_key: &[], foreign: &[("certificate", "certificates", Cascade)] },
    Rules { entity: "routes", unique: &["name"], cache_key: &[], foreign: &[("service", "services", Restrict)] },
    Rules {
        entity: "keyauth_credentials",
        unique: &["key"],
        cache_key: &[],
        foreign: &[("consumer", "consumers", Cascade)],
    },
    Rules {
        entity: "plugins",
        unique: &["instance_name"],
        cache_key: &["name", "route", "service", "consumer"],
        foreign: &[("route", "routes", Cascade), ("service", "services", Cascade), ("consumer", "consumers", Cascade)],
    },
];

/// One call inside a batch.
#[derive(Debug, Clone)]
enum Call {
    Insert(Shape),
    Replace(Shape),
    Delete(usize, u8),
}

/// What a record is made from: small numbers, so that values collide often.
#[derive(Debug, Clone)]
struct Shape {
    entity: usize,
    id: u8,
    values: [u8; 2],
    parents: [u8; 3],
    ttl: Option<u8>,
}

/// Calls made together, and whether the batch then fails on purpose; the clock moves before it.
#[derive(Debug, Clone)]
struct Step {
    calls: Vec<Call>,
    fails: bool,
    replaces_all: bool,
    seconds: u8,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let ttl = prop_oneof![3 => Just(None), 1 => (0_u8..4).prop_map(Some)];
    (0..RULES.len(), 0_u8..5, [0_u8..4, 0_u8..4], [0_u8..7, 0_u8..7, 0_u8..7], ttl)
        .prop_map(|(entity, id, values, parents, ttl)| Shape { entity, id, values, parents, ttl })
}

fn steps() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        5 => shapes().prop_map(Call::Insert),
        2 => shapes().prop_map(Call::Replace),
        2 => (0..RULES.len(), 0_u8..5).prop_map(|(entity, id)| Call::Delete(entity, id)),
    ];
    let calls = prop::collection::vec(call, 1..8);
    (calls, prop::bool::weighted(0.1), prop::bool::weighted(0.05), 0_u8..3)
        .prop_map(|(calls, fails, replaces_all, seconds)| Step { calls, fails, replaces_all, seconds })
}

fn id(number: u8) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// A record of this shape. Values and parents at the end of their range stand for null.
fn record(shape: &Shape, now: u64) -> Record {
    let rules = &RULES[shape.entity];
    let mut record = Record::new();
    record.insert("id".to_owned(), id(shape.id).into());
    for (field, value) in rules.unique.iter().zip(shape.values) {
        record.insert((*field).to_owned(), if value == 3 { Value::Null } else { format!("value {value}").into() });
    }
    for ((field, ..), parent) in rules.foreign.iter().zip(shape.parents) {
        record.insert((*field).to_owned(), if parent > 5 { Value::Null } else { json!({"id": id(parent)}) });
    }
    if rules.entity == "plugins" {
        record.insert("name".to_owned(), ["cors", "jwt"][usize::from(shape.values[1] % 2)].into());
    }
    if rules.entity == "keyauth_credentials" {
        record.insert("ttl".to_owned(), shape.ttl.map_or(Value::Null, |ttl| (now + u64::from(ttl)).into()));
    }
    record.insert("tags".to_owned(), json!([format!("tag {}", shape.values[0])]));
    record
}

type Content = BTreeMap<(usize, String), Record>;

/// How a call ends: the kind of refusal, or what came of it.
#[derive(Debug, PartialEq)]
enum Outcome {
    Done(bool),
    Refused(std::mem::Discriminant<EntityError>),
}

fn outcome(result: Result<bool, EntityError>) -> Outcome {
    match result {
        Ok(done) => Outcome::Done(done),
        Err(error) => Outcome::Refused(std::mem::discriminant(&error)),
    }
}

fn refused(error: EntityError) -> Outcome {
    outcome(Err(error))
}

/// The model forgets expired rows whenever the clock has moved.
fn forget_expired(content: &mut Content, now: u64) {
    content.retain(|_, record| record.get("ttl").and_then(Value::as_u64).is_none_or(|ttl| now < ttl));
}

fn model_put(content: &mut Content, entity: usize, record: &Record, insert: bool) -> Outcome {
    let rules = &RULES[entity];
    let own = (entity, record["id"].as_str().unwrap().to_owned());
    let none = Record::new();
    match (insert, content.contains_key(&own)) {
        (true, true) => return refused(EntityError::PrimaryKeyViolation { key: none }),
        (false, false) => return refused(EntityError::NotFound { key: none, primary: true }),
        _ => {}
    }
    let others = content.iter().filter(|(place, _)| place.0 == entity && **place != own).map(|(_, other)| other);
    for other in others {
        let collides = rules.unique.iter().any(|field| !record[*field].is_null() && record[*field] == other[*field]);
        let same = !rules.cache_key.is_empty() && rules.cache_key.iter().all(|field| record[*field] == other[*field]);
        if collides || same {
            return refused(EntityError::UniqueViolation { fields: none });
        }
    }
    for (field, parent, _) in rules.foreign {
        let Some(id) = record[*field].get("id").and_then(Value::as_str) else { continue };
        let parent = RULES.iter().position(|rules| rules.entity == *parent).unwrap();
        if !content.contains_key(&(parent, id.to_owned())) {
            return refused(EntityError::ForeignKeyMissing { field: String::new(), entity: String::new(), key: none });
        }
    }
    content.insert(own, record.clone());
    Outcome::Done(true)
}

fn model_delete(content: &mut Content, entity: usize, id: &str) -> Outcome {
    if !content.contains_key(&(entity, id.to_owned())) {
        return Outcome::Done(false);
    }
    let mut left = content.clone();
    let mut going = vec![(entity, id.to_owned())];
    while let Some((parent, id)) = going.pop() {
        left.remove(&(parent, id.clone()));
        let reference = json!({"id": id});
        for (place, record) in &left {
            for (field, referred, on_delete) in RULES[place.0].foreign {
                if *referred == RULES[parent].entity && record[*field] == reference {
                    if *on_delete == Restrict {
                        let (entity, by) = (String::new(), String::new());
                        return refused(EntityError::ForeignKeyRestrict { entity, by });
                    }
                    going.push(place.clone());
                }
            }
        }
    }
    *content = left;
    Outcome::Done(true)
}

fn model_call(content: &mut Content, call: &Call, now: u64) -> Outcome {
    match call {
        Call::Insert(shape) => model_put(content, shape.entity, &record(shape, now), true),
        Call::Replace(shape) => model_put(content, shape.entity, &record(shape, now), false),
        Call::Delete(entity, number) => model_delete(content, *entity, &id(*number)),
    }
}

fn store_call(write: &mut dyn Write, call: &Call, now: u64) -> Outcome {
    outcome(match call {
        Call::Insert(shape) => write.insert(RULES[shape.entity].entity, record(shape, now)).map(|()| true),
        Call::Replace(shape) => write.replace(RULES[shape.entity].entity, record(shape, now)).map(|()| true),
        Call::Delete(entity, number) => write.delete(RULES[*entity].entity, &id(*number)),
    })
}

fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    let options = RegistryOptions {
        kind: NodeKind::ControlPlane,
        router_flavor: "traditional_compatible".to_owned(),
        plugins: None,
    };
    Arc::clone(REGISTRY.get_or_init(|| Arc::new(Registry::bundled(&options))))
}

fn content_of(store: &LmdbStore) -> Content {
    let read = store.read().unwrap();
    let everything = PageQuery { size: usize::MAX, ..PageQuery::default() };
    let mut content = Content::new();
    for (entity, rules) in RULES.iter().enumerate() {
        for row in read.page(rules.entity, &everything).unwrap().rows {
            content.insert((entity, row["id"].as_str().unwrap().to_owned()), row);
        }
    }
    content
}

/// Follows the change log; each delta must start from what is there.
fn follow(shadow: &mut Content, store: &LmdbStore, from: u64) {
    let Changes::Deltas(changes) = store.changes_since(from, usize::MAX).unwrap() else { panic!("log cut short") };
    for delta in changes.iter().flat_map(|change| change.deltas.iter()) {
        let entity = RULES.iter().position(|rules| rules.entity == delta.entity).unwrap();
        let place = (entity, delta.id.clone());
        assert_eq!(shadow.get(&place), delta.old.as_ref(), "delta of {} {}", delta.entity, delta.id);
        match &delta.new {
            Some(new) => shadow.insert(place, new.clone()),
            None => shadow.remove(&place),
        };
    }
}

fn run(steps: &[Step]) {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::default());
    let options = LmdbOptions {
        map_size: MapSize { initial: 64 * 1024, limit: 1 << 30 },
        clock: Arc::clone(&clock) as Arc<_>,
        ..LmdbOptions::default()
    };
    let store = LmdbStore::open(folder.path(), registry(), options).unwrap();
    let (mut model, mut shadow) = (Content::new(), Content::new());
    for step in steps {
        clock.advance(Duration::from_secs(step.seconds.into()));
        let now = clock.unix_seconds();
        forget_expired(&mut model, now);
        let mut after = if step.replaces_all { Content::new() } else { model.clone() };
        let expected: Vec<Outcome> = step
            .calls
            .iter()
            .map(|call| {
                let outcome = model_call(&mut after, call, now);
                // A row may be born expired.
                forget_expired(&mut after, now);
                outcome
            })
            .collect();
        let before = store.version();
        let mut outcomes = Vec::new();
        let mut work = |write: &mut dyn Write| {
            outcomes = step.calls.iter().map(|call| store_call(write, call, now)).collect();
            if step.fails { Err(EntityError::Bare { status: 400, message: "on purpose".to_owned() }) } else { Ok(()) }
        };
        let done = match step.replaces_all {
            true => store.replace_all(&Origin::default(), &mut work),
            false => store.write(&Origin::default(), &mut work),
        };
        assert_eq!(outcomes, expected);
        assert_eq!(done.is_err(), step.fails);
        if !step.fails {
            model = after;
        }
        assert_eq!(content_of(&store), model);
        assert!(store.version() <= before + 1);
        follow(&mut shadow, &store, before);
        // The log leads to the same content, expired rows aside.
        let mut unexpired = shadow.clone();
        forget_expired(&mut unexpired, now);
        assert_eq!(unexpired, model);
    }
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
    store.purge_expired(usize::MAX).unwrap();
    assert_eq!(store.verify().unwrap(), Vec::<String>::new());
    assert_eq!(content_of(&store), model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_batches_end_as_in_the_model(steps in prop::collection::vec(steps(), 1..25)) {
        run(&steps);
    }
}
