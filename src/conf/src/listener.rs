//! The grammar of `*_listen` settings: `ip:port` and flags, or `off`.

use std::net::{IpAddr, SocketAddr};

/// Every flag of a listener, as Kong writes the patterns of its own.
const FLAGS: &[&str] =
    &["ssl", "http2", "proxy_protocol", "deferred", "bind", "reuseport", "udp", "backlog", "ipv6only", "so_keepalive"];

/// TCP keepalive of the connections of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepAlive {
    /// `so_keepalive=on`
    On,
    /// `so_keepalive=off`
    Off,
    /// `so_keepalive=idle:interval:count`, the times as written (`30m`), each part may be empty.
    Tuned(String),
}

/// One address a node listens at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Address and port.
    pub address: SocketAddr,
    /// `ssl`: TLS is spoken.
    pub ssl: bool,
    /// `http2`: HTTP/2 is accepted.
    pub http2: bool,
    /// `proxy_protocol`: connections begin with a PROXY header.
    pub proxy_protocol: bool,
    /// `deferred`: accept only when data has come.
    pub deferred: bool,
    /// `bind`: a socket of its own. gwctl always makes one.
    pub bind: bool,
    /// `reuseport`: one socket for each worker.
    pub reuseport: bool,
    /// `udp`, for `stream_listen` only.
    pub udp: bool,
    /// `backlog=N`
    pub backlog: Option<u32>,
    /// `ipv6only=on|off`
    pub ipv6only: Option<bool>,
    /// `so_keepalive=...`
    pub so_keepalive: Option<KeepAlive>,
    /// The text it was read from.
    pub text: String,
}

impl Listener {
    /// Reads one element of a list; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let address = words.next().ok_or("expected `ip:port`, found nothing")?;
        let mut listener = Self {
            address: address_of(address)?,
            ssl: false,
            http2: false,
            proxy_protocol: false,
            deferred: false,
            bind: false,
            reuseport: false,
            udp: false,
            backlog: None,
            ipv6only: None,
            so_keepalive: None,
            text: text.to_owned(),
        };
        words.try_for_each(|flag| listener.set(flag))?;
        Ok(listener)
    }

    fn set(&mut self, flag: &str) -> Result<(), String> {
        match flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value))) {
            ("ssl", None) => self.ssl = true,
            ("http2", None) => self.http2 = true,
            ("proxy_protocol", None) => self.proxy_protocol = true,
            ("deferred", None) => self.deferred = true,
            ("bind", None) => self.bind = true,
            ("reuseport", None) => self.reuseport = true,
            ("udp", None) => self.udp = true,
            ("backlog", Some(value)) => {
                self.backlog = Some(value.parse().map_err(|_| format!("backlog `{value}` is not a whole number"))?);
            }
            ("ipv6only", Some("on")) => self.ipv6only = Some(true),
            ("ipv6only", Some("off")) => self.ipv6only = Some(false),
            ("so_keepalive", Some("on")) => self.so_keepalive = Some(KeepAlive::On),
            ("so_keepalive", Some("off")) => self.so_keepalive = Some(KeepAlive::Off),
            ("so_keepalive", Some(value)) if tuned(value) => self.so_keepalive = Some(KeepAlive::Tuned(value.into())),
            (name, _) => {
                let near = crate::near::did_you_mean(name, FLAGS.iter().copied()).map(|hint| format!(", {hint}"));
                return Err(format!("unknown flag `{flag}`{}", near.unwrap_or_default()));
            }
        }
        Ok(())
    }
}

/// `idle:interval:count`, as Kong's pattern `%w*:%w*:%d*`.
fn tuned(value: &str) -> bool {
    let parts: Vec<&str> = value.split(':').collect();
    matches!(parts[..], [idle, interval, count] if [idle, interval].iter().all(|part| part.chars().all(|c| c.is_ascii_alphanumeric()))
        && count.chars().all(|c| c.is_ascii_digit()))
}

fn address_of(text: &str) -> Result<SocketAddr, String> {
    if text == "off" {
        return Err("`off` stands alone".into());
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(|| format!("`{text}` has no port"))?;
    let port: u16 = port.parse().map_err(|_| format!("`{port}` is not a port (0 to 65535)"))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) if bare.is_none() => Err(format!("write the IPv6 address in brackets: `[{host}]:{port}`")),
        Ok(IpAddr::V4(_)) if bare.is_some() => Err(format!("`{host}` is not an IPv6 address")),
        Ok(ip) => Ok(SocketAddr::new(ip, port)),
        Err(_) if host == "localhost" => Err(format!("`localhost` is a name, write `127.0.0.1:{port}`")),
        Err(_) => Err(format!("`{host}` is not an IP address")),
    }
}

/// Reads a whole list; `off` gives none. Every mistake is returned.
pub(crate) fn parse_all(items: &[String]) -> Result<Vec<Listener>, Vec<String>> {
    if items.is_empty() || matches!(items, [off] if off == "off") {
        return Ok(Vec::new());
    }
    let (good, bad): (Vec<_>, Vec<_>) = items.iter().map(|item| Listener::parse(item)).partition(Result::is_ok);
    if bad.is_empty() {
        return Ok(good.into_iter().flatten().collect());
    }
    Err(bad.into_iter().filter_map(Result::err).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_flags_are_read() {
        let listener =
            Listener::parse("[::1]:8443 http2 ssl reuseport backlog=16384 so_keepalive=30m::10 ipv6only=on").unwrap();
        assert_eq!(listener.address, "[::1]:8443".parse().unwrap());
        assert!(listener.http2 && listener.ssl && listener.reuseport && !listener.deferred);
        assert_eq!((listener.backlog, listener.ipv6only), (Some(16384), Some(true)));
        assert_eq!(listener.so_keepalive, Some(KeepAlive::Tuned("30m::10".into())));
    }

    #[test]
    fn each_mistake_says_what_to_write() {
        let cases = [
            ("localhost:8000", "`localhost` is a name, write `127.0.0.1:8000`"),
            ("8000", "`8000` has no port"),
            ("127.0.0.1:99999", "`99999` is not a port (0 to 65535)"),
            ("::1:80", "write the IPv6 address in brackets: `[::1]:80`"),
            ("[10.0.0.1]:80", "`[10.0.0.1]` is not an IPv6 address"),
            ("gateway:80", "`gateway` is not an IP address"),
            ("0.0.0.0:80 sll", "unknown flag `sll`, did you mean `ssl`?"),
            ("0.0.0.0:80 backlog=many", "backlog `many` is not a whole number"),
            ("", "expected `ip:port`, found nothing"),
        ];
        for (text, fault) in cases {
            assert_eq!(Listener::parse(text).unwrap_err(), fault, "{text}");
        }
    }

    #[test]
    fn off_stands_alone_and_all_mistakes_are_returned() {
        assert_eq!(parse_all(&["off".into()]), Ok(Vec::new()));
        let faults = parse_all(&["off".into(), "0.0.0.0:80".into(), "x:1".into()]).unwrap_err();
        assert_eq!(faults, ["`off` stands alone", "`x` is not an IP address"]);
    }
}
