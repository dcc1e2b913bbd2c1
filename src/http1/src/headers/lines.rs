//! Writing headers: what became of them since they came decides what is written in one piece.

use super::{ADDED_NAME, Field, Headers, REGULAR, REMOVED, bit};
use crate::names::{Name, Names};
use crate::value::Value;
use bytes::BytesMut;
use std::ops::Range;

/// What becomes of a header when its message is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate<'v> {
    /// It is written.
    Kept,
    /// It is not written.
    LeftOut,
    /// It is written with this value.
    Changed(&'v [u8]),
}

/// A header that may be written.
#[derive(Clone, Copy)]
pub struct Line<'h> {
    pub(super) headers: &'h Headers,
    pub(super) field: &'h Field,
}

impl<'h> Line<'h> {
    /// Whether it is called so.
    pub fn is(self, name: Name<'_>) -> bool {
        self.headers.is_called(self.field, name)
    }

    /// Whether its name is one of these.
    pub fn is_in(self, names: Names) -> bool {
        names.0 & bit(self.field) != 0
    }

    /// Its name as it is written.
    pub fn name(self) -> &'h [u8] {
        self.headers.name(self.field)
    }

    /// Its value.
    pub fn value(self) -> Value<'h> {
        self.headers.value(self.field)
    }
}

/// Lines side by side, of the head or of what was added.
struct Run {
    added: u8,
    range: Range<usize>,
}

impl Headers {
    /// Writes the headers, each as its fate is. Those that stand side by side are written in one piece.
    pub(crate) fn write<'v>(&self, out: &mut BytesMut, mut fate: impl FnMut(Line<'_>) -> Fate<'v>) {
        let mut run = Run { added: 0, range: 0..0 };
        for field in &self.fields {
            if field.state & REMOVED != 0 {
                continue;
            }
            let fate = fate(Line { headers: self, field });
            if fate == Fate::LeftOut {
                continue;
            }
            if fate == Fate::Kept && field.state & REGULAR != 0 {
                let (start, added) = (field.name as usize, field.state & ADDED_NAME);
                if run.range.end != start || run.added != added {
                    out.extend_from_slice(self.piece(&run));
                    run = Run { added, range: start..start };
                }
                run.range.end = (field.value + field.value_length) as usize + 2;
                continue;
            }
            out.extend_from_slice(self.piece(&run));
            run.range = 0..0;
            let value = if let Fate::Changed(value) = fate { value } else { self.value(field).0 };
            write_line(out, self.name(field), value);
        }
        out.extend_from_slice(self.piece(&run));
    }

    fn piece(&self, run: &Run) -> &[u8] {
        let from = if run.added == 0 { &self.head[..] } else { &self.added };
        from.get(run.range.clone()).unwrap_or_default()
    }
}

fn write_line(out: &mut BytesMut, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
