//! As much DER as questions of revocation need.

/// Tags as they stand in the encoding.
pub(crate) mod tag {
    pub(crate) const INTEGER: u8 = 0x02;
    pub(crate) const BIT_STRING: u8 = 0x03;
    pub(crate) const OCTET_STRING: u8 = 0x04;
    pub(crate) const NULL: u8 = 0x05;
    pub(crate) const OID: u8 = 0x06;
    pub(crate) const ENUMERATED: u8 = 0x0a;
    pub(crate) const GENERALIZED_TIME: u8 = 0x18;
    pub(crate) const SEQUENCE: u8 = 0x30;

    /// A tagged element that holds others.
    pub(crate) const fn context(number: u8) -> u8 {
        0xa0 | number
    }

    /// A tagged element that holds a value.
    pub(crate) const fn implicit(number: u8) -> u8 {
        0x80 | number
    }
}

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// Head and content.
    pub(crate) whole: &'a [u8],
}

impl<'a> Element<'a> {
    /// Reads what the element holds.
    pub(crate) fn inside(self) -> Reader<'a> {
        Reader(self.content)
    }
}

/// Reads elements one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next element; None when there is none, or none that is whole.
    pub(crate) fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Element { tag, content, whole })
    }

    /// The next element if it has this tag; else nothing is read.
    pub(crate) fn take(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.next().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }
}

/// Writes an element.
pub(crate) fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut written = vec![tag];
    if length < 0x80 {
        written.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let digits = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len() - 1)..];
        written.push(0x80 | digits.len() as u8);
        written.extend_from_slice(digits);
    }
    written.extend(parts.iter().copied().flatten());
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_is_not() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 70_000] {
            let content = vec![7; length];
            let written = element(tag::OCTET_STRING, &[&content]);
            let mut reader = Reader(&written);
            let read = reader.next().unwrap();
            assert_eq!((read.tag, read.content, read.whole), (tag::OCTET_STRING, &content[..], &written[..]));
            assert!(reader.0.is_empty());
            assert_eq!(Reader(&written[..written.len() - 1]).next(), None);
        }
        for nonsense in
            [&[0x30, 0x80, 0, 0][..], &[0x30, 0x85, 1, 1, 1, 1, 1], &[0x30, 0x84, 0xff, 0xff, 0xff, 0xff], &[0x30]]
        {
            assert_eq!(Reader(nonsense).next(), None);
        }
        let mut reader = Reader(&[0x02, 0x01, 0x05]);
        assert_eq!(reader.take(tag::SEQUENCE), None);
        assert_eq!(reader.take(tag::INTEGER).unwrap().content, [5]);
    }
}
