//! Host names, addresses and ports.
//!
//! More than one `:` makes an IPv6 address; digits and dots with at most one `:` an IPv4 address; anything else a
//! name. Source: Kong 3.9.1 `kong/tools/ip.lua`.

use std::net::{Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind {
    Ipv4,
    Ipv6,
    Name,
}

/// A host with its port taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) kind: HostKind,
    /// IPv6 in brackets with eight groups, else as given.
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
}

const BAD_PORT: &str = "invalid port number";

/// Takes an address apart. The error is `invalid port number` or names the address.
pub(crate) fn parse_address(text: &str) -> Result<Address, String> {
    if text.matches(':').count() > 1 {
        return ipv6(text);
    }
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ':')) {
        return ipv4(text);
    }
    name(text)
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| BAD_PORT.to_owned())
}

fn ipv4(text: &str) -> Result<Address, String> {
    let invalid = || format!("invalid ipv4 address: {text}");
    let (host, after) = text.split_once(':').map_or((text, None), |(host, after)| (host, Some(after)));
    let groups: Vec<&str> = host.split('.').collect();
    let valid = groups.len() == 4
        && groups.iter().all(|group| !group.is_empty() && group.parse::<u32>().is_ok_and(|number| number <= 255));
    if !valid {
        return Err(invalid());
    }
    let port = after.map(|after| if after.is_empty() { Err(invalid()) } else { port(after) }).transpose()?;
    Ok(Address { kind: HostKind::Ipv4, host: host.to_owned(), port })
}

fn ipv6(text: &str) -> Result<Address, String> {
    let invalid = || format!("invalid ipv6 address: {text}");
    let (host, after) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(invalid)?,
        None => (text, ""),
    };
    let port = match after {
        "" => None,
        after => Some(port(after.strip_prefix(':').ok_or_else(invalid)?)?),
    };
    let address: Ipv6Addr = host.parse().map_err(|_| invalid())?;
    let groups: Vec<String> = address.segments().iter().map(|group| format!("{group:04x}")).collect();
    Ok(Address { kind: HostKind::Ipv6, host: format!("[{}]", groups.join(":")), port })
}

fn name(text: &str) -> Result<Address, String> {
    let invalid = || format!("invalid hostname: {text}");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, digits)) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, Some(port(digits)?))
        }
        _ => (text, None),
    };
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if host.is_empty() || !host.chars().all(legal) {
        return Err(invalid());
    }
    let labels: Vec<&str> = host.split('.').collect();
    let last = labels.len() - 1;
    let bad = |(index, label): (usize, &&str)| label.ends_with('-') || (label.is_empty() && index != last);
    if labels.iter().enumerate().any(bad) {
        return Err(invalid());
    }
    Ok(Address { kind: HostKind::Name, host: host.to_owned(), port })
}

/// An address or name without port.
pub(crate) fn host(text: &str) -> Result<(), String> {
    match parse_address(text) {
        Ok(Address { port: None, .. }) => Ok(()),
        Ok(_) => Err("must not have a port".to_owned()),
        Err(error) if error == BAD_PORT => Err("must not have a port".to_owned()),
        Err(_) => Err(format!("invalid value: {text}")),
    }
}

pub(crate) fn host_with_optional_port(text: &str) -> Result<(), String> {
    parse_address(text).map(|_| ())
}

/// A name without port.
pub(crate) fn sni(text: &str) -> Result<(), String> {
    match parse_address(text) {
        Ok(Address { kind: HostKind::Name, port: None, .. }) => Ok(()),
        Ok(Address { kind: HostKind::Name, .. }) => Err("must not have a port".to_owned()),
        Ok(_) => Err("must not be an IP".to_owned()),
        Err(error) if error == BAD_PORT => Err("must not have a port".to_owned()),
        Err(_) => Err(format!("invalid value: {text}")),
    }
}

/// A name that may hold one `*` as its first or last character.
pub(crate) fn wildcard_host(text: &str) -> Result<(), String> {
    let stars: Vec<usize> = text.match_indices('*').map(|(index, _)| index).collect();
    match stars.as_slice() {
        [] => sni(text),
        [index] if *index != 0 && *index != text.len() - 1 => {
            Err("wildcard must be leftmost or rightmost character".to_owned())
        }
        [_] => sni(&text.replace('*', "abc")).map_err(|error| error.replace("abc", "*")),
        _ => Err("only one wildcard must be specified".to_owned()),
    }
}

pub(crate) fn upstream_name(text: &str) -> Result<(), String> {
    let fault = |reason: &str| Err(format!("Invalid name ('{text}'); {reason}"));
    match parse_address(text) {
        Ok(Address { kind: HostKind::Name, port: None, .. }) => Ok(()),
        Ok(Address { kind: HostKind::Name, .. }) => fault("no port allowed"),
        Ok(_) => fault("no ip addresses allowed"),
        Err(_) => fault("must be a valid hostname"),
    }
}

pub(crate) fn target(text: &str) -> Result<(), String> {
    let invalid = |_| format!("Invalid target ('{text}'); not a valid hostname or ip address");
    parse_address(text).map(|_| ()).map_err(invalid)
}

fn is_ip(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok() || text.parse::<Ipv6Addr>().is_ok()
}

pub(crate) fn ip(text: &str) -> Result<(), String> {
    if is_ip(text) { Ok(()) } else { Err(format!("not an ip address: {text}")) }
}

pub(crate) fn ip_or_cidr(text: &str) -> Result<(), String> {
    let valid = match text.split_once('/') {
        None => is_ip(text),
        Some((address, bits)) => {
            let most = if address.contains(':') { 128 } else { 32 };
            is_ip(address)
                && !bits.is_empty()
                && bits.bytes().all(|byte| byte.is_ascii_digit())
                && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
        }
    };
    if valid { Ok(()) } else { Err(format!("invalid ip or cidr range: '{text}'")) }
}

#[cfg(test)]
mod tests {
    use super::{host, parse_address, upstream_name, wildcard_host};

    #[test]
    fn addresses_are_taken_apart_and_normalised() {
        for (text, host, port) in [
            ("a.test", "a.test", None),
            ("a.test:81", "a.test", Some(81)),
            ("10.0.0.1:80", "10.0.0.1", Some(80)),
            ("::1", "[0000:0000:0000:0000:0000:0000:0000:0001]", None),
            ("[2001:db8::1]:443", "[2001:0db8:0000:0000:0000:0000:0000:0001]", Some(443)),
            ("name.", "name.", None),
        ] {
            let address = parse_address(text).unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
        }
        for text in ["", "a b", "a.test:x", "a-.test", "a..test", "1.2.3", "1.2.3.256", "[::1", "::1::", "a:70000"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn each_kind_of_host_names_its_fault() {
        assert_eq!(host("a:80").unwrap_err(), "must not have a port");
        assert_eq!(host("a b").unwrap_err(), "invalid value: a b");
        assert_eq!(wildcard_host("a.*.test").unwrap_err(), "wildcard must be leftmost or rightmost character");
        assert_eq!(wildcard_host("1.2.3.4").unwrap_err(), "must not be an IP");
        assert!(wildcard_host("*.test").is_ok());
        assert!(wildcard_host("test.*").is_ok());
        assert_eq!(upstream_name("1.2.3.4").unwrap_err(), "Invalid name ('1.2.3.4'); no ip addresses allowed");
    }
}
