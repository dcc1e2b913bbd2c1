//! The virtual `snis` list of certificates: rows of their own, written and read with the certificate.

use crate::context::Context;
use crate::lookup::{self, check_name, reference};
use gwctl_entities::{EntityError, Map, PageQuery, Read, Record, Value, Write};
use std::collections::HashSet;

/// Rows of `snis` that belong to a certificate.
fn rows(read: &dyn Read, certificate_id: &str) -> Result<Vec<Record>, EntityError> {
    let mut rows = Vec::new();
    let mut query = PageQuery {
        size: 1000,
        parent: Some(("certificate".to_owned(), certificate_id.to_owned())),
        ..PageQuery::default()
    };
    loop {
        let page = read.page("snis", &query)?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.from = Some(next),
            None => return Ok(rows),
        }
    }
}

fn name_of(row: &Record) -> &str {
    row.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The certificate with its server names, ascending.
pub(crate) fn with_snis(read: &dyn Read, mut certificate: Record) -> Result<Record, EntityError> {
    let rows = rows(read, lookup::id_of(&certificate))?;
    let mut names: Vec<&str> = rows.iter().map(name_of).collect();
    names.sort_unstable();
    certificate.insert("snis".to_owned(), Value::from(names));
    Ok(certificate)
}

/// The server names a request gives, taken out of it; None when it says nothing about them.
///
/// Fails when a name is given twice, can be no server name, or belongs to another certificate than `own_id`.
pub(crate) fn take_names(
    context: &Context<'_>,
    read: &dyn Read,
    input: &mut Record,
    own_id: Option<&str>,
) -> Result<Option<Vec<String>>, EntityError> {
    let names: Vec<String> = match input.remove("snis") {
        None => return Ok(None),
        Some(Value::Null) => Vec::new(),
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(list)) => {
            let names: Option<Vec<String>> = list.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            names.ok_or_else(|| violation("expected a string"))?
        }
        Some(_) => return Err(violation("expected a set")),
    };
    let snis = context.schema("snis")?;
    let mut seen = HashSet::new();
    for name in &names {
        if !seen.insert(name) {
            return Err(violation(&format!("{name} is duplicated")));
        }
    }
    for name in &names {
        check_name(context, snis, "name", name)?;
        let owner = read.get_by("snis", "name", name)?;
        let owner = owner.as_ref().and_then(|row| snis.foreign_id(row, "certificate"));
        if let Some(owner) = owner.filter(|owner| Some(*owner) != own_id) {
            return Err(violation(&format!("{name} already associated with existing certificate '{owner}'")));
        }
    }
    Ok(Some(names))
}

fn violation(message: &str) -> EntityError {
    EntityError::SchemaViolation { fields: Map::from_iter([("snis".to_owned(), Value::from(message))]) }
}

/// Makes the rows of a certificate those of `names`.
pub(crate) fn set_names(
    context: &Context<'_>,
    write: &mut dyn Write,
    certificate_id: &str,
    names: &[String],
) -> Result<(), EntityError> {
    let stored = rows(write.as_read(), certificate_id)?;
    for row in stored.iter().filter(|row| !names.iter().any(|name| name == name_of(row))) {
        write.delete("snis", lookup::id_of(row))?;
    }
    for name in names.iter().filter(|name| !stored.iter().any(|row| name_of(row) == name.as_str())) {
        let mut input = Record::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
        input.insert("certificate".to_owned(), reference(certificate_id));
        let row = context.registry.process_insert("snis", input, &mut context.filler(), write.as_read())?;
        write.insert("snis", row)?;
    }
    Ok(())
}

/// Deletes the rows of a certificate that is about to be deleted.
pub(crate) fn delete_names(write: &mut dyn Write, certificate_id: &str) -> Result<(), EntityError> {
    for row in rows(write.as_read(), certificate_id)? {
        write.delete("snis", lookup::id_of(&row))?;
    }
    Ok(())
}
