//! The formats: each reads what a request says and writes what the next server is told.
//!
//! What cannot be read is as if it were not there: a header of a client must never cost its request.

pub(crate) mod aws;
pub(crate) mod b3;
pub(crate) mod datadog;
pub(crate) mod gcp;
pub(crate) mod jaeger;
pub(crate) mod ot;
pub(crate) mod w3c;

use gwctl_http1::names::{Name, ValidName};
use gwctl_http1::{Headers, Value};
use http::header::HeaderName;

/// The value of a header that may be there once; several say nothing.
fn one<'a>(headers: &'a Headers, name: Name<'static>) -> Option<&'a str> {
    let mut values = headers.get_all(name);
    let only = values.next()?.to_str()?;
    values.next().is_none().then_some(only)
}

/// Sets a header to a text of digits, letters and punctuation.
fn set<'n>(headers: &mut Headers, name: impl ValidName<'n>, text: impl AsRef<str>) {
    // The texts given are valid; a header that could not be written is better missing than the request lost.
    if let Some(value) = Value::new(text.as_ref().as_bytes()) {
        headers.insert(name, value);
    }
}

/// `1`, `true`, `0` or `false`.
fn decision(text: &str) -> Option<bool> {
    match text {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

/// The entries whose names begin with `prefix`.
fn baggage(headers: &Headers, prefix: &str) -> Vec<(String, String)> {
    let entry = |(name, value): (&str, Value<'_>)| {
        let name = name.to_ascii_lowercase();
        let name = name.strip_prefix(prefix).filter(|name| !name.is_empty())?;
        Some((name.to_owned(), value.to_str()?.to_owned()))
    };
    headers.iter().filter_map(entry).collect()
}

fn set_baggage(headers: &mut Headers, prefix: &str, outgoing: &crate::Outgoing<'_>) {
    for (name, value) in outgoing.incoming.iter().flat_map(|incoming| &incoming.baggage) {
        if let Ok(name) = HeaderName::try_from(format!("{prefix}{name}")) {
            set(headers, &name, value);
        }
    }
}
