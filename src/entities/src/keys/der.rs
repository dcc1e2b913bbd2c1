//! The little DER that key files need.

/// Tags of the values read here.
pub(super) mod tag {
    pub(in crate::keys) const INTEGER: u8 = 0x02;
    pub(in crate::keys) const BIT_STRING: u8 = 0x03;
    pub(in crate::keys) const OCTET_STRING: u8 = 0x04;
    pub(in crate::keys) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(in crate::keys) const SEQUENCE: u8 = 0x30;
    pub(in crate::keys) const CONTEXT_0: u8 = 0xa0;
    pub(in crate::keys) const CONTEXT_1: u8 = 0xa1;
}

/// Reads values one after another.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next value when it has this tag.
    pub(super) fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (content, rest) = split(self.0, tag)?;
        self.0 = rest;
        Some(content)
    }

    /// The next value with its header.
    pub(super) fn whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (_, rest) = split(self.0, tag)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(whole)
    }
}

fn split(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let (&short, rest) = rest.split_first()?;
    if first != tag {
        return None;
    }
    let (length, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
            (digits.iter().fold(0usize, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

/// Object identifiers as dotted text.
pub(super) fn dotted(bytes: &[u8]) -> String {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc = 0u64;
    for byte in bytes {
        arc = arc.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if arcs.is_empty() {
                let root = (arc / 40).min(2);
                arcs.extend([root, arc - root * 40]);
            } else {
                arcs.push(arc);
            }
            arc = 0;
        }
    }
    arcs.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

/// `RSAPublicKey` made of modulus and exponent, each with its header.
pub(super) fn rsa_from(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let content = [modulus, exponent].concat();
    let length = content.len();
    let mut key = vec![tag::SEQUENCE];
    match length {
        0..=0x7f => key.push(length as u8),
        0x80..=0xff => key.extend([0x81, length as u8]),
        _ => key.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    key.extend(content);
    key
}

/// An `RSAPublicKey` as it is, when it is one.
pub(super) fn rsa_public(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut members = Reader(Reader(bytes).value(tag::SEQUENCE)?);
    Some(rsa_from(members.whole(tag::INTEGER)?, members.whole(tag::INTEGER)?))
}
