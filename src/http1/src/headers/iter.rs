//! Walking through headers.

use super::{Field, Headers, REMOVED};
use crate::value::Value;

/// See [`Headers::iter`].
pub struct Iter<'h> {
    pub(super) headers: &'h Headers,
    pub(super) fields: std::slice::Iter<'h, Field>,
}

impl<'h> Iterator for Iter<'h> {
    type Item = (&'h str, Value<'h>);

    fn next(&mut self) -> Option<Self::Item> {
        let field = self.fields.find(|field| field.state & REMOVED == 0)?;
        // A name is checked to be ASCII when it is read or added.
        let name = std::str::from_utf8(self.headers.name(field)).unwrap_or_default();
        Some((name, self.headers.value(field)))
    }
}

impl<'h> IntoIterator for &'h Headers {
    type Item = (&'h str, Value<'h>);
    type IntoIter = Iter<'h>;

    fn into_iter(self) -> Iter<'h> {
        self.iter()
    }
}
