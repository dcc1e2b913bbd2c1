//! The order in which matchers are tried.
//!
//! Kong lays a matcher's priority out in 64 bits: number of kinds of fields used (from bit 61), "all hosts are plain"
//! (bit 60), number of headers (from bit 52), "paths are regexes" (bit 51), `regex_priority` (from bit 19), length of
//! the path (bits 0 to 18). The counts, however, are shifted as Lua numbers, which LuaJIT shifts as 32-bit integers by
//! the amount modulo 32; only the two flags are true 64-bit values. So in Kong 3.9.1 as it runs the counts land at bits
//! 29, 20 and 19, where they overlap, the flags outweigh any count up to three, and from four kinds of fields on the
//! sign fills the upper half, so that the flags count for nothing. This module computes what Kong computes.
//!
//! Source: Kong 3.9.1 `kong/router/transform.lua`, `get_priority`, `lshift_uint64`; LuaJIT `bit.lshift`.

use gwctl_entities::view::{Endpoint, Route};

/// Most headers of a route that count.
const MAX_HEADER_COUNT: usize = 255;
const PLAIN_HOSTS: u64 = 1 << 60;
const REGEX_PATHS: u64 = 1 << 51;
const LENGTH_MASK: usize = 0x7_FFFF;

/// What a matcher's paths are: absent, prefixes of one length in bytes, or regexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathKind {
    None,
    Prefix(usize),
    Regex,
}

/// The priority of the matcher of `route` for paths of the given kind; the greater one is tried first.
pub(crate) fn priority(route: &Route, paths: PathKind) -> u64 {
    let kinds = [
        !route.methods.is_empty(),
        !route.hosts.is_empty(),
        !route.headers.is_empty(),
        !route.snis.is_empty(),
        paths != PathKind::None,
    ];
    let kinds = kinds.into_iter().filter(|used| *used).count();
    let headers = route.headers.len().min(MAX_HEADER_COUNT);
    let (regex_priority, length) = match paths {
        PathKind::None => (0, 0),
        PathKind::Prefix(length) => (0, length & LENGTH_MASK),
        PathKind::Regex => (route.regex_priority, 0),
    };
    let counts = shifted(kinds as i64, 61) | shifted(headers as i64, 52) | shifted(regex_priority, 19) | length as i32;
    let mut priority = i64::from(counts) as u64;
    if !route.hosts.is_empty() && route.hosts.iter().all(|host| !host.contains('*')) {
        priority |= PLAIN_HOSTS;
    }
    if paths == PathKind::Regex {
        priority |= REGEX_PATHS;
    }
    priority
}

/// The priority of a route of streams. Server names, or both ends, outweigh all else; then an exact address, a
/// port, a network, those of the client before those reached. Kong computes it in true 64-bit values.
pub(crate) fn stream_priority(route: &Route) -> u64 {
    let both = !route.sources.is_empty() && !route.destinations.is_empty();
    let first = if !route.snis.is_empty() || both { 1 << 61 } else { 0 };
    first | endpoint_weight(&route.sources) << 4 | endpoint_weight(&route.destinations)
}

fn endpoint_weight(endpoints: &[Endpoint]) -> u64 {
    endpoints.iter().fold(0, |weight, endpoint| {
        let ip = endpoint.ip.as_deref().map_or(0, |ip| if ip.contains('/') { 1 } else { 1 << 3 });
        weight | ip | if endpoint.port.is_some() { 1 << 2 } else { 0 }
    })
}

/// LuaJIT's `bit.lshift` of a number: the low 32 bits, shifted by the amount modulo 32.
fn shifted(number: i64, amount: u32) -> i32 {
    (number as i32).wrapping_shl(amount)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_entities::view::from_record;
    use serde_json::{Value, json};

    fn of(fields: Value, paths: PathKind) -> u64 {
        let mut fields = fields;
        fields["id"] = json!("");
        priority(&from_record(fields.as_object().unwrap()).unwrap(), paths)
    }

    #[test]
    fn priorities_are_those_that_kong_computes() {
        let four = json!({"methods": ["GET"], "hosts": ["a"], "headers": {"x": ["1"]}, "regex_priority": 5});
        let two = json!({"methods": ["GET"], "hosts": ["*.a"], "regex_priority": 1024});
        for (fields, paths, expected) in [
            (json!({}), PathKind::Prefix(5), 0x0000_0000_2000_0005),
            (json!({"hosts": ["a"]}), PathKind::None, 0x1000_0000_2000_0000),
            (json!({"hosts": ["a", "b.*"]}), PathKind::None, 0x0000_0000_2000_0000),
            (two.clone(), PathKind::None, 0x0000_0000_4000_0000),
            (two, PathKind::Regex, 0x0008_0000_6000_0000),
            (four.clone(), PathKind::None, 0x1000_0000_6010_0000),
            (four.clone(), PathKind::Prefix(2), 0xffff_ffff_8010_0002),
            (four, PathKind::Regex, 0xffff_ffff_8038_0000),
        ] {
            assert_eq!(of(fields.clone(), paths), expected, "{fields} {paths:?}");
        }
    }
}
