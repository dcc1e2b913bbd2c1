//! A backend in memory for tests: records in ordered maps, a transaction is a copy that takes their place.

use crate::api::Api;
use crate::backend::{
    Backend, DeclarativeDocument, DeclarativeLoaded, DeclarativeOptions, NodeFacts, Origin, StatusFacts,
};
use crate::caller::Caller;
use crate::record_log::{ChangesAfter, FleetNews, RecordChange, VersionChanges, VersionHeading};
use crate::request::{Body, Request, dry_run, parse_query, segments};
use crate::serve::ServeOptions;
use crate::{Face, answer::Answer, answer::Content};
use gwctl_entities::{
    EntityError, NodeKind, Page, PageQuery, Read, Record, Registry, RegistryOptions, TagFilter, Value, Write,
};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{broadcast, watch};

type Tables = BTreeMap<String, BTreeMap<String, Record>>;

pub(crate) struct Fake {
    registry: Arc<Registry>,
    kind: NodeKind,
    tables: Mutex<Tables>,
    version: AtomicU64,
    drained: AtomicBool,
    counter: AtomicU64,
    log: Mutex<Vec<VersionChanges>>,
    /// The log reaches back to this version.
    pub(crate) oldest: AtomicU64,
    settings: Mutex<BTreeMap<String, String>>,
    newest: watch::Sender<u64>,
    pub(crate) fleet: broadcast::Sender<FleetNews>,
    pub(crate) before_status: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Fake {
    pub(crate) fn new(kind: NodeKind) -> Self {
        let options = RegistryOptions { kind, router_flavor: "traditional_compatible".to_owned(), plugins: None };
        Self {
            registry: Arc::new(Registry::bundled(&options)),
            kind,
            tables: Mutex::default(),
            version: AtomicU64::new(0),
            drained: AtomicBool::new(false),
            counter: AtomicU64::new(0),
            log: Mutex::default(),
            oldest: AtomicU64::new(0),
            settings: Mutex::default(),
            newest: watch::Sender::new(0),
            fleet: broadcast::Sender::new(16),
            before_status: Mutex::new(None),
        }
    }
}

struct View {
    registry: Arc<Registry>,
    tables: Tables,
    version: u64,
}

impl View {
    fn rows<'a>(&'a self, entity: &str) -> impl Iterator<Item = &'a Record> {
        self.tables.get(entity).into_iter().flat_map(BTreeMap::values)
    }

    fn key_of(&self, entity: &str, field: &str, row: &Record) -> Option<String> {
        if field == "cache_key" {
            return self.registry.entity(entity)?.cache_key_of(row);
        }
        row.get(field)?.as_str().map(str::to_owned)
    }

    fn check(&self, entity: &str, record: &Record) -> Result<(), EntityError> {
        let schema = self.registry.entity(entity).unwrap();
        let id = record["id"].as_str().unwrap();
        let others = || self.rows(entity).filter(|row| row["id"] != record["id"]);
        for unique in &schema.unique_fields {
            let value = &record[&unique.field];
            if !value.is_null() && others().any(|row| row.get(&unique.field) == Some(value)) {
                return Err(EntityError::UniqueViolation {
                    fields: Record::from_iter([(unique.field.clone(), value.clone())]),
                });
            }
        }
        for foreign in &schema.foreign_keys {
            if let Some(target) = schema.foreign_id(record, &foreign.field)
                && self.get(&foreign.references, target)?.is_none()
            {
                let key = Record::from_iter([("id".to_owned(), Value::from(target))]);
                let (field, entity) = (foreign.field.clone(), foreign.references.clone());
                return Err(EntityError::ForeignKeyMissing { field, entity, key });
            }
        }
        assert!(!id.is_empty());
        Ok(())
    }
}

impl Read for View {
    fn version(&self) -> u64 {
        self.version
    }

    fn get(&self, entity: &str, id: &str) -> Result<Option<Record>, EntityError> {
        Ok(self.tables.get(entity).and_then(|rows| rows.get(id)).cloned())
    }

    fn get_by(&self, entity: &str, field: &str, value: &str) -> Result<Option<Record>, EntityError> {
        Ok(self.rows(entity).find(|row| self.key_of(entity, field, row).as_deref() == Some(value)).cloned())
    }

    fn page(&self, entity: &str, query: &PageQuery) -> Result<Page, EntityError> {
        let tagged = |row: &Record, tag: &String| {
            row.get("tags").and_then(Value::as_array).is_some_and(|tags| tags.iter().any(|own| own == tag.as_str()))
        };
        let wanted = |row: &&Record| {
            query.from.as_ref().is_none_or(|from| row["id"].as_str().unwrap() >= from.as_str())
                && query.parent.as_ref().is_none_or(|(field, id)| row[field]["id"] == id.as_str())
                && match &query.tags {
                    None => true,
                    Some(TagFilter::All(tags)) => tags.iter().all(|tag| tagged(row, tag)),
                    Some(TagFilter::Any(tags)) => tags.iter().any(|tag| tagged(row, tag)),
                }
        };
        let mut rows: Vec<Record> = self.rows(entity).filter(wanted).take(query.size + 1).cloned().collect();
        let next = (rows.len() > query.size).then(|| rows[query.size]["id"].as_str().unwrap().to_owned());
        rows.truncate(query.size);
        Ok(Page { rows, next })
    }
}

impl Write for View {
    fn insert(&mut self, entity: &str, record: Record) -> Result<(), EntityError> {
        let id = record["id"].as_str().unwrap().to_owned();
        if self.get(entity, &id)?.is_some() {
            let key = Record::from_iter([("id".to_owned(), Value::from(id))]);
            return Err(EntityError::PrimaryKeyViolation { key });
        }
        self.check(entity, &record)?;
        self.tables.entry(entity.to_owned()).or_default().insert(id, record);
        Ok(())
    }

    fn replace(&mut self, entity: &str, record: Record) -> Result<(), EntityError> {
        self.check(entity, &record)?;
        let id = record["id"].as_str().unwrap().to_owned();
        self.tables.entry(entity.to_owned()).or_default().insert(id, record);
        Ok(())
    }

    fn delete(&mut self, entity: &str, id: &str) -> Result<bool, EntityError> {
        Ok(self.tables.get_mut(entity).is_some_and(|rows| rows.remove(id).is_some()))
    }

    fn as_read(&self) -> &dyn Read {
        self
    }
}

impl Backend for Fake {
    fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.registry)
    }

    fn node(&self) -> NodeFacts {
        NodeFacts {
            id: "95d1df3d-b1da-427f-b5a9-13d97e3ae6ff".to_owned(),
            hostname: "host".to_owned(),
            version: "3.9.1".to_owned(),
            kind: self.kind,
            configuration: crate::ShownSettings::new(json!({"database": "lmdb"})),
            process_id: 1,
            worker_ids: vec![2],
            admin_gui_origins: Vec::new(),
            server_header: true,
            latency_header: true,
        }
    }

    fn read(&self) -> Result<Box<dyn Read + '_>, EntityError> {
        let tables = self.tables.lock().unwrap().clone();
        let version = self.version.load(Ordering::SeqCst);
        Ok(Box::new(View { registry: self.registry(), tables, version }))
    }

    fn write(
        &self,
        origin: &Origin,
        work: &mut dyn FnMut(&mut dyn Write) -> Result<(), EntityError>,
    ) -> Result<u64, EntityError> {
        let mut tables = self.tables.lock().unwrap();
        let version = self.version.load(Ordering::SeqCst);
        // Every write is run twice: the API must bear that, since a store may ask for it.
        for _ in 0..2 {
            let mut view = View { registry: self.registry(), tables: tables.clone(), version };
            work(&mut view)?;
            if version == self.version.load(Ordering::SeqCst) {
                self.version.store(version + 1, Ordering::SeqCst);
                continue;
            }
            let changes = differences(&tables, &view.tables);
            let heading = VersionHeading {
                version: version + 1,
                time_millis: self.now_millis(),
                who: origin.who.clone(),
                from: origin.from.clone(),
                changes: changes.len(),
            };
            self.log.lock().unwrap().push(VersionChanges { heading, changes });
            *tables = view.tables;
        }
        self.newest.send_replace(version + 1);
        Ok(version + 1)
    }

    fn now_millis(&self) -> u64 {
        1_800_000_000_000
    }

    fn new_uuid(&self) -> String {
        let count = self.counter.fetch_add(1, Ordering::SeqCst);
        format!("{:08x}-0000-4000-8000-{count:012x}", count.wrapping_mul(2_654_435_761) as u32)
    }

    fn new_token(&self) -> String {
        let count = self.counter.fetch_add(1, Ordering::SeqCst);
        format!("abcdefghijklmnopqrst{count:012}")
    }

    fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<VersionHeading>, EntityError> {
        let log = self.log.lock().unwrap();
        let headings = log.iter().rev().map(|version| version.heading.clone());
        Ok(headings.filter(|heading| before.is_none_or(|before| heading.version < before)).take(limit).collect())
    }

    fn changes_after(&self, version: u64, limit: usize) -> Result<ChangesAfter, EntityError> {
        if version > self.version.load(Ordering::SeqCst) {
            return Ok(ChangesAfter::Forgotten { oldest: 0 });
        }
        let oldest = self.oldest.load(Ordering::SeqCst);
        if version < oldest {
            return Ok(ChangesAfter::Forgotten { oldest });
        }
        let log = self.log.lock().unwrap();
        let found = log.iter().filter(|found| found.heading.version > version).take(limit);
        Ok(ChangesAfter::Versions(found.cloned().collect()))
    }

    fn versions(&self) -> Option<watch::Receiver<u64>> {
        Some(self.newest.subscribe())
    }

    fn fleet_news(&self) -> Option<broadcast::Receiver<FleetNews>> {
        Some(self.fleet.subscribe())
    }

    fn setting(&self, key: &str) -> Result<Option<String>, EntityError> {
        Ok(self.settings.lock().unwrap().get(key).cloned())
    }

    fn set_setting(&self, key: &str, value: &str) -> Result<(), EntityError> {
        self.settings.lock().unwrap().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn status(&self) -> StatusFacts {
        if let Some(wait) = self.before_status.lock().unwrap().as_mut() {
            wait();
        }
        StatusFacts { database_reachable: Some(true), worker_heaps: vec![(2, 1 << 20)], ..StatusFacts::default() }
    }

    fn readiness(&self) -> Result<(), String> {
        if self.drained.load(Ordering::SeqCst) { Err("draining".to_owned()) } else { Ok(()) }
    }

    fn drain(&self) {
        self.drained.store(true, Ordering::SeqCst);
    }

    fn load_declarative(
        &self,
        document: DeclarativeDocument,
        options: DeclarativeOptions,
    ) -> Result<DeclarativeLoaded, EntityError> {
        if options.check_hash {
            return Ok(DeclarativeLoaded::Unchanged);
        }
        Ok(DeclarativeLoaded::Applied(json!({"read": format!("{document:?}")})))
    }

    fn export_declarative(&self) -> Result<String, EntityError> {
        Ok("_format_version: '3.0'\n".to_owned())
    }
}

fn differences(old: &Tables, new: &Tables) -> Vec<RecordChange> {
    let places = |tables: &Tables| -> Vec<(String, String)> {
        let rows = tables.iter().flat_map(|(entity, rows)| rows.keys().map(|id| (entity.clone(), id.clone())));
        rows.collect()
    };
    let all: BTreeSet<(String, String)> = places(old).into_iter().chain(places(new)).collect();
    let at = |tables: &Tables, entity: &str, id: &str| tables.get(entity).and_then(|rows| rows.get(id)).cloned();
    let changes = all.into_iter().map(|(entity, id)| {
        let (old, new) = (at(old, &entity, &id), at(new, &entity, &id));
        RecordChange { entity, id, old, new }
    });
    changes.filter(|change| change.old != change.new).collect()
}

/// A client without sockets.
pub(crate) struct Client {
    pub(crate) api: Api,
    pub(crate) if_version: Option<u64>,
    pub(crate) caller: Caller,
}

impl Client {
    pub(crate) fn of(kind: NodeKind) -> Self {
        let api = Api::new(Face::Admin, Arc::new(Fake::new(kind)), &ServeOptions::default());
        Self { api, if_version: None, caller: Caller::Open }
    }

    pub(crate) fn send(&self, method: &str, target: &str, body: Option<Value>) -> (u16, Value) {
        read(self.answer(method, target, body))
    }

    /// POST of a body as it is.
    pub(crate) fn raw(&self, target: &str, body: &'static [u8]) -> (u16, Value) {
        read(self.answer_to("POST", target, Body::Raw(body.into())))
    }

    pub(crate) fn answer(&self, method: &str, target: &str, body: Option<Value>) -> Answer {
        let body = match body {
            None => Body::Empty,
            Some(body) if target.starts_with("/gwctl/changes") => Body::Raw(body.to_string().into()),
            Some(body) => Body::Json(body.as_object().unwrap().clone()),
        };
        self.answer_to(method, target, body)
    }

    fn answer_to(&self, method: &str, target: &str, body: Body) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some(place) = segments(path).and_then(|segments| self.api.place(&segments)) else {
            return Answer::not_found();
        };
        let query = parse_query(query).unwrap();
        let request = Request {
            method: method.parse().unwrap(),
            raw_path: path.to_owned(),
            dry_run: dry_run(&query).unwrap(),
            query,
            body,
            origin: Origin::default(),
            caller: self.caller.clone(),
            host: None,
            if_versions: self.if_version.map(|version| vec![version]),
        };
        self.api.answer(&place, &request)
    }

    pub(crate) fn get(&self, target: &str) -> (u16, Value) {
        self.send("GET", target, None)
    }

    /// Sends and asks for a status, giving the body.
    pub(crate) fn expect(&self, status: u16, method: &str, target: &str, body: Value) -> Value {
        let (got, answer) = self.send(method, target, Some(body));
        assert_eq!(got, status, "{method} {target}: {answer}");
        answer
    }
}

/// Status and body; JSON written as text is read again.
fn read(answer: Answer) -> (u16, Value) {
    let body = match answer.content {
        Content::Json(value) => value,
        Content::Text { content_type, text } if content_type.starts_with("application/json") => {
            serde_json::from_str(&text).unwrap()
        }
        Content::Text { text, .. } => Value::from(text),
        Content::Empty => Value::Null,
    };
    (answer.status, body)
}
