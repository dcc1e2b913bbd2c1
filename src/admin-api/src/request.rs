//! A request taken apart: path segments, query and body arguments. Pure; the bytes are read elsewhere.

use crate::answer::Answer;
use crate::backend::Origin;
use crate::caller::Caller;
use crate::{form, multipart};
use bytes::Bytes;
use gwctl_entities::{EntityError, Record, Value};
use http::Method;
use percent_encoding::percent_decode_str;

/// Query and form arguments at most, each.
const ARGUMENT_LIMIT: usize = 1000;

/// Name and value pairs in order; the value is None for a name without `=`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Arguments(pub(crate) Vec<(String, Option<String>)>);

impl Arguments {
    pub(crate) fn parse(text: &str) -> Self {
        let decode = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| match pair.split_once('=') {
                    Some((name, value)) => (decode(name), Some(decode(value))),
                    None => (decode(pair), None),
                })
                .collect(),
        )
    }

    /// The first value of the name; `Some(None)` when it has no `=`.
    pub(crate) fn first(&self, name: &str) -> Option<Option<&str>> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_deref())
    }

    /// The first value of the name, empty when it has no `=`.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.first(name).map(Option::unwrap_or_default)
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.iter().filter(|(given, _)| given == name).count()
    }
}

/// The body, by the rules of its content type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    /// None, or none that counts.
    Empty,
    Json(Record),
    Form(Vec<(String, form::Given)>),
    /// YAML, for `/config` only.
    Text(String),
    /// JSON that is read piece by piece, for `/gwctl/changes` only.
    Raw(Bytes),
}

/// A request whose body was read.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Path as sent, without trailing slash.
    pub(crate) raw_path: String,
    pub(crate) query: Arguments,
    pub(crate) body: Body,
    pub(crate) origin: Origin,
    /// Versions a write is meant for (`If-Match: "7"`); None: any.
    pub(crate) if_versions: Option<Vec<u64>>,
    /// Do everything but keep the change (`?dry_run=1`).
    pub(crate) dry_run: bool,
    pub(crate) caller: Caller,
    /// Where the client says it speaks to.
    pub(crate) host: Option<String>,
}

/// Decoded segments of a path; None when the path cannot name anything (`//services`, no leading slash).
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    let decode = |segment: &str| percent_decode_str(segment).decode_utf8_lossy().into_owned();
    path.split('/').map(|segment| (!segment.is_empty()).then(|| decode(segment))).collect()
}

/// The versions an `If-Match` header names; None for `*`. A tag that no answer ever carried matches nothing.
pub(crate) fn versions_of(if_match: &str) -> Option<Vec<u64>> {
    if if_match.trim() == "*" {
        return None;
    }
    let tags = if_match.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    Some(tags.filter_map(|tag| tag.parse().ok()).collect())
}

/// `dry_run` of the query.
pub(crate) fn dry_run(query: &Arguments) -> Result<bool, Answer> {
    match query.text("dry_run") {
        None | Some("0" | "false") => Ok(false),
        Some("" | "1" | "true") => Ok(true),
        Some(_) => Err(Answer::message(400, "dry_run must be 1 or 0")),
    }
}

/// The query of a request, or the refusal of too many arguments.
pub(crate) fn parse_query(query: &str) -> Result<Arguments, Answer> {
    let arguments = Arguments::parse(query);
    if arguments.0.len() > ARGUMENT_LIMIT { Err(too_many_arguments()) } else { Ok(arguments) }
}

fn too_many_arguments() -> Answer {
    Answer::message(400, "Too many arguments")
}

/// How a body is to be read, by its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Json,
    Form,
    Multipart { boundary: String },
    Yaml,
    Nothing,
}

/// The kind of body, or 415. `content_type` None counts as accepted when nothing was sent.
pub(crate) fn body_kind(content_type: Option<&str>, has_body: bool, yaml_allowed: bool) -> Result<Kind, Answer> {
    let Some(content_type) = content_type else {
        return if has_body { Err(unsupported_type()) } else { Ok(Kind::Nothing) };
    };
    if content_type.starts_with("application/json") {
        return Ok(Kind::Json);
    }
    if content_type.starts_with("application/x-www-form-urlencoded") {
        return Ok(Kind::Form);
    }
    if content_type.starts_with("multipart/form-data") {
        return Ok(Kind::Multipart { boundary: multipart::boundary(content_type).unwrap_or_default() });
    }
    let yaml = content_type.starts_with("application/yaml") || content_type.starts_with("text/yaml");
    if yaml && yaml_allowed { Ok(Kind::Yaml) } else { Err(unsupported_type()) }
}

fn unsupported_type() -> Answer {
    Answer::page(415, "Unsupported Media Type")
}

/// Reads the bytes of a body.
pub(crate) fn parse_body(kind: &Kind, bytes: &[u8]) -> Result<Body, Answer> {
    match kind {
        Kind::Nothing => Ok(Body::Empty),
        Kind::Json => parse_json(bytes).map(Body::Json),
        Kind::Yaml => Ok(Body::Text(yaml_text(bytes)?)),
        Kind::Form => {
            let text = std::str::from_utf8(bytes).ok().filter(|text| is_utf8_decoded(text)).ok_or_else(not_utf8)?;
            let arguments = Arguments::parse(text).0;
            limited(arguments.into_iter().map(|(name, value)| (name, form::Given::from(value))).collect())
        }
        Kind::Multipart { boundary } => {
            std::str::from_utf8(bytes).map_err(|_| not_utf8())?;
            limited(multipart::parts(bytes, boundary))
        }
    }
}

/// A text that is no UTF-8 is refused at the place where it ends to be one: to read it anyway would store other names
/// than were sent.
fn yaml_text(bytes: &[u8]) -> Result<String, Answer> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text.to_owned()),
        Err(error) => error,
    };
    let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    let line = good.matches('\n').count() + 1;
    let column = good.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    let words = format!(
        "failed parsing declarative configuration: {line}:{column}: the text is not UTF-8 from here on; save it as UTF-8"
    );
    let fields = Record::from_iter([("error".to_owned(), Value::String(words))]);
    Err(EntityError::InvalidDeclarative { fields, flattened: None }.into())
}

/// Whether a form's text is UTF-8 with its escapes undone.
fn is_utf8_decoded(text: &str) -> bool {
    percent_decode_str(text).decode_utf8().is_ok()
}

fn not_utf8() -> Answer {
    Answer::message(400, "the form is not UTF-8: other names would be stored than were sent")
}

fn limited(pairs: Vec<(String, form::Given)>) -> Result<Body, Answer> {
    if pairs.len() > ARGUMENT_LIMIT { Err(too_many_arguments()) } else { Ok(Body::Form(pairs)) }
}

/// A JSON body as a record. Depth is bounded by the parser (128 levels).
fn parse_json(bytes: &[u8]) -> Result<Record, Answer> {
    let cannot = || Answer::message(400, "Cannot parse JSON body");
    let mut value: Value = serde_json::from_slice(bytes).map_err(|_| cannot())?;
    crate::answer::tidy_numbers(&mut value);
    match value {
        Value::Object(record) => Ok(record),
        Value::Array(items) => {
            Ok(items.into_iter().enumerate().map(|(index, item)| ((index + 1).to_string(), item)).collect())
        }
        // Kong answers a bare string with an internal error; clients were recorded to see just that.
        Value::String(_) => Err(Answer::unexpected()),
        _ => Err(cannot()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_trailing_slash_is_tolerated_and_an_empty_segment_is_not() {
        assert_eq!(segments("/services/"), segments("/services"));
        assert_eq!(segments("/"), Some(vec![]));
        assert_eq!(segments("//services"), None);
        assert_eq!(segments("/a%20b/c%2Fd"), Some(vec!["a b".to_owned(), "c/d".to_owned()]));
    }

    #[test]
    fn a_text_that_is_no_utf8_is_refused_at_its_place() {
        let answer = parse_body(&Kind::Yaml, b"a: 1\nb: \xc3\xa9\xff\n").unwrap_err();
        assert_eq!(answer.status, 400);
        let crate::answer::Content::Json(body) = answer.content else { panic!("no JSON") };
        assert!(body["fields"]["error"].as_str().unwrap().contains("2:5: the text is not UTF-8"), "{body}");
    }

    #[test]
    fn a_form_that_is_no_utf8_is_refused_however_it_is_written() {
        let multipart = Kind::Multipart { boundary: "b".to_owned() };
        let part = b"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--b--";
        for (kind, bytes) in [(&Kind::Form, &b"a=%ff"[..]), (&Kind::Form, b"a=\xff"), (&multipart, part)] {
            assert_eq!(parse_body(kind, bytes).unwrap_err().status, 400);
        }
        let Ok(Body::Form(pairs)) = parse_body(&Kind::Form, "a=%C3%A9&b=\u{e9}".as_bytes()) else { panic!("refused") };
        assert_eq!(pairs.iter().filter(|(_, given)| *given == form::Given::Text("\u{e9}".to_owned())).count(), 2);
    }

    #[test]
    fn an_empty_array_body_is_an_empty_record() {
        assert_eq!(parse_body(&Kind::Json, b"[]"), Ok(Body::Json(Record::new())));
    }

    #[test]
    fn whole_floats_are_integers_from_the_start() {
        let Ok(Body::Json(record)) = parse_body(&Kind::Json, br#"{"port": 80.0}"#) else { panic!("refused") };
        assert_eq!(Value::Object(record), json!({"port": 80}));
    }

    #[test]
    fn json_nested_too_deep_is_refused_not_followed() {
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse_body(&Kind::Json, deep.as_bytes()).is_err());
    }

    #[test]
    fn more_than_a_thousand_arguments_are_refused() {
        let query = vec!["a=1"; 1001].join("&");
        assert_eq!(parse_query(&query).unwrap_err().status, 400);
        assert!(parse_query(&query[4..]).is_ok());
    }

    #[test]
    fn if_match_names_versions_and_an_unknown_tag_matches_none() {
        assert_eq!(versions_of("\"7\""), Some(vec![7]));
        assert_eq!(versions_of("W/\"7\", \"8\""), Some(vec![7, 8]));
        assert_eq!(versions_of("\"abc\""), Some(vec![]));
        assert_eq!(versions_of("*"), None);
    }

    #[test]
    fn a_dry_run_is_asked_for_in_plain_words_only() {
        let asked = |text: &str| dry_run(&Arguments::parse(text)).map_err(|answer| answer.status);
        assert_eq!((asked(""), asked("dry_run=0"), asked("dry_run=false")), (Ok(false), Ok(false), Ok(false)));
        assert_eq!((asked("dry_run"), asked("dry_run=1"), asked("dry_run=true")), (Ok(true), Ok(true), Ok(true)));
        assert_eq!(asked("dry_run=ture"), Err(400), "a slip must not write");
    }

    #[test]
    fn only_known_content_types_are_accepted() {
        assert_eq!(body_kind(Some("text/plain"), true, true).unwrap_err().status, 415);
        assert_eq!(body_kind(Some("Application/json"), true, true).unwrap_err().status, 415);
        assert_eq!(body_kind(Some("text/yaml"), true, false).unwrap_err().status, 415);
        assert_eq!(body_kind(Some("text/yaml"), true, true), Ok(Kind::Yaml));
        assert_eq!(body_kind(None, false, false), Ok(Kind::Nothing));
        assert_eq!(body_kind(None, true, false).unwrap_err().status, 415);
        assert_eq!(body_kind(Some("application/json; charset=utf-8"), true, false), Ok(Kind::Json));
    }
}
