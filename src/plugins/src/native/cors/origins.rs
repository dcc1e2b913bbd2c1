//! Which origins are allowed.

use crate::PluginError;
use crate::native::header_value;
use fancy_regex::Regex;
use gwctl_http1::Value as HeaderText;
use http::header::HeaderValue;

/// The list `origins`, prepared.
pub(super) enum Origins {
    /// No list, or a star alone.
    Any,
    /// One origin in plain text: it is told to every client, whoever asks.
    Fixed(HeaderValue),
    /// A star among others: any client that names its origin.
    AnyNamed,
    /// The client's origin, when it fits one of these.
    Listed(Vec<Entry>),
}

/// One element of the list.
pub(super) enum Entry {
    /// The same origin.
    Same(String),
    /// The whole origin fits.
    Fits(Regex),
    /// The host fits: for expressions without a colon.
    HostFits(Regex),
}

/// Whether a text may be an origin and is no expression.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:/-".contains(&byte))
}

impl Origins {
    pub(super) fn new(list: &[String]) -> Result<Origins, PluginError> {
        match list {
            [] => Ok(Self::Any),
            [only] if only == "*" => Ok(Self::Any),
            [only] if is_plain(only) && !only.is_empty() => Ok(Self::Fixed(header_value("origins", only)?)),
            list if list.iter().any(|entry| entry == "*") => Ok(Self::AnyNamed),
            list => Ok(Self::Listed(list.iter().map(|entry| Entry::new(entry)).collect::<Result<_, _>>()?)),
        }
    }

    /// Whether the answer depends on the client's origin, as far as caches must know. Kong says so for a fixed one, too.
    pub(super) fn vary(&self) -> bool {
        !matches!(self, Self::Any)
    }

    /// Value of `Access-Control-Allow-Origin` for a request.
    pub(super) fn allowed(&self, origin: Option<HeaderText<'_>>) -> Option<HeaderValue> {
        match self {
            Self::Any => Some(HeaderValue::from_static("*")),
            Self::Fixed(origin) => Some(origin.clone()),
            Self::AnyNamed => origin.map(|_| HeaderValue::from_static("*")),
            Self::Listed(entries) => {
                let origin = Origin::of(origin?.to_str()?);
                let fits = entries.iter().any(|entry| entry.fits(&origin));
                if fits { HeaderValue::try_from(origin.whole).ok() } else { None }
            }
        }
    }
}

impl Entry {
    fn new(text: &str) -> Result<Entry, PluginError> {
        if is_plain(text) {
            return Ok(Self::Same(Origin::of(text).whole));
        }
        let inner = text.strip_prefix('^').unwrap_or(text);
        let end = if text.ends_with('$') { "" } else { "$" };
        // The whole expression begins at the beginning, whatever it chooses between.
        let regex = Regex::new(&format!("^(?:{inner}{end})"));
        let regex =
            regex.map_err(|error| PluginError(format!("'config.origins': '{text}' is no expression: {error}")))?;
        Ok(if text.contains(':') { Self::Fits(regex) } else { Self::HostFits(regex) })
    }

    /// An expression that gives up, since it has too many ways to go, does not fit.
    fn fits(&self, origin: &Origin) -> bool {
        match self {
            Self::Same(text) => *text == origin.whole,
            Self::Fits(regex) => regex.is_match(&origin.whole).unwrap_or(false),
            Self::HostFits(regex) => regex.is_match(&origin.host).unwrap_or(false),
        }
    }
}

/// An origin without the default port of its scheme; a text that is none stands for itself.
struct Origin {
    whole: String,
    host: String,
}

impl Origin {
    fn of(text: &str) -> Origin {
        Self::parse(text).unwrap_or_else(|| Origin { whole: text.to_owned(), host: text.to_owned() })
    }

    fn parse(text: &str) -> Option<Origin> {
        let text = text.split('#').next()?;
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme), rest),
            None => (None, text.strip_prefix("//")?),
        };
        let authority = rest.split(['/', '?']).next()?;
        let authority = authority.split_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if host.is_empty() {
            return None;
        }
        let port = port.filter(|port| !matches!((scheme, *port), (Some("http"), "80") | (Some("https"), "443")));
        let scheme = scheme.map(|scheme| format!("{scheme}://")).unwrap_or_default();
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        Some(Origin { whole: format!("{scheme}{host}{port}"), host: bare.to_owned() })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    fn allowed(list: &[&str], origin: &str) -> String {
        let list: Vec<_> = list.iter().map(|entry| (*entry).to_owned()).collect();
        let origin = HeaderText::new(origin.as_bytes());
        let allowed = Origins::new(&list).unwrap().allowed(origin);
        allowed.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn one_plain_origin_is_told_whoever_asks() {
        assert_eq!(allowed(&["http://a.test"], "http://evil.test"), "http://a.test");
        assert!(Origins::new(&["http://a.test".to_owned()]).unwrap().vary());
    }

    #[test]
    fn of_several_origins_the_one_that_asks_is_told_without_its_default_port() {
        let list = ["http://a.test", "https://b.test:443", "c.test"];
        assert_eq!(allowed(&list, "http://a.test:80"), "http://a.test");
        assert_eq!(allowed(&list, "https://b.test"), "https://b.test");
        assert_eq!(allowed(&list, "c.test"), "c.test");
        for stranger in ["https://a.test", "http://a.test:8080", "http://c.test", "http://a.test.evil", "null", ""] {
            assert_eq!(allowed(&list, stranger), "", "{stranger}");
        }
    }

    #[test]
    fn an_expression_without_colon_is_held_against_the_host() {
        let list = [r"(.*[.])?a\.test"];
        assert_eq!(allowed(&list, "https://x.a.test:8443"), "https://x.a.test:8443");
        assert_eq!(allowed(&list, "https://a.test"), "https://a.test");
        assert_eq!(allowed(&list, "https://a.test.evil"), "", "the end is anchored");
        assert_eq!(allowed(&list, "https://evil-a.test"), "", "the beginning is anchored");
    }

    #[test]
    fn an_expression_with_colon_is_held_against_the_whole_origin() {
        for expression in [r"https://.*\.test", r"^https://.*\.test$", r"http://no|https://.*\.test"] {
            assert_eq!(allowed(&[expression], "https://a.test"), "https://a.test", "{expression}");
            assert_eq!(allowed(&[expression], "xhttps://a.test"), "", "{expression}");
            assert_eq!(allowed(&[expression], "http://a.test"), "", "{expression}");
        }
        assert_eq!(allowed(&["^https://(?!evil).*$"], "https://evil.test"), "");
    }

    #[test]
    fn an_address_keeps_its_brackets() {
        assert_eq!(allowed(&[r"http://\[::1\]"], "http://[::1]:80"), "http://[::1]");
        assert_eq!(allowed(&["^::1$"], "http://[::1]"), "", "it has a colon, so it means the whole");
    }

    #[test]
    fn a_star_among_others_allows_every_named_origin() {
        assert_eq!(allowed(&["http://a.test", "*"], "http://b.test"), "*");
        let list = ["http://a.test".to_owned(), "*".to_owned()];
        assert_eq!(Origins::new(&list).unwrap().allowed(None), None);
    }

    #[test]
    fn a_malformed_expression_is_refused() {
        assert!(Origins::new(&["(".to_owned()]).err().unwrap().0.contains("config.origins"));
    }
}
