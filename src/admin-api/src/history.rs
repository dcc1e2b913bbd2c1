//! `/gwctl/history` and `/gwctl/versions`: what changed, by whom, and what the configuration was.

use crate::answer::{Answer, Content, bare};
use crate::context::Context;
use crate::list;
use crate::mask::masked;
use crate::record_log::{ChangesAfter, RecordChange, SummaryAfter, VersionChanges, VersionHeading, VersionSummary};
use gwctl_declarative::{Table, changed_secrets, export_text, name_of};
use gwctl_entities::{EntityError, PageQuery, Read, Record, Value};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Versions shown with their records at once; more would be a body too large to read.
const MAX_VERSIONS: usize = 100;

/// Records named for each version of the history.
const MAX_NAMED: usize = 100;
/// Changes of records on a page of versions; one version is told whole, whatever it holds.
const MAX_CHANGES: usize = 10_000;

/// `GET /gwctl/history`: headings, newest first.
pub(crate) fn history(context: &Context<'_>) -> Result<Answer, EntityError> {
    let size = list::size(&context.request.query)?;
    let before = number(context, "before")?;
    let newest = context.read()?.version();
    let mut rows = context.backend.history(before, size + 1)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let kept = number(context, "records")?.map(|named| format!("&records={named}")).unwrap_or_default();
    let next =
        rows.last().filter(|_| more).map(|last| format!("/gwctl/history?before={}&size={size}{kept}", last.version));
    let named = number(context, "records")?.map(|named| usize::try_from(named).unwrap_or(MAX_NAMED).min(MAX_NAMED));
    let mut data = Vec::with_capacity(rows.len());
    for row in &rows {
        data.push(match named {
            Some(named) => summed_up(context, row, named)?,
            None => heading(row),
        });
    }
    Ok(Answer::ok(json!({"version": newest, "data": data, "next": next})))
}

/// A heading with its counts and the first of its records; alone when the log forgot it meanwhile.
fn summed_up(context: &Context<'_>, row: &VersionHeading, named: usize) -> Result<Value, EntityError> {
    Ok(match context.backend.summary_after(row.version.saturating_sub(1), named)? {
        SummaryAfter::Version(found) if found.heading.version == row.version => shown(&found),
        _ => heading(row),
    })
}

fn heading(row: &VersionHeading) -> Value {
    json!({
        "version": row.version,
        "time_millis": row.time_millis,
        "who": row.who,
        "from": row.from,
        "changes": row.changes,
    })
}

fn number(context: &Context<'_>, name: &str) -> Result<Option<u64>, EntityError> {
    let number = context.request.query.text(name).map(str::parse).transpose();
    number.map_err(|_| bare(400, format!("{name} must be a version, a whole number")))
}

/// Which versions a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Versions {
    One(u64),
    Between(u64, u64),
}

impl Versions {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once("..") {
            None => text.parse().ok().map(Self::One),
            Some((from, to)) => Some(Self::Between(from.parse().ok()?, to.parse().ok()?)),
        }
    }
}

/// `GET /gwctl/versions/{v}` and `GET /gwctl/versions/{a}..{b}`.
pub(crate) fn versions(context: &Context<'_>, text: &str) -> Result<Answer, EntityError> {
    let wrong = || bare(400, format!("'{text}' names no version: expected a number, or two as in 4..7"));
    let secrets = secrets(context)?;
    match Versions::parse(text).ok_or_else(wrong)? {
        Versions::One(version) => as_of(context, version, secrets),
        Versions::Between(from, to) => between(context, from, to, secrets),
    }
}

/// Whether secrets are shown: only when asked for.
fn secrets(context: &Context<'_>) -> Result<bool, EntityError> {
    let asked = matches!(context.request.query.text("secrets"), Some("" | "1" | "true"));
    if asked && !context.request.caller.sees_secrets() {
        return Err(bare(403, "secrets are for tokens with the role write or operate"));
    }
    Ok(asked)
}

pub(crate) fn not_made(version: u64, newest: u64) -> EntityError {
    bare(404, format!("version {version} is not made yet, the newest is {newest}"))
}

fn forgotten(version: u64, oldest: u64) -> EntityError {
    bare(410, format!("version {version} is forgotten, the log reaches back to version {oldest}"))
}

/// What each version from `from` (not included) to `to` did, oldest first.
fn between(context: &Context<'_>, from: u64, to: u64, secrets: bool) -> Result<Answer, EntityError> {
    let newest = context.read()?.version();
    if from > to {
        return Err(bare(400, format!("the first version must not be the later one: try {to}..{from}")));
    }
    if to > newest {
        return Err(not_made(to, newest));
    }
    let size = list::size(&context.request.query)?.min(MAX_VERSIONS);
    let (mut found, mut changes, mut last) = (Vec::new(), 0, from);
    // One after the other: a single one may hold as much as a page should.
    while last < to && found.len() < size && changes < MAX_CHANGES {
        let Some(version) = after(context, last, 1)?.into_iter().next() else { break };
        (last, changes) = (version.heading.version, changes + version.changes.len());
        found.push(version);
    }
    let more = last < to;
    let kept = if secrets { "&secrets=1" } else { "" };
    let next = more.then(|| format!("/gwctl/versions/{last}..{to}?size={size}{kept}"));
    let data: Vec<Value> = found.iter().map(|version| with_changes(context, version, secrets)).collect();
    Ok(Answer::ok(json!({"from": from, "to": to, "data": data, "next": next})))
}

fn after(context: &Context<'_>, version: u64, limit: usize) -> Result<Vec<VersionChanges>, EntityError> {
    match context.backend.changes_after(version, limit)? {
        ChangesAfter::Versions(found) => Ok(found),
        ChangesAfter::Forgotten { oldest } => Err(forgotten(version, oldest)),
    }
}

fn with_changes(context: &Context<'_>, version: &VersionChanges, secrets: bool) -> Value {
    let mut shown = heading(&version.heading);
    shown["changes"] = version.changes.iter().map(|change| change_shown(context, change, secrets)).collect();
    shown
}

pub(crate) fn change_shown(context: &Context<'_>, change: &RecordChange, secrets: bool) -> Value {
    let side = |record: &Option<Record>| match record {
        Some(record) if secrets => Value::Object(record.clone()),
        Some(record) => Value::Object(masked(&context.registry, &change.entity, record)),
        None => Value::Null,
    };
    json!({
        "action": change.action(),
        "entity": change.entity,
        "id": change.id,
        "fields": changed_fields(change),
        "secrets_changed": secrets_changed(context, change),
        "old": side(&change.old),
        "new": side(&change.new),
    })
}

/// Names of the fields an update changed, so that a changed secret shows although both its values are masked.
fn changed_fields(change: &RecordChange) -> Vec<&str> {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(*value));
            changed.map(|(name, _)| name.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

/// Dotted paths of the secrets an update changed, at any depth.
fn secrets_changed(context: &Context<'_>, change: &RecordChange) -> Vec<String> {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => changed_secrets(&context.registry, &change.entity, old, new),
        _ => Vec::new(),
    }
}

/// By entity and id: the record as it was, None when it did not exist.
pub(crate) type Undone = BTreeMap<String, BTreeMap<String, Option<Record>>>;

/// The whole configuration as it was at a version.
fn as_of(context: &Context<'_>, version: u64, secrets: bool) -> Result<Answer, EntityError> {
    let query = &context.request.query;
    let only = query.text("entity");
    if let Some(entity) = only.filter(|entity| context.registry.entity(entity).is_none()) {
        return Err(bare(400, format!("no entity named '{entity}'")));
    }
    let declarative = match query.text("format") {
        None | Some("json") => false,
        Some("declarative") => true,
        Some(_) => return Err(bare(400, "format must be json or declarative")),
    };
    let read = context.read()?;
    if version > read.version() {
        return Err(not_made(version, read.version()));
    }
    let mut undone = undo(context, version, read.version())?;
    let mut document = Document::new(declarative, version);
    let entities = context.registry.entities().filter(|schema| schema.generate_admin_api);
    for schema in entities.filter(|schema| only.is_none_or(|only| only == schema.name)) {
        let changed = undone.remove(&schema.name).unwrap_or_default();
        document.begin(&schema.name);
        rows_as_of(read.as_ref(), &schema.name, changed, &mut |row| match secrets {
            true => document.row(row),
            false => document.row(masked(&context.registry, &schema.name, &row)),
        })?;
    }
    drop(read);
    context.version.set(Some(version));
    Ok(document.answer(context))
}

/// What the records changed since were at a version.
pub(crate) fn undo(context: &Context<'_>, version: u64, now: u64) -> Result<Undone, EntityError> {
    let mut undone = Undone::new();
    let mut seen = version;
    while seen < now {
        let found = after(context, seen, 1)?;
        let Some(next) = found.into_iter().next().filter(|next| next.heading.version <= now) else { break };
        seen = next.heading.version;
        for change in next.changes {
            // The first change after the version tells what was before it.
            undone.entry(change.entity).or_default().entry(change.id).or_insert(change.old);
        }
    }
    Ok(undone)
}

/// Gives each row as it was, ascending by id.
fn rows_as_of(
    read: &dyn Read,
    entity: &str,
    mut changed: BTreeMap<String, Option<Record>>,
    give: &mut dyn FnMut(Record),
) -> Result<(), EntityError> {
    let mut query = PageQuery { size: 1000, ..PageQuery::default() };
    loop {
        let page = read.page(entity, &query)?;
        for row in page.rows {
            let id = crate::lookup::id_of(&row).to_owned();
            while let Some(first) = changed.first_entry().filter(|first| *first.key() < id) {
                if let Some(gone) = first.remove() {
                    give(gone);
                }
            }
            match changed.remove(&id) {
                Some(before) => before.into_iter().for_each(&mut *give),
                None => give(row),
            }
        }
        match page.next {
            Some(next) => query.from = Some(next),
            None => break,
        }
    }
    changed.into_values().flatten().for_each(give);
    Ok(())
}

/// A configuration being written down.
enum Document {
    /// Text from the start: the values of a large configuration would need several times its size.
    Json {
        text: String,
        entity: String,
        rows: usize,
    },
    Declarative {
        tables: Vec<Table>,
    },
}

impl Document {
    fn new(declarative: bool, version: u64) -> Self {
        if declarative {
            return Self::Declarative { tables: Vec::new() };
        }
        Self::Json { text: format!(r#"{{"version":{version},"entities":{{"#), entity: String::new(), rows: 0 }
    }

    fn begin(&mut self, name: &str) {
        match self {
            Self::Declarative { tables } => tables.push(Table { entity: name.to_owned(), records: Vec::new() }),
            Self::Json { text, entity, rows } => {
                if *rows > 0 {
                    text.push_str("],");
                }
                name.clone_into(entity);
                *rows = 0;
            }
        }
    }

    fn row(&mut self, row: Record) {
        match self {
            Self::Declarative { tables } => {
                if let Some(table) = tables.last_mut() {
                    table.records.push(row);
                }
            }
            Self::Json { text, entity, rows } => {
                let mut row = Value::Object(row);
                crate::answer::tidy_numbers(&mut row);
                // Writing to a text cannot fail.
                let _ = match *rows {
                    0 => write!(text, "{}:[{row}", Value::from(entity.as_str())),
                    _ => write!(text, ",{row}"),
                };
                *rows += 1;
            }
        }
    }

    fn answer(self, context: &Context<'_>) -> Answer {
        let (content_type, text) = match self {
            Self::Declarative { tables } => ("application/yaml", export_text(&context.registry, &tables)),
            Self::Json { mut text, rows, .. } => {
                if rows > 0 {
                    text.push(']');
                } else if text.ends_with(',') {
                    text.pop();
                }
                text.push_str("}}");
                ("application/json; charset=utf-8", text)
            }
        };
        Answer { status: 200, content: Content::Text { content_type, text }, headers: Vec::new() }
    }
}

/// Heading, counts and names of a version's changes.
pub(crate) fn shown(version: &VersionSummary) -> Value {
    let mut shown = heading(&version.heading);
    let named = version.named.iter().map(|change| {
        let name = change.new.as_ref().or(change.old.as_ref()).and_then(name_of);
        json!({"action": change.action(), "entity": change.entity, "id": change.id, "name": name})
    });
    shown["records"] = named.collect::<Vec<_>>().into();
    shown["counts"] = json!(version.counts);
    shown
}

#[cfg(test)]
mod tests;
