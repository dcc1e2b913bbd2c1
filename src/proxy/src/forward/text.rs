//! Addresses as text, without the general formatter: they are written for every request.

use std::net::{IpAddr, Ipv6Addr};

/// Longest text: an address of IPv6 with one of IPv4 at its end.
const SIZE: usize = 45;

/// A short text.
pub(super) struct Text {
    bytes: [u8; SIZE],
    length: usize,
}

impl Text {
    /// The address; one of IPv4 that is written as IPv6 becomes IPv4 again.
    pub(super) fn of_ip(ip: IpAddr) -> Text {
        match ip.to_canonical() {
            IpAddr::V4(ip) => {
                let mut text = Text::empty();
                for (place, part) in ip.octets().into_iter().enumerate() {
                    if place > 0 {
                        text.push(b'.');
                    }
                    text.push_octet(part);
                }
                text
            }
            IpAddr::V6(ip) => Text::of_ipv6(ip),
        }
    }

    fn of_ipv6(ip: Ipv6Addr) -> Text {
        let mut text = Text::empty();
        ip.to_string().bytes().for_each(|byte| text.push(byte));
        text
    }

    fn empty() -> Text {
        Text { bytes: [0; SIZE], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn push_octet(&mut self, octet: u8) {
        if octet >= 100 {
            self.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            self.push(b'0' + octet / 10 % 10);
        }
        self.push(b'0' + octet % 10);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_the_library_does() {
        for octet in 0..=u8::MAX {
            let ip = std::net::Ipv4Addr::new(octet, 0, 9, octet);
            assert_eq!(Text::of_ip(ip.into()).as_bytes(), ip.to_string().as_bytes());
        }
        let longest = "1111:2222:3333:4444:5555:6666:7777:8888";
        for ip in ["0.0.0.0", "127.0.0.1", "10.200.3.45", "255.255.255.255", "::1", "2001:db8::ff", longest] {
            assert_eq!(Text::of_ip(ip.parse().unwrap()).as_bytes(), ip.as_bytes());
        }
        assert_eq!(Text::of_ip("::ffff:1.2.3.4".parse().unwrap()).as_bytes(), b"1.2.3.4");
    }
}
