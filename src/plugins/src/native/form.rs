//! Named values of a request body.

use super::arguments::{self, Found};
use crate::{Body, Request};
use bytes::Bytes;
use gwctl_entities::{Map, Value};
use gwctl_http1::names::CONTENT_TYPE;

/// A request body with named values, by its content type.
pub(super) enum Form {
    /// Another type, malformed, or not in memory.
    Unreadable,
    /// `application/x-www-form-urlencoded`.
    Arguments(String),
    /// `application/json`, an object or an array.
    Json(Value),
    /// `multipart/form-data`.
    Parts { body: Bytes, parts: Vec<Part> },
}

/// One part of a multipart body, as places in it.
pub(super) struct Part {
    name: String,
    value: (usize, usize),
    /// From its delimiter to the next one.
    whole: (usize, usize),
}

impl Form {
    /// Reads the body as far as it is in memory.
    pub(super) fn read(request: &Request) -> Form {
        let Body::Buffered(body) = &request.body else { return Form::Unreadable };
        let Some(content_type) = request.header(CONTENT_TYPE) else { return Form::Unreadable };
        let media_type = content_type.split(';').next().unwrap_or_default().to_ascii_lowercase();
        // Kong looks at the beginning only, so `application/json-patch+json` counts as JSON.
        let form = if media_type.starts_with("application/x-www-form-urlencoded") {
            std::str::from_utf8(body).ok().map(|text| Form::Arguments(text.to_owned()))
        } else if media_type.starts_with("application/json") {
            serde_json::from_slice(body).ok().filter(|json: &Value| json.is_object() || json.is_array()).map(Form::Json)
        } else if media_type.starts_with("multipart/form-data") {
            boundary(content_type).map(|boundary| Form::Parts { body: body.clone(), parts: parts(body, boundary) })
        } else {
            None
        };
        form.unwrap_or(Form::Unreadable)
    }

    /// What the body holds under a name.
    pub(super) fn find(&self, name: &str) -> Found {
        match self {
            Self::Unreadable => Found::Absent,
            Self::Arguments(text) => arguments::find(text, name),
            Self::Json(json) => match json.get(name) {
                None => Found::Absent,
                Some(Value::String(text)) => Found::Text(Bytes::copy_from_slice(text.as_bytes())),
                Some(Value::Array(_) | Value::Object(_)) => Found::Many,
                Some(Value::Null | Value::Bool(_) | Value::Number(_)) => Found::Other,
            },
            Self::Parts { body, parts } => {
                let mut named = parts.iter().filter(|part| part.name == name);
                match (named.next(), named.next()) {
                    (None, _) => Found::Absent,
                    (Some(part), None) => Found::Text(body.slice(part.value.0..part.value.1)),
                    _ => Found::Many,
                }
            }
        }
    }

    /// The body without a name, the rest kept; None when there is nothing to take out.
    pub(super) fn without(self, name: &str) -> Option<Bytes> {
        match self {
            Self::Unreadable => None,
            Self::Arguments(text) => arguments::without(&text, name).map(Bytes::from),
            Self::Json(mut json) => {
                json.as_object_mut()?.remove(name)?;
                Some(json.to_string().into())
            }
            Self::Parts { body, parts } => {
                let mut left = Vec::with_capacity(body.len());
                let mut from = 0;
                for part in parts.iter().filter(|part| part.name == name) {
                    left.extend_from_slice(&body[from..part.whole.0]);
                    from = part.whole.1;
                }
                left.extend_from_slice(&body[from..]);
                (from > 0).then(|| left.into())
            }
        }
    }

    /// The body as JSON: an object of texts, or what was sent. None when it cannot be read.
    pub(super) fn to_value(&self) -> Option<Value> {
        match self {
            Self::Unreadable => None,
            Self::Arguments(text) => Some(arguments::to_value(text)),
            Self::Json(json) => Some(json.clone()),
            Self::Parts { body, parts } => {
                let mut object = Map::new();
                for part in parts {
                    let text = String::from_utf8_lossy(&body[part.value.0..part.value.1]);
                    arguments::add(&mut object, part.name.clone(), text.into());
                }
                Some(Value::Object(object))
            }
        }
    }
}

/// Longest boundary that counts, so that looking for it stays cheap. Source: RFC 2046, section 5.1.1.
const LONGEST_BOUNDARY: usize = 70;

fn boundary(content_type: &str) -> Option<&str> {
    let at = content_type.to_ascii_lowercase().find("boundary=")? + "boundary=".len();
    let rest = &content_type[at..];
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(';').next().map(str::trim),
    };
    value.filter(|value| (1..=LONGEST_BOUNDARY).contains(&value.len()))
}

fn position(body: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    body.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|at| from + at)
}

/// The delimiters that stand at the beginning of a line and are not the beginning of a longer text.
fn delimiters(body: &[u8], delimiter: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = position(body, from, delimiter) {
        from = at + delimiter.len();
        let whole =
            matches!(body.get(from), None | Some(b'\r' | b'\n' | b' ' | b'\t')) || body[from..].starts_with(b"--");
        if whole && (at == 0 || body[at - 1] == b'\n') {
            found.push(at);
        }
    }
    found
}

/// The parts that have a name. What follows the last delimiter is no part.
fn parts(body: &[u8], boundary: &str) -> Vec<Part> {
    let delimiter = format!("--{boundary}");
    let places = delimiters(body, delimiter.as_bytes());
    let between = places.windows(2).map(|pair| (pair[0], pair[1]));
    between.filter_map(|(begin, end)| part(body, begin, begin + delimiter.len(), end)).collect()
}

fn part(body: &[u8], begin: usize, head: usize, end: usize) -> Option<Part> {
    let inner = &body[..end];
    let (head_end, value) = match position(inner, head, b"\r\n\r\n") {
        Some(at) => (at, at + 4),
        None => position(inner, head, b"\n\n").map(|at| (at, at + 2))?,
    };
    let name = std::str::from_utf8(&body[head..head_end]).ok()?.lines().find_map(part_name)?;
    let text = &body[value..end];
    let text = text.strip_suffix(b"\r\n").or_else(|| text.strip_suffix(b"\n")).unwrap_or(text);
    Some(Part { name, value: (value, value + text.len()), whole: (begin, end) })
}

/// Name in a line `Content-Disposition: form-data; name="x"`.
fn part_name(line: &str) -> Option<String> {
    let (header, value) = line.split_once(':')?;
    if !header.trim().eq_ignore_ascii_case("content-disposition") {
        return None;
    }
    let parameter = value.split(';').map(str::trim).find_map(|parameter| parameter.strip_prefix("name="))?;
    Some(parameter.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::fixtures;
    use proptest::prelude::*;

    fn request(content_type: &str, body: &str) -> Request {
        let mut context = fixtures::with(fixtures::context("POST", "/"), "content-type", content_type);
        context.request.body = Body::Buffered(Bytes::copy_from_slice(body.as_bytes()));
        context.request
    }

    /// Bodies that are nearly well-formed.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("--x"),
            Just("--x--"),
            Just("\r\n"),
            Just("\n"),
            Just("Content-Disposition: form-data; name=\"key\""),
            Just("content-disposition:form-data;name=key"),
            Just("key=1"),
            Just("&"),
            Just("{\"key\":"),
            Just("\"a\""),
            Just("}"),
            "[a-z%+=é]{0,4}".prop_map(|text| &*text.leak()),
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn what_was_taken_out_is_not_found_any_more(body in pieces()) {
            for content_type in ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "application/json"] {
                let form = Form::read(&request(content_type, &body));
                let found = form.find("key") != Found::Absent;
                let left = form.without("key");
                prop_assert_eq!(found, left.is_some());
                if let Some(left) = left {
                    let left = String::from_utf8_lossy(&left).into_owned();
                    prop_assert_eq!(Form::read(&request(content_type, &left)).find("key"), Found::Absent);
                }
            }
        }
    }

    #[test]
    fn a_boundary_without_measure_is_none() {
        let boundary = "x".repeat(LONGEST_BOUNDARY + 1);
        let body = format!("--{boundary}\r\ncontent-disposition: form-data; name=key\r\n\r\n1\r\n--{boundary}--");
        let read = |boundary: &str| Form::read(&request(&format!("multipart/form-data; boundary={boundary}"), &body));
        assert_eq!(read(&boundary).find("key"), Found::Absent);
        assert_eq!(read(&boundary[1..]).find("key"), Found::Absent, "the beginning of another boundary is none");
    }
}
