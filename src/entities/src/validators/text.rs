//! Names, tags, header names and URLs.

use crate::engine::shorthand::UrlParts;

pub(crate) fn url(text: &str) -> Result<(), String> {
    let parts = UrlParts::of(text);
    match (parts.host, parts.scheme) {
        (None, _) => Err("missing host in url".to_owned()),
        (_, None) => Err("missing scheme in url".to_owned()),
        _ => Ok(()),
    }
}

pub(crate) fn redirect_uri(text: &str) -> Result<(), String> {
    let parts = UrlParts::of(text);
    if parts.host.is_none() || parts.scheme.is_none() {
        return Err(format!("cannot parse '{text}'"));
    }
    if parts.fragment.is_some() {
        return Err(format!("fragment not allowed in '{text}'"));
    }
    Ok(())
}

fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

pub(crate) fn header_name(text: &str) -> Result<(), String> {
    if is_header_name(text) {
        return Ok(());
    }
    Err(format!("bad header name '{text}', allowed characters are A-Z, a-z, 0-9, '_', and '-'"))
}

fn split_pair(text: &str) -> (&str, &str) {
    text.split_once(':').map_or((text, ""), |(name, value)| (name, value.trim_start_matches(':')))
}

fn known_header(text: &str) -> Result<(), String> {
    if is_header_name(text) { Ok(()) } else { Err(format!("'{text}' is not a valid header")) }
}

pub(crate) fn header_name_prefix(text: &str) -> Result<(), String> {
    known_header(split_pair(text).0)
}

pub(crate) fn header_rename_pair(text: &str) -> Result<(), String> {
    let (name, value) = split_pair(text);
    known_header(name)?;
    known_header(value)
}

pub(crate) fn name_value_template(text: &str) -> Result<(), String> {
    let (name, value) = split_pair(text);
    if value.is_empty() { Err(format!("key '{name}' has no value")) } else { Ok(()) }
}

/// Source: RFC 2616, `token`.
pub(crate) fn http_token(text: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/?={}[]".contains(&byte);
    if !text.is_empty() && text.bytes().all(legal) {
        return Ok(());
    }
    Err("contains one or more invalid characters. ASCII control characters (0-31;127), space, tab and the \
         characters ()<>@,;:\\\"/?={}[] are not allowed."
        .to_owned())
}

pub(crate) fn tag(text: &str) -> Result<(), String> {
    let legal = |byte: u8| match byte {
        b',' | b'/' => false,
        32..=126 => true,
        byte => (128..=244).contains(&byte),
    };
    if text.bytes().all(legal) {
        return Ok(());
    }
    Err(format!("invalid tag '{text}': expected printable ascii (except `,` and `/`) or valid utf-8 sequences"))
}

pub(crate) fn utf8_name(text: &str) -> Result<(), String> {
    let legal = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '~');
    if text.chars().all(legal) {
        return Ok(());
    }
    Err(format!("invalid value '{text}': the only accepted ascii characters are alphanumerics or ., -, _, and ~"))
}

pub(crate) fn star_or_regex(text: &str) -> Result<(), String> {
    if text == "*" || fancy_regex::Regex::new(text).is_ok() {
        return Ok(());
    }
    Err(format!("'{text}' is not a valid regex"))
}
