//! Hosts as the old router compares them.

use crate::conditions::Affix;
use std::borrow::Cow;

/// The host of a request in the three forms that routes are compared with.
#[derive(Debug)]
pub(crate) struct AskedHost<'q> {
    /// As received.
    pub(crate) raw: &'q str,
    /// Without port and without brackets.
    pub(crate) bare: &'q str,
    /// With the port of the scheme when none was given; as received when no route asks for ports.
    pub(crate) full: Cow<'q, str>,
}

impl<'q> AskedHost<'q> {
    /// Splits a host; None when there is none.
    pub(crate) fn new(raw: &'q str, https: bool, ports_matter: bool) -> Option<Self> {
        if raw.is_empty() {
            return None;
        }
        let (bare, full) = split_port(raw);
        let port = if https { 443 } else { 80 };
        let full = match full {
            _ if !ports_matter => Cow::Borrowed(raw),
            Full::Named => Cow::Borrowed(raw),
            Full::Lacks(host) => Cow::Owned(format!("{host}:{port}")),
            Full::Bracketed => Cow::Owned(format!("[{raw}]:{port}")),
            Full::Glued => Cow::Owned(format!("{raw}{port}")),
        };
        Some(AskedHost { raw, bare, full })
    }

    /// The forms under which a rule that fits may be filed.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &str> {
        let raw = Some(self.raw).filter(|raw| *raw != self.bare);
        let full = Some(&*self.full).filter(|full| *full != self.raw && *full != self.bare);
        std::iter::once(self.bare).chain(raw).chain(full)
    }
}

/// How the form with port is made.
enum Full<'q> {
    /// It names its port itself.
    Named,
    /// The port is put behind this part.
    Lacks(&'q str),
    /// It is put into brackets first.
    Bracketed,
    /// The port follows without a further colon.
    Glued,
}

/// Splits off a port: decimal digits after the first colon, or after the bracket that ends an IPv6 literal.
///
/// Source: Kong 3.9.1 `kong/router/traditional.lua`, `split_port`.
fn split_port(name: &str) -> (&str, Full<'_>) {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(inner) = name.strip_prefix('[') {
        if let Some(address) = inner.strip_suffix(']') {
            return (address, Full::Lacks(name));
        }
        return match inner.find("]:").map(|at| (&inner[..at], &inner[at + 2..])) {
            Some((address, "")) => (address, Full::Glued),
            Some((address, port)) if digits(port) => (address, Full::Named),
            _ => (name, Full::Lacks(name)),
        };
    }
    match name.split_once(':') {
        None => (name, Full::Lacks(name)),
        Some((host, "")) => (host, Full::Lacks(host)),
        Some((host, port)) if digits(port) => (host, Full::Named),
        Some(_) => (name, Full::Bracketed),
    }
}

/// A host of a route.
#[derive(Debug)]
pub(crate) struct OldHost {
    /// As written.
    pub(crate) value: Box<str>,
    /// What the index files it under.
    pub(crate) filed: Affix,
    wildcard: Option<Wildcard>,
}

/// A name with one star, which stands for one or more characters. Without a port it fits every port.
#[derive(Debug)]
enum Wildcard {
    Suffix(Box<str>),
    Prefix(Box<str>),
    SuffixAndPort(Box<str>),
    PrefixAndPort(Box<str>, Box<str>),
}

impl OldHost {
    pub(crate) fn parse(text: &str) -> Self {
        let (bare, full) = split_port(text);
        let port = matches!(full, Full::Named).then(|| &text[bare.len()..]);
        let wildcard = match (text.strip_prefix('*'), bare.strip_suffix('*'), port) {
            (Some(suffix), _, None) => Some(Wildcard::Suffix(suffix.into())),
            (Some(suffix), _, Some(_)) => Some(Wildcard::SuffixAndPort(suffix.into())),
            (None, Some(prefix), None) => Some(Wildcard::Prefix(prefix.into())),
            (None, Some(prefix), Some(port)) => Some(Wildcard::PrefixAndPort(prefix.into(), port.into())),
            _ => None,
        };
        let filed = match &wildcard {
            None => Affix::Exact(text.into()),
            Some(Wildcard::Suffix(suffix) | Wildcard::SuffixAndPort(suffix)) => Affix::Suffix(suffix.clone()),
            Some(Wildcard::Prefix(prefix) | Wildcard::PrefixAndPort(prefix, _)) => Affix::Prefix(prefix.clone()),
        };
        OldHost { value: text.into(), filed, wildcard }
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.wildcard.is_some()
    }

    /// Whether it is a wildcard that asks for a port.
    pub(crate) fn is_wildcard_with_port(&self) -> bool {
        matches!(self.wildcard, Some(Wildcard::SuffixAndPort(_) | Wildcard::PrefixAndPort(..)))
    }

    /// Whether a request's host can only be told apart with its port.
    pub(crate) fn asks_port(&self) -> bool {
        self.value.contains(':')
    }

    /// Whether the wildcard fits; false for a plain host.
    pub(crate) fn fits_wildcard(&self, host: &AskedHost<'_>) -> bool {
        let ends = |text: &str, end: &str, more: usize| text.len() > end.len() + more && text.ends_with(end);
        match &self.wildcard {
            None => false,
            Some(Wildcard::Suffix(suffix)) => ends(host.bare, suffix, 0),
            // The port that every compared host has is enough for the star.
            Some(Wildcard::Prefix(prefix)) => host.raw.starts_with(&**prefix),
            Some(Wildcard::SuffixAndPort(suffix)) => ends(&host.full, suffix, 0),
            Some(Wildcard::PrefixAndPort(prefix, port)) => {
                host.full.starts_with(&**prefix) && ends(&host.full, port, prefix.len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_split_at_their_port() {
        for (raw, bare, full) in [
            ("a.test", "a.test", "a.test:80"),
            ("a.test:81", "a.test", "a.test:81"),
            ("a.test:", "a.test", "a.test:80"),
            ("a:b", "a:b", "[a:b]:80"),
            ("::1", "::1", "[::1]:80"),
            ("[::1]", "::1", "[::1]:80"),
            ("[::1]:81", "::1", "[::1]:81"),
            ("[::1]:", "::1", "[::1]:80"),
            ("[::1", "[::1", "[::1:80"),
        ] {
            let host = AskedHost::new(raw, false, true).unwrap();
            assert_eq!((host.bare, &*host.full), (bare, full), "{raw}");
        }
        assert_eq!(AskedHost::new("a", true, true).unwrap().full, "a:443");
        assert_eq!(AskedHost::new("a", true, false).unwrap().full, "a");
        assert!(AskedHost::new("", true, true).is_none());
    }

    #[test]
    fn stars_stand_for_at_least_one_character_and_any_port() {
        for (rule, host, expected) in [
            ("*.a.test", "x.a.test", true),
            ("*.a.test", "x.y.a.test:81", true),
            ("*.a.test", ".a.test", false),
            ("*.a.test", "a.test", false),
            ("b.*", "b.com:81", true),
            ("b.*", "b", false),
            ("*.a.test:81", "x.a.test:81", true),
            ("*.a.test:81", "x.a.test", false),
            ("*.a.test:80", "x.a.test", true),
            ("b.*:81", "b.com:81", true),
            ("b.*:81", "b.:81", false),
            ("b.*:81", "b.com", false),
            ("a.test", "a.test", false),
        ] {
            let asked = AskedHost::new(host, false, true).unwrap();
            assert_eq!(OldHost::parse(rule).fits_wildcard(&asked), expected, "{rule} {host}");
        }
    }
}
