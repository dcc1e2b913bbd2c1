//! Targets: lists newest first, the health of an upstream, marking targets.

use crate::answer::{Answer, bare, not_found};
use crate::backend::MarkRefusal;
use crate::context::Context;
use crate::{list, lookup};
use gwctl_entities::{EntityError, Map, PageQuery, Read, Record, Value};
use std::cmp::Ordering;
use std::collections::HashSet;

/// The current targets of an upstream, newest first; an older row with the address of a newer one is left out.
fn current(read: &dyn Read, upstream_id: &str) -> Result<Vec<Record>, EntityError> {
    let mut rows = Vec::new();
    let mut query = PageQuery {
        size: list::MAX_SIZE,
        parent: Some(("upstream".to_owned(), upstream_id.to_owned())),
        ..PageQuery::default()
    };
    loop {
        let page = read.page("targets", &query)?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.from = Some(next),
            None => break,
        }
    }
    rows.sort_by(newest_first);
    let mut seen = HashSet::new();
    rows.retain(|row| row.get("target").and_then(Value::as_str).is_none_or(|target| seen.insert(target.to_owned())));
    Ok(rows)
}

fn newest_first(one: &Record, other: &Record) -> Ordering {
    let created = |row: &Record| row.get("created_at").and_then(Value::as_f64).unwrap_or_default();
    created(other).total_cmp(&created(one)).then_with(|| lookup::id_of(one).cmp(lookup::id_of(other)))
}

/// One page of current targets, each row finished by `finish`. Tokens are decimal positions.
pub(crate) fn listing(
    context: &Context<'_>,
    read: &dyn Read,
    upstream_id: &str,
    size: usize,
    mut finish: impl FnMut(&mut Record),
) -> Result<Map<String, Value>, EntityError> {
    let position = match context.request.query.text("offset").filter(|offset| !offset.is_empty()) {
        None => 0,
        Some(offset) => offset
            .parse::<usize>()
            .map_err(|_| EntityError::InvalidOffset { offset: offset.to_owned(), reason: "bad position".to_owned() })?,
    };
    let rows = current(read, upstream_id)?;
    let end = position.saturating_add(size);
    let page = rows.iter().skip(position).take(size).map(|row| {
        let mut row = context.present("targets", row);
        finish(&mut row);
        row
    });
    let next = (rows.len() > end).then(|| (format!("{}?offset={end}", context.request.raw_path), end.to_string()));
    Ok(list::page(page.collect(), next))
}

/// `GET /upstreams/{}/targets/all`: every row by id.
pub(crate) fn all(context: &Context<'_>, upstream: &str) -> Result<Answer, EntityError> {
    let read = context.read()?;
    let upstream = lookup::parent(context, read.as_ref(), "upstreams", upstream)?;
    let parent = Some(("upstream".to_owned(), lookup::id_of(&upstream).to_owned()));
    let path = &context.request.raw_path;
    list::listing(context, read.as_ref(), "targets", parent, None, |offset| format!("{path}?offset={offset}"))
}

/// `GET /upstreams/{}/health`.
pub(crate) fn health(context: &Context<'_>, upstream: &str) -> Result<Answer, EntityError> {
    let read = context.read()?;
    let upstream = lookup::parent(context, read.as_ref(), "upstreams", upstream)?;
    let upstream_id = lookup::id_of(&upstream);
    let node_id = Value::from(context.node.id.as_str());
    let of_balancer = context.request.query.text("balancer_health").is_some_and(|value| value == "1");
    if of_balancer {
        let mut answer = Map::from_iter([("node_id".to_owned(), node_id), ("next".to_owned(), Value::Null)]);
        if let Some(health) = context.backend.balancer_health(upstream_id) {
            answer.insert("data".to_owned(), health);
        }
        return Ok(Answer::ok_page(answer));
    }
    let health = context.backend.upstream_health(upstream_id).unwrap_or_default();
    let size = list::size(&context.request.query)?;
    let mut page = listing(context, read.as_ref(), upstream_id, size, |row| {
        if let Some(Value::Object(more)) = health.get(lookup::id_of(row)) {
            row.extend(more.clone());
        }
    })?;
    page.insert("node_id".to_owned(), node_id);
    Ok(Answer::ok_page(page))
}

/// `PUT /upstreams/{}/targets/{}[/{address}]/healthy` and `/unhealthy`.
pub(crate) fn mark(
    context: &Context<'_>,
    upstream: &str,
    target: &str,
    address: Option<&str>,
    healthy: bool,
) -> Result<Answer, EntityError> {
    let read = context.read()?;
    let upstream = lookup::parent(context, read.as_ref(), "upstreams", upstream)?;
    let upstream_id = lookup::id_of(&upstream);
    let schema = context.schema("targets")?;
    let (_, found) = lookup::child(context, read.as_ref(), schema, ("upstream", upstream_id), target)?;
    let (row, _) = found.filter(|(_, own)| *own).ok_or_else(not_found)?;
    let name = upstream.get("name").and_then(Value::as_str).unwrap_or(upstream_id);
    match context.backend.set_target_health(upstream_id, lookup::id_of(&row), address, healthy) {
        Ok(()) => Ok(Answer::empty(204)),
        Err(MarkRefusal::NoBalancer) => Err(bare(400, format!("Upstream {name} has no balancer"))),
        Err(MarkRefusal::NoChecks) => Err(bare(400, format!("no healthchecker found for {name}"))),
    }
}
