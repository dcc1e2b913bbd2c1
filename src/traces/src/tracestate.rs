//! `tracestate`: what systems along the way keep beside the trace, by their names.
//!
//! A node that has nothing of its own to keep passes it on as it came, provided it is well-formed and belongs to the
//! trace that goes on.

/// Entries that a list may have.
pub const MOST_MEMBERS: usize = 32;

/// Whether the values of the header, in their order, are one well-formed list with at least one entry.
///
/// Source: W3C Trace Context, level 2, section 3.3.
pub fn is_valid<'a>(values: impl IntoIterator<Item = &'a str>) -> bool {
    let mut count = 0;
    for member in values.into_iter().flat_map(|value| value.split(',')) {
        let member = member.trim_matches([' ', '\t']);
        if member.is_empty() {
            continue;
        }
        count += 1;
        let valid = member.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value));
        if !valid || count > MOST_MEMBERS {
            return false;
        }
    }
    count > 0
}

/// A simple name, or that of a tenant and a system.
fn is_key(key: &str) -> bool {
    let starts = |text: &str| text.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit());
    let rest = |text: &str, most: usize| {
        (1..=most).contains(&text.len())
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'))
    };
    match key.split_once('@') {
        None => starts(key) && rest(key, 256),
        Some((tenant, system)) => {
            let lower = system.starts_with(|first: char| first.is_ascii_lowercase());
            starts(tenant) && rest(tenant, 241) && lower && rest(system, 14)
        }
    }
}

/// Printable characters but comma and equals sign, the last one no space.
fn is_value(value: &str) -> bool {
    let printable = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
    (1..=256).contains(&value.len()) && value.bytes().all(printable) && !value.ends_with(' ')
}
