//! A sorted list that stays cheap to change however long it grows.

use imbl::OrdSet;
use imbl::shared_ptr::DefaultSharedPtr;
use std::cmp::Ordering;

/// Longest list that is copied as a whole when it changes.
const FEW: usize = 32;

/// Items in order, each once. Most lists hold one item, which is found without another step through memory.
#[derive(Debug, Clone)]
pub(crate) enum List<T: Ord> {
    One(T),
    Few(Vec<T>),
    Many(OrdSet<T>),
}

impl<T: Ord + Clone> List<T> {
    /// Takes an item into a list that may not be there yet.
    pub(crate) fn insert(list: &mut Option<List<T>>, item: T) {
        let known = match list.take() {
            None => List::One(item),
            Some(List::One(other)) => match other.cmp(&item) {
                Ordering::Less => List::Few(vec![other, item]),
                Ordering::Equal => List::One(other),
                Ordering::Greater => List::Few(vec![item, other]),
            },
            Some(List::Few(items)) => insert(items, item),
            Some(List::Many(mut items)) => {
                items.insert(item);
                List::Many(items)
            }
        };
        *list = Some(known);
    }

    /// Takes an item out, and the list with the last one.
    pub(crate) fn remove(list: &mut Option<List<T>>, item: &T) {
        *list = match list.take() {
            Some(List::One(other)) if other == *item => None,
            Some(List::Few(mut items)) => {
                if let Ok(at) = items.binary_search(item) {
                    items.remove(at);
                }
                match items.len() {
                    1 => items.pop().map(List::One),
                    _ => Some(List::Few(items)),
                }
            }
            Some(List::Many(mut items)) => {
                items.remove(item);
                let few = items.len() <= FEW / 2;
                Some(if few { List::Few(items.iter().cloned().collect()) } else { List::Many(items) })
            }
            unchanged => unchanged,
        };
    }

    /// The items in order.
    pub(crate) fn iter(&self) -> Iter<'_, T> {
        match self {
            List::One(item) => Iter::Few(std::slice::from_ref(item).iter()),
            List::Few(items) => Iter::Few(items.iter()),
            List::Many(items) => Iter::Many(items.iter()),
        }
    }
}

/// Puts an item into a short list of two or more.
fn insert<T: Ord + Clone>(mut items: Vec<T>, item: T) -> List<T> {
    match items.binary_search(&item) {
        Ok(_) => List::Few(items),
        Err(at) if items.len() < FEW => {
            items.reserve_exact(1);
            items.insert(at, item);
            List::Few(items)
        }
        Err(_) => List::Many(items.into_iter().chain([item]).collect()),
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
