//! A route with one of its paths, and which of two comes first.
//!
//! What a part is compared by ([`Order`]) leaves ties. In Kong their outcome is that of one sort over all parts, so it
//! may change with any route. Ranks by that sort are therefore made apart from the index, and only when two parts of the
//! same order fit the same request: most configurations never need them, and then a change costs what it changes.

use super::order::{Order, lua_sort};
use super::route::{HeaderName, OldPath, OldRoute};
use crate::list::List;
use imbl::OrdMap;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A route with one of its paths. Sorted by the order in which parts are tried, then without meaning.
#[derive(Debug, Clone)]
pub(crate) struct OldPart {
    pub(crate) order: Order,
    /// None for a route without paths.
    number: Option<u32>,
    pub(crate) route: Arc<OldRoute>,
}

impl OldPart {
    /// The parts of a route.
    pub(crate) fn all(route: &Arc<OldRoute>) -> Vec<OldPart> {
        let part = |number: Option<u32>| {
            let path = number.and_then(|number| route.paths.get(number as usize));
            OldPart { order: route.order(path), number, route: route.clone() }
        };
        if route.paths.is_empty() {
            return vec![part(None)];
        }
        (0..route.paths.len() as u32).map(|number| part(Some(number))).collect()
    }

    pub(crate) fn path(&self) -> Option<&OldPath> {
        self.route.paths.get(self.number? as usize)
    }

    fn id(&self) -> &Arc<str> {
        &self.route.filed.route.id
    }
}

impl Ord for OldPart {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.order.cmp_dated(&other.order);
        order.then_with(|| self.id().cmp(other.id())).then_with(|| self.number.cmp(&other.number))
    }
}

impl PartialOrd for OldPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OldPart {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OldPart {}

/// Which of two parts comes first.
pub(crate) struct Standing<'t> {
    pub(crate) routes: &'t OrdMap<Arc<str>, Arc<OldRoute>>,
    /// Some route has no date: then dates alone decide nothing.
    pub(crate) undated: bool,
    pub(crate) ranks: &'t OnceLock<Ranks>,
}

impl<'t> Standing<'t> {
    /// By the order alone; equal where only the sort tells.
    pub(crate) fn roughly(&self, one: &OldPart, other: &OldPart) -> Ordering {
        if self.undated { one.order.cmp_undated(&other.order) } else { one.order.cmp_dated(&other.order) }
    }

    /// Ties included. The first call with a tie sorts all parts.
    pub(crate) fn exactly(&self, one: &OldPart, other: &OldPart) -> Ordering {
        match self.roughly(one, other) {
            Ordering::Equal if one == other => Ordering::Equal,
            Ordering::Equal => self.ranks().of(one).cmp(&self.ranks().of(other)),
            order => order,
        }
    }

    /// Whether the first part with one header comes before the first with another; within a part the names decide.
    pub(crate) fn header_precedes(
        &self,
        (one, of_one): (&HeaderName, &List<OldPart>),
        (other, of_other): (&HeaderName, &List<OldPart>),
    ) -> bool {
        let (Some(first), Some(second)) = (of_one.iter().next(), of_other.iter().next()) else { return false };
        match self.roughly(first, second) {
            Ordering::Equal => self.ranks().header(one) < self.ranks().header(other),
            order => order.is_lt(),
        }
    }

    pub(crate) fn ranks(&self) -> &'t Ranks {
        self.ranks.get_or_init(|| Ranks::new(self.routes.values()))
    }
}

/// The places of all parts, ties included.
#[derive(Debug)]
pub(crate) struct Ranks {
    /// By the id of the route and the number of the path.
    places: HashMap<(Arc<str>, Option<u32>), u32>,
    /// The place of the first part with a header, and the header's place in it.
    headers: HashMap<Box<str>, (u32, usize)>,
    /// First tried first.
    pub(crate) sorted: Vec<OldPart>,
}

impl Ranks {
    /// Sorts as Kong does. Routes must come by id, in which order Kong reads them.
    fn new<'r>(routes: impl Iterator<Item = &'r Arc<OldRoute>>) -> Self {
        let parts: Vec<OldPart> = routes.flat_map(OldPart::all).collect();
        let mut order: Vec<(Order, usize)> = parts.iter().zip(0..).map(|(part, at)| (part.order, at)).collect();
        lua_sort(&mut order, &|(one, _), (other, _)| one.precedes(other));
        let sorted: Vec<OldPart> = order.into_iter().map(|(_, at)| parts[at].clone()).collect();
        let places = sorted.iter().zip(0..).map(|(part, place)| ((part.id().clone(), part.number), place)).collect();
        let mut headers = HashMap::new();
        for (part, place) in sorted.iter().zip(0..) {
            for (at, header) in part.route.headers.iter().enumerate() {
                headers.entry(header.name.lower.clone()).or_insert((place, at));
            }
        }
        Ranks { places, headers, sorted }
    }

    fn of(&self, part: &OldPart) -> Option<u32> {
        self.places.get(&(part.id().clone(), part.number)).copied()
    }

    fn header(&self, name: &HeaderName) -> Option<(u32, usize)> {
        self.headers.get(&name.lower).copied()
    }
}
