//! What is looked at before the schema: the time to live, and a plugin's protocols.

use super::EntitySchema;
use crate::{EntityError, PageQuery, Read, Record};
use serde_json::{Map, Value};

/// Longest time to live of a row, in seconds.
const TTL_LIMIT: i64 = 100_000_000;

/// Takes the duration out of the input: the absolute second of expiry, Null for none, None when not given.
pub(super) fn take_ttl(
    entity: &EntitySchema,
    input: &mut Record,
    now_seconds: u64,
) -> Result<Option<Value>, EntityError> {
    if !entity.ttl {
        return Ok(None);
    }
    let Some(given) = input.remove("ttl") else { return Ok(None) };
    // Forms give text.
    let seconds = given.as_i64().or_else(|| given.as_str()?.parse().ok());
    match seconds {
        Some(0) => Ok(Some(Value::Null)),
        Some(seconds) if (1..=TTL_LIMIT).contains(&seconds) => Ok(Some(Value::from(now_seconds + seconds as u64))),
        _ => {
            let text = format!("must be an integer between 0 and {TTL_LIMIT}");
            Err(EntityError::InvalidOptions { options: Map::from_iter([("ttl".to_owned(), Value::from(text))]) })
        }
    }
}

/// Protocols a plugin names must be among those of its route, or of one of its service's routes.
///
/// References are compared as sent: one by name is not looked up.
pub(super) fn plugin_protocols(
    entity: &EntitySchema,
    input: &Record,
    whole: &Record,
    read: &dyn Read,
) -> Result<(), EntityError> {
    let touched = ["protocols", "route", "service"].iter().any(|name| input.contains_key(*name));
    let Some(Value::Array(protocols)) = whole.get("protocols").filter(|_| entity.name == "plugins" && touched) else {
        return Ok(());
    };
    let shares = |record: &Record| {
        let theirs = record.get("protocols").and_then(Value::as_array);
        theirs.is_none_or(|theirs| theirs.iter().any(|protocol| protocols.contains(protocol)))
    };
    let refuse = |text: &str| {
        let fields = Map::from_iter([("protocols".to_owned(), Value::from(text))]);
        Err(EntityError::SchemaViolation { fields })
    };
    if whole.get("route").is_some_and(Value::is_object) {
        let Some(id) = entity.foreign_id(whole, "route") else { return Ok(()) };
        return match read.get("routes", id)? {
            Some(route) if !shares(&route) => refuse("must match the associated route's protocols"),
            _ => Ok(()),
        };
    }
    let Some(id) = entity.foreign_id(whole, "service") else { return Ok(()) };
    let parent = Some(("service".to_owned(), id.to_owned()));
    let mut query = PageQuery { size: 1000, parent, ..PageQuery::default() };
    let mut any = false;
    loop {
        let page = read.page("routes", &query)?;
        if page.rows.iter().any(&shares) {
            return Ok(());
        }
        any |= !page.rows.is_empty();
        match page.next {
            Some(next) => query.from = Some(next),
            None => break,
        }
    }
    if any {
        refuse("must match the protocols of at least one route pointing to this Plugin's service")
    } else {
        Ok(())
    }
}
