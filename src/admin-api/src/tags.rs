//! `/tags` and `/tags/{}`: one row for each tag of each entity.

use crate::answer::{Answer, unexpected};
use crate::context::Context;
use crate::list;
use gwctl_entities::{EntityError, PageQuery, Read, Record, TagFilter, Value};
use http::Method;
use serde_json::json;

/// A tag of an entity; lists are in this order: id, then place among the entity's tags.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    id: String,
    /// 1-based.
    ordinal: u64,
    entity_name: String,
    tag: String,
}

/// Any method on `/tags`.
pub(crate) fn all(context: &Context<'_>) -> Result<Answer, EntityError> {
    if context.request.method == Method::POST {
        let fields = Record::from_iter([("tags".to_owned(), Value::from("does not support insert operation"))]);
        return Err(EntityError::SchemaViolation { fields });
    }
    listing(context, None)
}

/// `GET /tags/{}`.
pub(crate) fn one(context: &Context<'_>, tag: &str) -> Result<Answer, EntityError> {
    let forbidden = |letter: char| letter.is_control() || matches!(letter, ',' | '/' | char::REPLACEMENT_CHARACTER);
    if tag.contains(forbidden) {
        let reason =
            format!("invalid tag '{tag}': expected printable ascii (except `,` and `/`) or valid utf-8 sequences");
        return Err(EntityError::InvalidUnique { field: "tag".to_owned(), reason });
    }
    listing(context, Some(tag))
}

fn listing(context: &Context<'_>, tag: Option<&str>) -> Result<Answer, EntityError> {
    let size = list::size(&context.request.query)?;
    let start = start(context)?;
    let read = context.read()?;
    let mut rows = Vec::new();
    for schema in context.registry.entities().filter(|schema| schema.schema.field("tags").is_some()) {
        let name = if context.storeless() { &schema.name } else { &schema.table };
        collect(read.as_ref(), &schema.name, name, tag, &start, size, &mut rows)?;
    }
    rows.sort_unstable();
    let next = (rows.len() > size).then(|| {
        let Row { id, ordinal, .. } = &rows[size];
        let token = list::encode_token(&json!([id, ordinal]));
        let path = tag.map(|tag| format!("/tags/{}", list::escape(tag))).unwrap_or_else(|| "/tags".to_owned());
        (format!("{path}?offset={}", list::escape(&token)), token)
    });
    let shown = rows.into_iter().take(size).map(|row| {
        let shown = json!({"entity_name": row.entity_name, "entity_id": row.id, "tag": row.tag});
        shown.as_object().cloned().unwrap_or_default()
    });
    Ok(Answer::ok_page(list::page(shown.collect(), next)))
}

/// Id and ordinal of the first row wanted.
fn start(context: &Context<'_>) -> Result<(String, u64), EntityError> {
    let Some(offset) = context.request.query.text("offset").filter(|offset| !offset.is_empty()) else {
        return Ok((String::new(), 0));
    };
    let content = list::token_content(offset)?;
    match (content.get(0).and_then(Value::as_str), content.get(1).and_then(Value::as_u64)) {
        (Some(id), Some(ordinal)) => Ok((id.to_owned(), ordinal)),
        _ => Err(unexpected()),
    }
}

/// Adds rows of one entity: all that could be on the page, one more to tell whether another page follows.
fn collect(
    read: &dyn Read,
    entity: &str,
    shown_name: &str,
    tag: Option<&str>,
    (from, ordinal): &(String, u64),
    size: usize,
    rows: &mut Vec<Row>,
) -> Result<(), EntityError> {
    let mut query = PageQuery {
        size: list::MAX_SIZE,
        from: Some(from.clone()).filter(|from| !from.is_empty()),
        tags: tag.map(|tag| TagFilter::All(vec![tag.to_owned()])),
        ..PageQuery::default()
    };
    let before = rows.len();
    loop {
        let page = read.page(entity, &query)?;
        for record in &page.rows {
            let id = crate::lookup::id_of(record);
            let tags = record.get("tags").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let numbered = (1..).zip(tags.iter().filter_map(Value::as_str));
            let wanted = numbered
                .filter(|(number, text)| tag.is_none_or(|tag| tag == *text) && (id != from || number >= ordinal));
            rows.extend(wanted.map(|(ordinal, text)| Row {
                id: id.to_owned(),
                ordinal,
                entity_name: shown_name.to_owned(),
                tag: text.to_owned(),
            }));
        }
        match page.next {
            Some(next) if rows.len() - before <= size => query.from = Some(next),
            _ => return Ok(()),
        }
    }
}
