//! Headers as a list, in the order and with the bytes they came in.
//!
//! A head that was read is kept whole, and a field is two places in it. What is added stands in a buffer of its own. So
//! a head costs one allocation for its list, names keep their case, and what nobody touched is written as it came.

use crate::names::{IntoName, Name, Names, ValidName, number, write_usual};
use crate::value::{AsValue, Value};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName};
use std::fmt;
use std::ops::Range;

mod iter;
mod lines;
#[cfg(test)]
mod tests;

pub use iter::Iter;
pub use lines::{Fate, Line};

/// The headers of a message.
///
/// Names are compared without regard to case. A name that is added is written as the message itself spelled it, else in the
/// usual form (`X-Real-IP`), and for a message of HTTP/2 in lower case unless HTTP/1 or the gateway brings it along.
#[derive(Clone, Default)]
pub struct Headers {
    head: Bytes,
    /// Names and values that did not come with the head.
    added: Vec<u8>,
    fields: Vec<Field>,
    /// Known names that stand in the list, and those that stood in it once.
    present: u64,
    once: u64,
    removed: u32,
    lower: bool,
    reason: Option<Reason>,
}

/// One line. Places are counted from the start of the head, or of what was added.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Field {
    pub(crate) name: u32,
    pub(crate) value: u32,
    pub(crate) value_length: u32,
    pub(crate) name_length: u16,
    pub(crate) known: u8,
    pub(crate) state: u8,
}

/// The name, or the value, stands in what was added.
const ADDED_NAME: u8 = 1;
const ADDED_VALUE: u8 = 2;
/// It was removed, and is kept to know how its name was spelled.
const REMOVED: u8 = 4;
/// It came as it would be written: a blank before the value, none behind it, CR and LF.
pub(crate) const REGULAR: u8 = 8;

/// Bytes of room for headers that are added.
const ROOM: usize = 224;

/// Where the words after a status stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reason {
    pub(crate) status: StatusCode,
    pub(crate) start: u32,
    pub(crate) length: u32,
}

impl Headers {
    /// None.
    pub const fn new() -> Headers {
        Headers {
            head: Bytes::new(),
            added: Vec::new(),
            fields: Vec::new(),
            present: 0,
            once: 0,
            removed: 0,
            lower: false,
            reason: None,
        }
    }

    /// Those of a head that was read.
    pub(crate) fn of_head(head: Bytes, fields: Vec<Field>, reason: Option<Reason>) -> Headers {
        let present = fields.iter().fold(0, |present, field| present | bit(field));
        Headers { head, fields, present, once: present, reason, ..Headers::new() }
    }

    /// Those of a message of HTTP/2.
    pub fn of_http2(map: &HeaderMap) -> Headers {
        let length = map.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        let (added, fields) = (Vec::with_capacity(length), Vec::with_capacity(map.len()));
        let mut headers = Headers { lower: true, added, fields, ..Headers::new() };
        for (name, value) in map {
            headers.append(name, value);
        }
        headers
    }

    /// As the library for HTTP/2 has them.
    pub fn to_map(&self) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.len());
        for (name, value) in self {
            if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                map.append(name, value.to_owned());
            }
        }
        map
    }

    /// How many there are; a name counts as often as it stands there.
    pub fn len(&self) -> usize {
        self.fields.len() - self.removed as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all names and values.
    pub fn size(&self) -> usize {
        self.live().map(|field| usize::from(field.name_length) + field.value_length as usize).sum()
    }

    /// The first value of a header.
    pub fn get<'n>(&self, name: impl IntoName<'n>) -> Option<Value<'_>> {
        self.find(name.into_name()).map(|field| self.value(field))
    }

    /// The same as text, see [`Value::to_str`].
    pub fn get_str<'n>(&self, name: impl IntoName<'n>) -> Option<&str> {
        self.get(name)?.to_str()
    }

    /// All values of a header, in order.
    pub fn get_all<'h>(&'h self, name: impl IntoName<'h>) -> impl Iterator<Item = Value<'h>> {
        let name = name.into_name();
        let fields = if self.is_absent(name) { &[] } else { self.fields.as_slice() };
        let wanted = move |field: &&Field| field.state & REMOVED == 0 && self.is_called(field, name);
        fields.iter().filter(wanted).map(|field| self.value(field))
    }

    /// Whether there is such a header.
    pub fn contains<'n>(&self, name: impl IntoName<'n>) -> bool {
        let name = name.into_name();
        if name.known != 0 { self.present & name.bit() != 0 } else { self.find(name).is_some() }
    }

    /// Names as they are written, and values, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { headers: self, fields: self.fields.iter() }
    }

    /// All of them, in order.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.live().map(|field| Line { headers: self, field })
    }

    /// Whether one of these names is there.
    pub fn contains_any(&self, names: Names) -> bool {
        self.present & names.0 != 0
    }

    /// Adds a value behind those there are.
    pub fn append<'n>(&mut self, name: impl ValidName<'n>, value: impl AsValue) {
        self.push(name.into_name(), value.as_value());
    }

    /// Puts a value in place of all there are.
    pub fn insert<'n>(&mut self, name: impl ValidName<'n>, value: impl AsValue) {
        let (name, value) = (name.into_name(), value.as_value());
        let mut first = None;
        let end = if self.is_absent(name) { 0 } else { self.fields.len() };
        for at in 0..end {
            let field = self.fields[at];
            if field.state & REMOVED == 0 && self.is_called(&field, name) {
                if first.is_some() {
                    self.mark_removed(at);
                } else {
                    first = Some(at);
                }
            }
        }
        let Some(at) = first else { return self.push(name, value) };
        let (value, value_length) = self.add(value.0);
        let field = &mut self.fields[at];
        field.state = (field.state & !REGULAR) | ADDED_VALUE;
        (field.value, field.value_length) = (value, value_length);
    }

    /// Adds a whole line, so that it can be written in one piece.
    fn push(&mut self, name: Name<'_>, value: Value<'_>) {
        self.make_room();
        let start = self.added.len();
        match self.spelled(name).map(|field| (field.state & ADDED_NAME, name_range(field))) {
            None => write_usual(&mut self.added, name, self.lower),
            Some((ADDED_NAME, range)) => {
                self.added.extend_from_within(range);
                self.added.extend_from_slice(b": ");
            }
            Some((_, range)) => {
                self.added.extend_from_slice(self.head.get(range).unwrap_or_default());
                self.added.extend_from_slice(b": ");
            }
        }
        let place = self.added.len();
        self.added.extend_from_slice(value.0);
        self.added.extend_from_slice(b"\r\n");
        self.fields.push(Field {
            name: start as u32,
            value: place as u32,
            value_length: value.len() as u32,
            name_length: (place - start - 2) as u16,
            known: name.known,
            state: ADDED_NAME | ADDED_VALUE | REGULAR,
        });
        self.present |= name.bit();
        self.once |= name.bit();
    }

    /// Removes all values of a header; whether there was one.
    pub fn remove<'n>(&mut self, name: impl IntoName<'n>) -> bool {
        let name = name.into_name();
        if self.is_absent(name) {
            return false;
        }
        self.remove_where(|field, written| {
            if name.known != 0 { field.known == name.known } else { field.known == 0 && is_same(written, name) }
        })
    }

    /// Removes the headers with these names.
    pub fn remove_all(&mut self, names: Names) {
        if self.contains_any(names) {
            for field in &mut self.fields {
                if field.state & REMOVED == 0 && names.0 & bit(field) != 0 {
                    field.state |= REMOVED;
                    self.removed += 1;
                }
            }
            self.present &= !names.0;
        }
    }

    /// Removes the headers that are not kept, by their names as they are written.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8]) -> bool) {
        self.remove_where(|_, written| !keep(written));
    }

    fn remove_where(&mut self, mut goes: impl FnMut(&Field, &[u8]) -> bool) -> bool {
        let mut found = false;
        for at in 0..self.fields.len() {
            let field = self.fields[at];
            if field.state & REMOVED == 0 && goes(&field, self.name(&field)) {
                self.mark_removed(at);
                found = true;
            }
        }
        if found {
            self.present = self.live().fold(0, |present, field| present | bit(field));
        }
        found
    }

    fn mark_removed(&mut self, at: usize) {
        self.fields[at].state |= REMOVED;
        self.removed += 1;
    }

    fn live(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.state & REMOVED == 0)
    }

    /// Whether it needs no search to know that the name is not there.
    fn is_absent(&self, name: Name<'_>) -> bool {
        name.known != 0 && self.present & name.bit() == 0
    }

    fn find(&self, name: Name<'_>) -> Option<&Field> {
        if self.is_absent(name) {
            return None;
        }
        self.live().find(|field| self.is_called(field, name))
    }

    fn is_called(&self, field: &Field, name: Name<'_>) -> bool {
        if name.known != 0 { field.known == name.known } else { field.known == 0 && is_same(self.name(field), name) }
    }

    fn name(&self, field: &Field) -> &[u8] {
        let from = if field.state & ADDED_NAME == 0 { &self.head[..] } else { &self.added };
        part(from, field.name, u32::from(field.name_length))
    }

    fn value(&self, field: &Field) -> Value<'_> {
        let from = if field.state & ADDED_VALUE == 0 { &self.head[..] } else { &self.added };
        Value(part(from, field.value, field.value_length))
    }

    /// Keeps bytes that did not come with the head.
    fn add(&mut self, bytes: &[u8]) -> (u32, u32) {
        self.make_room();
        let start = self.added.len() as u32;
        self.added.extend_from_slice(bytes);
        (start, bytes.len() as u32)
    }

    /// Whoever adds a header mostly adds some.
    fn make_room(&mut self) {
        if self.added.capacity() == 0 {
            self.added.reserve(ROOM);
        }
    }

    /// A field of this name, removed or not.
    #[inline]
    fn spelled(&self, name: Name<'_>) -> Option<&Field> {
        if name.known != 0 && self.once & name.bit() == 0 {
            return None;
        }
        self.fields.iter().find(|field| self.is_called(field, name))
    }

    /// Writes the start of a line, up to the value, with the name as the message spelled it, else in its usual form.
    #[inline]
    pub(crate) fn write_name(&self, out: &mut BytesMut, name: Name<'_>) {
        match self.spelled(name) {
            Some(field) => {
                out.extend_from_slice(self.name(field));
                out.extend_from_slice(b": ");
            }
            None => write_usual(out, name, self.lower),
        }
    }

    /// The words after this status as they came; None when it came with none.
    pub(crate) fn reason(&self, status: StatusCode) -> Option<&[u8]> {
        let reason = self.reason.filter(|reason| reason.status == status)?;
        self.head.get(reason.start as usize..(reason.start + reason.length) as usize)
    }
}

fn name_range(field: &Field) -> Range<usize> {
    field.name as usize..field.name as usize + usize::from(field.name_length)
}

fn bit(field: &Field) -> u64 {
    (1 << field.known) & !1
}

fn is_same(written: &[u8], name: Name<'_>) -> bool {
    written.eq_ignore_ascii_case(name.as_str().as_bytes())
}

fn part(bytes: &[u8], start: u32, length: u32) -> &[u8] {
    bytes.get(start as usize..start as usize + length as usize).unwrap_or_default()
}

impl Field {
    /// A line of a head, by its places there.
    pub(crate) fn of_head(head: &[u8], name: (usize, usize), value: (usize, usize)) -> Field {
        let ((name, name_length), (value, value_length)) = (name, value);
        let written = head.get(name..name + name_length).unwrap_or_default();
        let end = value + value_length;
        let regular = value == name + name_length + 2
            && head.get(value - 1) == Some(&b' ')
            && head.get(end..end + 2) == Some(b"\r\n");
        Field {
            name: name as u32,
            value: value as u32,
            value_length: value_length as u32,
            name_length: name_length as u16,
            known: number(written),
            state: if regular { REGULAR } else { 0 },
        }
    }
}

impl<'n, N: ValidName<'n>, V: AsValue> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(fields: I) -> Headers {
        let mut headers = Headers::new();
        fields.into_iter().for_each(|(name, value)| headers.append(name, value));
        headers
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}
