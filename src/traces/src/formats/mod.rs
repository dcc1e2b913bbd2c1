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

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The value of a header that may be there once; several say nothing.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let only = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(only)
}

/// Sets a header to a text of digits, letters and punctuation.
fn set(headers: &mut HeaderMap, name: HeaderName, text: impl TryInto<HeaderValue>) {
    // The texts given are valid; a header that could not be written is better missing than the request lost.
    if let Ok(value) = text.try_into() {
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
fn baggage(headers: &HeaderMap, prefix: &str) -> Vec<(String, String)> {
    let entry = |(name, value): (&HeaderName, &HeaderValue)| {
        let name = name.as_str().strip_prefix(prefix).filter(|name| !name.is_empty())?;
        Some((name.to_owned(), value.to_str().ok()?.to_owned()))
    };
    headers.iter().filter_map(entry).collect()
}

fn set_baggage(headers: &mut HeaderMap, prefix: &str, outgoing: &crate::Outgoing<'_>) {
    for (name, value) in outgoing.incoming.iter().flat_map(|incoming| &incoming.baggage) {
        if let Ok(name) = HeaderName::try_from(format!("{prefix}{name}")) {
            set(headers, name, value.as_str());
        }
    }
}
