//! A sorted list that stays cheap to change however long it grows.

use imbl::OrdSet;
use imbl::shared_ptr::DefaultSharedPtr;

/// Longest list that is copied as a whole when it changes.
const FEW: usize = 32;

/// Items in order, each once. Most lists hold one item, so a short one is plain.
#[derive(Debug, Clone)]
pub(crate) enum List<T: Ord> {
    Few(Vec<T>),
    Many(OrdSet<T>),
}

impl<T: Ord + Clone> List<T> {
    /// Takes an item into a list that may not be there yet.
    pub(crate) fn insert(list: &mut Option<List<T>>, item: T) {
        let Some(known) = list else {
            *list = Some(List::Few(vec![item]));
            return;
        };
        match known {
            List::Few(items) => match items.binary_search(&item) {
                Ok(_) => {}
                Err(at) if items.len() < FEW => {
                    items.reserve_exact(1);
                    items.insert(at, item);
                }
                Err(_) => {
                    let mut many: OrdSet<T> = std::mem::take(items).into_iter().collect();
                    many.insert(item);
                    *known = List::Many(many);
                }
            },
            List::Many(items) => _ = items.insert(item),
        }
    }

    /// Takes an item out, and the list with the last one.
    pub(crate) fn remove(list: &mut Option<List<T>>, item: &T) {
        let is_empty = match list {
            None => return,
            Some(List::Few(items)) => {
                if let Ok(at) = items.binary_search(item) {
                    items.remove(at);
                }
                items.is_empty()
            }
            Some(List::Many(items)) => {
                items.remove(item);
                if items.len() <= FEW / 2 {
                    *list = Some(List::Few(items.iter().cloned().collect()));
                }
                false
            }
        };
        if is_empty {
            *list = None;
        }
    }

    /// The items in order.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        match self {
            List::Few(items) => Iter::Few(items.iter()),
            List::Many(items) => Iter::Many(items.iter()),
        }
    }
}

/// See [`List::iter`].
pub(crate) enum Iter<'l, T> {
    Few(std::slice::Iter<'l, T>),
    Many(imbl::ordset::Iter<'l, T, DefaultSharedPtr>),
}

impl<'l, T: Ord> Iterator for Iter<'l, T> {
    type Item = &'l T;

    fn next(&mut self) -> Option<&'l T> {
        match self {
            Iter::Few(items) => items.next(),
            Iter::Many(items) => items.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_list_holds_what_a_set_holds(edits in prop::collection::vec((any::<bool>(), 0..90_u8), 0..400)) {
            let (mut list, mut set) = (None, BTreeSet::new());
            for (put, item) in edits {
                if put {
                    List::insert(&mut list, item);
                    set.insert(item);
                } else {
                    List::remove(&mut list, &item);
                    set.remove(&item);
                }
                prop_assert_eq!(list.is_none(), set.is_empty());
                prop_assert!(list.iter().flat_map(List::iter).eq(&set));
            }
        }
    }
}
