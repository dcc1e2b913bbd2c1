//! The fields that expressions can ask for.

use crate::conditions::Target;
use crate::request::Request;
use std::net::IpAddr;

/// Which fields there are: those of HTTP requests or those of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    Http,
    Stream,
}

impl Schema {
    /// The schema of a route with these protocols; the first one decides.
    pub(crate) fn of(protocols: &[String]) -> Self {
        match protocols.first().map(String::as_str) {
            Some("tcp" | "udp" | "tls" | "tls_passthrough") => Schema::Stream,
            _ => Schema::Http,
        }
    }
}

/// A field by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Protocol,
    /// The protocol of a connection that is passed on as bytes.
    StreamProtocol,
    Sni,
    Method,
    Host,
    Path,
    /// Segments of the path joined by slashes: the first and the last, from 0. None can never be there.
    Segments(Option<(usize, usize)>),
    SegmentCount,
    /// As written, and the spelling tried when a request lacks that.
    Header(Box<str>, Box<str>),
    Query(Box<str>),
    SourceIp,
    SourcePort,
    DestinationIp,
    DestinationPort,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Ip,
}

const SEGMENTS: &str = "http.path.segments.";

impl Field {
    /// The field of this name; None when the schema has none.
    pub(crate) fn parse(name: &str, schema: Schema) -> Option<Self> {
        let common = match name {
            "net.protocol" if schema == Schema::Stream => Some(Field::StreamProtocol),
            "net.protocol" => Some(Field::Protocol),
            "tls.sni" => Some(Field::Sni),
            "net.src.ip" => Some(Field::SourceIp),
            "net.src.port" => Some(Field::SourcePort),
            "net.dst.ip" => Some(Field::DestinationIp),
            "net.dst.port" => Some(Field::DestinationPort),
            _ => None,
        };
        if common.is_some() || schema == Schema::Stream {
            return common;
        }
        match name {
            "http.method" => return Some(Field::Method),
            "http.host" => return Some(Field::Host),
            "http.path" => return Some(Field::Path),
            "http.path.segments.len" => return Some(Field::SegmentCount),
            _ => {}
        }
        let (family, last) = name.rsplit_once('.')?;
        match family {
            "http.path.segments" => Some(Field::Segments(segments(last))),
            "http.headers" => Some(Field::Header(last.into(), last.to_ascii_lowercase().replace('_', "-").into())),
            "http.queries" => Some(Field::Query(last.into())),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Field::SegmentCount | Field::SourcePort | Field::DestinationPort => Kind::Int,
            Field::SourceIp | Field::DestinationIp => Kind::Ip,
            _ => Kind::Text,
        }
    }

    /// Whether the request's path must be text for this field.
    pub(crate) fn is_of_path(&self) -> bool {
        matches!(self, Field::Path | Field::Segments(_) | Field::SegmentCount)
    }
}

/// Whether a segment field is one that a control plane accepts.
pub(crate) fn is_well_formed(name: &str) -> bool {
    name.strip_prefix(SEGMENTS).is_none_or(|range| range == "len" || segments(range).is_some())
}

/// `N` or `N_M` with N before M, without leading zeros.
fn segments(range: &str) -> Option<(usize, usize)> {
    let number = |text: &str| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        plain.then(|| text.parse().ok()).flatten()
    };
    match range.split_once('_') {
        None => number(range).map(|only| (only, only)),
        Some((first, last)) => Some((number(first)?, number(last)?)).filter(|(first, last)| first < last),
    }
}

/// A request as expressions see it.
pub(crate) struct Scope<'a, 'q> {
    pub(crate) request: &'a Request<'q>,
    pub(crate) target: Target<'q>,
}

impl<'q> Scope<'_, 'q> {
    /// The value of a text field that has at most one.
    pub(crate) fn text(&self, field: &Field) -> Option<&'q str> {
        match field {
            Field::Protocol => Some(if self.request.https { "https" } else { "http" }),
            // See how streams are asked for.
            Field::StreamProtocol => Some(self.request.method),
            Field::Sni => self.request.sni,
            Field::Method => Some(self.request.method),
            Field::Host => Some(self.target.host).filter(|host| !host.is_empty()),
            Field::Path => self.request.path.as_str(),
            Field::Segments(range) => self.segments(*range.as_ref()?),
            _ => None,
        }
    }

    pub(crate) fn int(&self, field: &Field) -> Option<i64> {
        match field {
            Field::SegmentCount => Some(self.tail()?.map_or(0, |tail| tail.split('/').count() as i64)),
            Field::SourcePort => self.request.source.map(|source| i64::from(source.port())),
            Field::DestinationPort => Some(i64::from(self.target.port)),
            _ => None,
        }
    }

    pub(crate) fn ip(&self, field: &Field) -> Option<IpAddr> {
        match field {
            Field::SourceIp => self.request.source.map(|source| source.ip()),
            Field::DestinationIp => self.request.destination_ip,
            _ => None,
        }
    }

    /// The path behind its first slash; None inside when nothing follows it.
    fn tail(&self) -> Option<Option<&'q str>> {
        Some(self.request.path.as_str()?.get(1..).filter(|tail| !tail.is_empty()))
    }

    fn segments(&self, (first, last): (usize, usize)) -> Option<&'q str> {
        let tail = self.tail()??;
        let slashes = || tail.match_indices('/').map(|(at, _)| at);
        let start = if first == 0 { 0 } else { slashes().nth(first - 1)? + 1 };
        let end = slashes().nth(last).or_else(|| (slashes().count() == last).then_some(tail.len()))?;
        tail.get(start..end)
    }

    /// Calls `accept` with the values of a header or query parameter until it answers true; None when there are none.
    pub(crate) fn any_value(&self, field: &Field, accept: &mut dyn FnMut(Option<&str>) -> bool) -> Option<bool> {
        let mut seen = false;
        let mut found = false;
        match field {
            Field::Header(name, dashed) => {
                let mut ask = |name: &str| {
                    self.request.headers.any_value(name, &mut |value| {
                        seen = true;
                        accept(std::str::from_utf8(value).ok())
                    })
                };
                // A name with capitals is in no request as it is written.
                if !name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                    found = ask(name);
                }
                if !seen && name != dashed {
                    found = self.request.headers.any_value(dashed, &mut |value| {
                        seen = true;
                        accept(std::str::from_utf8(value).ok())
                    });
                }
            }
            Field::Query(name) => {
                for value in self.request.path.query_values(name) {
                    seen = true;
                    if accept(std::str::from_utf8(&value).ok()) {
                        found = true;
                        break;
                    }
                }
            }
            _ => {}
        }
        seen.then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_belong_to_schemas() {
        for (name, kind) in [
            ("http.path", Some(Kind::Text)),
            ("http.path.segments.len", Some(Kind::Int)),
            ("http.path.segments.0_2", Some(Kind::Text)),
            ("http.headers.x_a", Some(Kind::Text)),
            ("http.headers.x.y", None),
            ("http.query.a", None),
            ("net.src.ip", Some(Kind::Ip)),
            ("net.dst.port", Some(Kind::Int)),
            ("http", None),
        ] {
            assert_eq!(Field::parse(name, Schema::Http).map(|field| field.kind()), kind, "{name}");
        }
        assert_eq!(Field::parse("http.path", Schema::Stream), None);
        assert_eq!(Schema::of(&["tls".to_owned()]), Schema::Stream);
    }

    #[test]
    fn segment_ranges_rise_and_have_no_leading_zeros() {
        for (range, good) in [("0", true), ("12", true), ("1_3", true), ("len", true), ("01", false), ("1_1", false)] {
            assert_eq!(is_well_formed(&format!("http.path.segments.{range}")), good, "{range}");
        }
        assert!(!is_well_formed("http.path.segments.x") && is_well_formed("http.path"));
    }
}
