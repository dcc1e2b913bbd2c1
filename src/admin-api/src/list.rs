//! Lists: page size, tokens, the tags filter, and the shape of a page.

use crate::answer::{Answer, unexpected};
use crate::context::Context;
use crate::lookup::{self, is_uuid};
use crate::request::Arguments;
use crate::{certificate, target};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use gwctl_entities::{EntityError, Map, PageQuery, Read, Record, TagFilter, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

/// Rows of a page unless asked otherwise.
const DEFAULT_SIZE: usize = 100;
/// Rows of a page at most.
pub(crate) const MAX_SIZE: usize = 1000;
/// Tags of a filter at most.
const MAX_TAGS: usize = 5;

/// Tokens are written without padding and read with or without.
const TOKENS: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as part of a query.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// `size` of the query.
pub(crate) fn size(query: &Arguments) -> Result<usize, EntityError> {
    let Some(text) = query.text("size") else { return Ok(DEFAULT_SIZE) };
    let invalid = |reason: &str| EntityError::InvalidSize(reason.to_owned());
    let number: f64 = text.trim().parse().map_err(|_| invalid("size must be a number"))?;
    let whole = number.fract() == 0.0 && (1.0..=MAX_SIZE as f64).contains(&number) && query.count("size") == 1;
    if whole { Ok(number as usize) } else { Err(invalid("size must be an integer between 1 and 1000")) }
}

/// `tags` of the query.
pub(crate) fn tags(query: &Arguments) -> Result<Option<TagFilter>, EntityError> {
    let Some(text) = query.text("tags") else { return Ok(None) };
    let invalid = |reason: &str| {
        let options = Map::from_iter([("tags".to_owned(), Value::from(reason))]);
        EntityError::InvalidOptions { options }
    };
    if text.is_empty() {
        return Err(invalid("cannot be null"));
    }
    let forbidden = |letter: char| letter.is_control() || letter == char::REPLACEMENT_CHARACTER;
    if text.contains(forbidden) || (text.contains(',') && text.contains('/')) {
        return Err(invalid("invalid filter syntax"));
    }
    let separator = if text.contains('/') { '/' } else { ',' };
    let names: Vec<String> = text.split(separator).map(str::to_owned).collect();
    if names.len() > MAX_TAGS {
        return Err(invalid("cannot query more than 5 tags"));
    }
    Ok(Some(if separator == '/' { TagFilter::Any(names) } else { TagFilter::All(names) }))
}

/// The token of a page that begins with this row.
pub(crate) fn token(id: &str) -> String {
    encode_token(&json!([id]))
}

/// A token of any content.
pub(crate) fn encode_token(content: &Value) -> String {
    TOKENS.encode(content.to_string())
}

/// The JSON inside a token.
pub(crate) fn token_content(offset: &str) -> Result<Value, EntityError> {
    let invalid = |reason: &str| EntityError::InvalidOffset { offset: offset.to_owned(), reason: reason.to_owned() };
    let bytes = TOKENS.decode(offset).map_err(|_| invalid("bad base64 encoding"))?;
    let content: Value = serde_json::from_slice(&bytes).map_err(|_| invalid("bad json encoding"))?;
    if content.is_array() { Ok(content) } else { Err(invalid("bad json encoding")) }
}

/// Where a token says to go on.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Beginning,
    At(String),
    /// A token of other content, on a node without a store: an empty page.
    Nowhere,
}

fn start(query: &Arguments, storeless: bool) -> Result<Start, EntityError> {
    let Some(offset) = query.text("offset").filter(|offset| !offset.is_empty()) else { return Ok(Start::Beginning) };
    match token_content(offset) {
        Ok(content) => match content.get(0).and_then(Value::as_str) {
            Some(id) if is_uuid(id) => Ok(Start::At(id.to_ascii_lowercase())),
            _ if storeless => Ok(Start::Nowhere),
            // Kong hands the text to its database, which fails on it.
            Some(_) => Err(unexpected()),
            None => Err(EntityError::InvalidOffset { offset: offset.to_owned(), reason: "no id inside".to_owned() }),
        },
        Err(EntityError::InvalidOffset { reason, .. }) if storeless && reason == "bad json encoding" => {
            Ok(Start::Nowhere)
        }
        Err(error) => Err(error),
    }
}

/// `{"data":[...],"next":...,"offset":...}`.
pub(crate) fn page(rows: Vec<Record>, next: Option<(String, String)>) -> Map<String, Value> {
    let mut page = Map::new();
    page.insert("data".to_owned(), Value::Array(rows.into_iter().map(Value::Object).collect()));
    match next {
        Some((path, offset)) => {
            page.insert("next".to_owned(), Value::from(path));
            page.insert("offset".to_owned(), Value::from(offset));
        }
        None => {
            page.insert("next".to_owned(), Value::Null);
        }
    }
    page
}

/// `GET` of a collection.
pub(crate) fn collection(context: &Context<'_>, entity: &str) -> Result<Answer, EntityError> {
    let read = context.read()?;
    if entity == "consumers"
        && let Some(custom_id) = context.request.query.first("custom_id")
    {
        return by_custom_id(context, read.as_ref(), custom_id.unwrap_or_default());
    }
    let query = &context.request.query;
    let endpoint = context.schema(entity)?.endpoint.clone().unwrap_or_else(|| entity.to_owned());
    let tagged = context.schema(entity)?.schema.field("tags").is_some();
    let tags = tags(query)?.filter(|_| tagged);
    let kept = ["tags", "size"].iter().filter_map(|name| {
        let value = query.text(name)?;
        Some(format!("&{name}={}", escape(value)))
    });
    let kept: String = kept.collect();
    listing(context, read.as_ref(), entity, None, tags, |offset| format!("/{endpoint}?offset={offset}{kept}"))
}

/// `GET` of a nested collection. The syntax of `tags` counts, but they do not filter; `next` drops all but the token.
pub(crate) fn nested(
    context: &Context<'_>,
    (parent, parent_key): (&str, &str),
    (entity, field): (&str, &str),
) -> Result<Answer, EntityError> {
    let read = context.read()?;
    let parent = lookup::parent(context, read.as_ref(), parent, parent_key)?;
    tags(&context.request.query)?;
    let path = &context.request.raw_path;
    if entity == "targets" {
        let size = size(&context.request.query)?;
        return target::listing(context, read.as_ref(), lookup::id_of(&parent), size, |_| {}).map(Answer::ok_page);
    }
    let parent = Some((field.to_owned(), lookup::id_of(&parent).to_owned()));
    listing(context, read.as_ref(), entity, parent, None, |offset| format!("{path}?offset={offset}"))
}

/// One page of rows as the Admin API shows them.
pub(crate) fn listing(
    context: &Context<'_>,
    read: &dyn Read,
    entity: &str,
    parent: Option<(String, String)>,
    tags: Option<TagFilter>,
    next_path: impl Fn(&str) -> String,
) -> Result<Answer, EntityError> {
    let size = size(&context.request.query)?;
    let from = match start(&context.request.query, context.storeless())? {
        Start::Beginning => None,
        Start::At(id) => Some(id),
        Start::Nowhere => return Ok(Answer::ok_page(page(Vec::new(), None))),
    };
    let found = read.page(entity, &PageQuery { size, from, parent, tags })?;
    let rows: Result<Vec<Record>, EntityError> =
        found.rows.iter().map(|row| shown(context, read, entity, row)).collect();
    let next = found.next.map(|id| {
        let token = token(&id);
        (next_path(&escape(&token)), token)
    });
    Ok(Answer::ok_page(page(rows?, next)))
}

/// A stored record as answers show it.
pub(crate) fn shown(context: &Context<'_>, read: &dyn Read, entity: &str, row: &Record) -> Result<Record, EntityError> {
    let shown = context.present(entity, row);
    if entity == "certificates" { certificate::with_snis(read, shown) } else { Ok(shown) }
}

fn by_custom_id(context: &Context<'_>, read: &dyn Read, custom_id: &str) -> Result<Answer, EntityError> {
    if custom_id.is_empty() || context.request.query.count("custom_id") > 1 {
        return Ok(Answer::message(400, "custom_id must be an unempty string"));
    }
    let row = read.get_by("consumers", "custom_id", custom_id)?;
    let rows = row.iter().map(|row| context.present("consumers", row)).collect();
    Ok(Answer::ok_page(page(rows, None)))
}

impl Answer {
    pub(crate) fn ok_page(page: Map<String, Value>) -> Self {
        Self::ok(Value::Object(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn query(text: &str) -> Arguments {
        Arguments::parse(text)
    }

    #[test]
    fn a_size_is_a_whole_number_up_to_a_thousand() {
        assert_eq!(size(&query("")), Ok(100));
        assert_eq!(size(&query("size=1000")), Ok(1000));
        for bad in ["size=0", "size=1001", "size=1.5", "size=-1", "size=1&size=2"] {
            let refusal = EntityError::InvalidSize("size must be an integer between 1 and 1000".to_owned());
            assert_eq!(size(&query(bad)), Err(refusal), "{bad}");
        }
        for bad in ["size=x", "size="] {
            assert_eq!(size(&query(bad)), Err(EntityError::InvalidSize("size must be a number".to_owned())), "{bad}");
        }
    }

    #[test]
    fn tags_are_joined_by_commas_or_by_slashes() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(tags(&query("tags=a,b")), Ok(Some(TagFilter::All(names(&["a", "b"])))));
        assert_eq!(tags(&query("tags=a/b")), Ok(Some(TagFilter::Any(names(&["a", "b"])))));
        assert_eq!(tags(&query("tags=a&tags=b")), Ok(Some(TagFilter::All(names(&["a"])))));
        for bad in ["tags=a,b/c", "tags=", "tags", "tags=%ff", "tags=%00", "tags=a,b,c,d,e,f"] {
            assert!(tags(&query(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_token_is_unpadded_base64_of_the_next_id() {
        assert_eq!(
            token("11fd9b2f-4dbb-48e5-a2e2-24a31ba112bc"),
            "WyIxMWZkOWIyZi00ZGJiLTQ4ZTUtYTJlMi0yNGEzMWJhMTEyYmMiXQ"
        );
    }

    #[test]
    fn a_foreign_token_is_refused_with_a_store_and_empty_without() {
        let reason = |text: &str, storeless| match start(&query(text), storeless) {
            Err(EntityError::InvalidOffset { reason, .. }) => reason,
            other => format!("{other:?}"),
        };
        assert_eq!(reason("offset=zzz", false), "bad json encoding");
        assert_eq!(reason("offset=!", false), "bad base64 encoding");
        assert_eq!(reason("offset=!", true), "bad base64 encoding");
        assert_eq!(reason("offset=W10", false), "no id inside");
        assert_eq!(start(&query("offset=zzz"), true), Ok(Start::Nowhere));
    }

    proptest! {
        #[test]
        fn every_id_survives_its_token(id in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}") {
            let text = format!("offset={}", escape(&token(&id)));
            prop_assert_eq!(start(&query(&text), false), Ok(Start::At(id)));
        }

        #[test]
        fn no_query_panics(text in ".{0,60}") {
            let query = query(&text);
            let _ = (size(&query), tags(&query), start(&query, true), start(&query, false));
        }
    }
}
