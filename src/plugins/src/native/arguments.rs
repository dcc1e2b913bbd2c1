//! Arguments of a query or of a form body.

use crate::Context;
use bytes::Bytes;
use gwctl_entities::{Map, Value};
use percent_encoding::percent_decode;
use std::borrow::Cow;

/// Arguments beyond this many are not read. Source: Kong 3.9.1, `lua_max_uri_args`, `lua_max_post_args`.
const MOST: usize = 100;

/// What was found under a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Absent,
    /// Something that is not text: an argument without `=`, a number of a JSON body.
    Other,
    /// One text.
    Text(Bytes),
    /// More than one.
    Many,
}

/// One argument; without a value when it has no `=`.
pub(super) type Argument<'a> = (Cow<'a, [u8]>, Option<Cow<'a, [u8]>>);

/// The arguments in order, decoded. Those without a name are left out.
pub(super) fn decode(encoded: &str) -> impl Iterator<Item = Argument<'_>> {
    let parts = encoded.split('&').map(|part| match part.split_once('=') {
        Some((name, value)) => (unescape(name), Some(unescape(value))),
        None => (unescape(part), None),
    });
    parts.filter(|(name, _)| !name.is_empty()).take(MOST)
}

fn unescape(text: &str) -> Cow<'_, [u8]> {
    if text.contains('+') {
        return Cow::Owned(percent_decode(text.replace('+', " ").as_bytes()).collect());
    }
    percent_decode(text.as_bytes()).into()
}

/// What the arguments hold under a name.
pub(super) fn find(encoded: &str, name: &str) -> Found {
    let mut found = Found::Absent;
    for (_, value) in decode(encoded).filter(|(argument, _)| **argument == *name.as_bytes()) {
        found = match (found, value) {
            (Found::Absent, Some(value)) => Found::Text(Bytes::from(value.into_owned())),
            (Found::Absent, None) => Found::Other,
            _ => return Found::Many,
        };
    }
    found
}

/// The arguments as JSON: text, `true` without `=`, an array when there are several.
pub(super) fn to_value(encoded: &str) -> Value {
    let mut object = Map::new();
    for (name, value) in decode(encoded) {
        let value = value.map_or(Value::Bool(true), |value| String::from_utf8_lossy(&value).into());
        add(&mut object, String::from_utf8_lossy(&name).into_owned(), value);
    }
    Value::Object(object)
}

/// Adds a value under a name; a second one makes an array of both.
pub(super) fn add(object: &mut Map<String, Value>, name: String, value: Value) {
    match object.get_mut(&name) {
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
        None => _ = object.insert(name, value),
    }
}

/// The query as it would go to the upstream now.
pub(super) fn query(context: &Context) -> &str {
    let changed = context.upstream.as_ref().and_then(|upstream| upstream.query.as_deref());
    changed.or_else(|| context.request.uri.query()).unwrap_or_default()
}

/// Takes an argument out of the query. The others are written anew in the one form of the URL standard
/// (`+` for a space, `=` after every name), also when there was nothing to take out, as Kong does.
pub(super) fn clear_query_argument(context: &mut Context, name: &str) {
    let sent = query(context);
    if sent.is_empty() {
        return;
    }
    let mut left = String::with_capacity(sent.len());
    for part in sent.split('&').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let key = unescape(key);
        if *key != *name.as_bytes() {
            if !left.is_empty() {
                left.push('&');
            }
            escape(&key, &mut left);
            left.push('=');
            escape(&unescape(value), &mut left);
        }
    }
    if let Some(upstream) = &mut context.upstream {
        upstream.query = Some(left);
    }
}

fn escape(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b' ' => out.push('+'),
            b'*' | b'-' | b'.' | b'_' => out.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => out.push(char::from(*byte)),
            byte => out.push_str(percent_encoding::percent_encode_byte(*byte)),
        }
    }
}

/// Takes an argument out of a form and leaves the others as they are; None when it is not there.
pub(super) fn without(encoded: &str, name: &str) -> Option<String> {
    let is_it = |part: &&str| *unescape(part.split_once('=').map_or(*part, |(key, _)| key)) == *name.as_bytes();
    encoded.split('&').any(|part| is_it(&part)).then(|| {
        let left: Vec<_> = encoded.split('&').filter(|part| !is_it(part)).collect();
        left.join("&")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::fixtures;

    #[test]
    fn arguments_are_decoded_and_nameless_ones_left_out() {
        let all: Vec<_> = decode("a=1+2&b%20c=%2B&=x&flag&&d=").collect();
        let text = |bytes: &Cow<'_, [u8]>| String::from_utf8_lossy(bytes).into_owned();
        let all: Vec<_> = all.iter().map(|(name, value)| (text(name), value.as_ref().map(text))).collect();
        let expected = [("a", Some("1 2")), ("b c", Some("+")), ("flag", None), ("d", Some(""))];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned))));
    }

    #[test]
    fn an_argument_is_absent_a_flag_text_or_several() {
        assert_eq!(find("b=1", "a"), Found::Absent);
        assert_eq!(find("a&b=1", "a"), Found::Other);
        assert_eq!(find("a=%41", "a"), Found::Text("A".into()));
        assert_eq!(find("a=1&a=2", "a"), Found::Many);
        assert_eq!(find("a&a=2", "a"), Found::Many);
    }

    #[test]
    fn the_hundred_and_first_argument_is_not_read() {
        let many = "x=1&".repeat(MOST);
        assert_eq!(find(&format!("{many}a=1"), "a"), Found::Absent);
    }

    #[test]
    fn what_is_left_of_a_query_is_written_in_one_form() {
        let mut context = fixtures::context("GET", "/?q=a%20b&key=1&flag&t=~*&key=2");
        clear_query_argument(&mut context, "key");
        assert_eq!(query(&context), "q=a+b&flag=&t=%7E*");
        clear_query_argument(&mut context, "q");
        assert_eq!(query(&context), "flag=&t=%7E*");
    }

    #[test]
    fn what_is_left_of_a_form_stays_as_it_was() {
        assert_eq!(without("q=a%20b&k%65y=1&flag", "key").as_deref(), Some("q=a%20b&flag"));
        assert_eq!(without("q=1", "key"), None);
    }
}
