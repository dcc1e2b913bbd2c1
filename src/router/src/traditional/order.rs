//! The order of routes and what becomes of ties.

use std::cmp::{Ordering, Reverse};

/// What two parts are compared by; the smaller is tried first.
///
/// Source: Kong 3.9.1 `kong/router/traditional.lua`, `sort_routes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// Bits: 4 for a wildcard host with port, 2 for plain hosts only, 1 for a regex.
    pub(crate) kind: u8,
    pub(crate) headers: usize,
    /// 0 when the path is no regex.
    pub(crate) regex_priority: i64,
    /// Length in bytes of a prefix; 0 for a regex.
    pub(crate) length: usize,
    pub(crate) created_at: Option<i64>,
}

impl Order {
    /// Whether it comes first without doubt.
    pub(crate) fn precedes(&self, other: &Order) -> bool {
        match (self.cmp_undated(other), self.created_at, other.created_at) {
            (Ordering::Equal, Some(ours), Some(theirs)) => ours < theirs,
            (order, ..) => order == Ordering::Less,
        }
    }

    /// Compares all but the dates.
    pub(crate) fn cmp_undated(&self, other: &Order) -> Ordering {
        let key = |order: &Order| {
            (Reverse(order.kind), Reverse(order.headers), Reverse(order.regex_priority), Reverse(order.length))
        };
        key(self).cmp(&key(other))
    }

    /// Compares everything; the same as [`Order::precedes`] among parts that all have a date.
    pub(crate) fn cmp_dated(&self, other: &Order) -> Ordering {
        self.cmp_undated(other).then(self.created_at.cmp(&other.created_at))
    }
}

/// Sorts as the quicksort of Lua 5.1 does, so that equals come out in the order in which they do in Kong.
///
/// Routes loaded in one go have the same creation time, so ties are common and people come to rely on their outcome.
pub(crate) fn lua_sort<T: Copy>(items: &mut [T], precedes: &impl Fn(&T, &T) -> bool) {
    let mut rest = items;
    while rest.len() > 1 {
        let last = rest.len() - 1;
        if precedes(&rest[last], &rest[0]) {
            rest.swap(0, last);
        }
        if last == 1 {
            return;
        }
        let middle = last / 2;
        if precedes(&rest[middle], &rest[0]) {
            rest.swap(middle, 0);
        } else if precedes(&rest[last], &rest[middle]) {
            rest.swap(middle, last);
        }
        if last == 2 {
            return;
        }
        let split = partition(rest, middle, precedes);
        let (before, from) = rest.split_at_mut(split);
        let after = &mut from[1..];
        // The smaller side recurses, so the depth stays logarithmic.
        if before.len() < after.len() {
            lua_sort(before, precedes);
            rest = after;
        } else {
            lua_sort(after, precedes);
            rest = before;
        }
    }
}

/// Parts the items around the one in the middle and returns where that one ends up.
///
/// First, middle and last must be in order, so both scans find an end.
fn partition<T: Copy>(items: &mut [T], middle: usize, precedes: &impl Fn(&T, &T) -> bool) -> usize {
    let pivot = items[middle];
    let parked = items.len() - 2;
    items.swap(middle, parked);
    let (mut low, mut high) = (0, parked);
    loop {
        low += 1;
        while precedes(&items[low], &pivot) {
            low += 1;
        }
        high -= 1;
        while precedes(&pivot, &items[high]) {
            high -= 1;
        }
        if high < low {
            items.swap(parked, low);
            return low;
        }
        items.swap(low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equals_change_places_as_in_lua() {
        // What `table.sort` of LuaJIT makes of five and of six equal items.
        let mut five = [1, 2, 3, 4, 5];
        lua_sort(&mut five, &|_, _| false);
        assert_eq!(five, [1, 4, 3, 2, 5]);
    }

    proptest! {
        #[test]
        fn whatever_comes_in_goes_out_in_order(mut items in prop::collection::vec(0..20_u8, 0..60)) {
            let mut expected = items.clone();
            expected.sort_unstable();
            lua_sort(&mut items, &|one, other| one < other);
            prop_assert_eq!(items, expected);
        }
    }
}
