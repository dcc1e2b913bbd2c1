//! A million random pairs of a configuration and a request in every run: what the index finds is what a plain scan of
//! all matchers finds and what an explanation names. `GWCTL_ROUTER_PAIRS` asks for another number of each flavor,
//! `GWCTL_ROUTER_SEED` repeats a run.

use crate::tests::{Asked, HOSTS, PATHS, get, route};
use crate::*;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};

/// Pairs of each of the three flavors when nobody asks for more.
const PAIRS: usize = 334_000;
/// Requests held against one configuration.
const REQUESTS: usize = 500;

const EXPRESSIONS: &[&str] = &[
    r#"http.path ^= "/a""#,
    r#"http.path ^= "/a/b" && http.path =^ "c""#,
    r#"http.path =^ "b" && http.path ^= "/""#,
    r#"http.host == "a.test" && http.path ^= "/a""#,
    r#"(http.host == "a.test" || http.host =^ ".test") && http.path == "/a/b""#,
    r#"http.host ^= "a" && http.host =^ "t" && http.path ^= "/ab""#,
    r#"http.path ^= "/a" || http.path ^= "/b""#,
    r#"http.path ~ "^/(?<first>[ab]+)" && any(http.headers.x_a) ~ "(1)""#,
    r#"lower(http.path) ~ "^/a""#,
    r#"!(http.host ^= "a")"#,
    r#"http.host =^ "" && http.path.segments.len > 1"#,
    r#"net.protocol == "https" || http.method == "POST""#,
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Up to `most`, each at most once; none as often as some.
    fn some<T: Copy + PartialEq>(&mut self, of: &[T], most: usize) -> Vec<T> {
        let mut chosen = Vec::new();
        for _ in 0..self.below(2 * most + 1).saturating_sub(most) {
            let one = self.one(of);
            if !chosen.contains(&one) {
                chosen.push(one);
            }
        }
        chosen
    }

    fn route(&mut self, flavor: Flavor, number: usize) -> Value {
        let id = format!("{:08x}-0000-4000-8000-000000000000", (number as u32 + 1).wrapping_mul(0x9e37_79b9));
        let protocols = self.one(&[&["http", "https"] as &[&str], &["https"], &["http"], &["grpc"]]);
        let mut fields = json!({"id": id, "protocols": protocols, "created_at": self.below(3)});
        if flavor == Flavor::Expressions && self.below(2) == 0 {
            fields["expression"] = json!(self.one(EXPRESSIONS));
            fields["priority"] = json!(self.below(3));
            return fields;
        }
        fields["hosts"] = json!(self.some(HOSTS, 2));
        fields["paths"] = json!(self.some(PATHS, 3));
        fields["methods"] = json!(self.some(&["GET", "POST"], 1));
        fields["snis"] = json!(if self.below(8) == 0 { vec!["s"] } else { vec![] });
        fields["regex_priority"] = json!(self.below(3));
        let headers: serde_json::Map<_, _> =
            self.some(&["x-a", "x_b"], 1).into_iter().map(|name| (name.into(), json!(["1", "~*^v"]))).collect();
        fields["headers"] = headers.into();
        fields
    }

    fn request(&mut self) -> Asked {
        let host = self.one(&["a.test", "b.a.test", "x.test", "a.b", "a", "c", "a.test:81", "a.test:8000", ""]);
        let segments = ["", "a", "b", "c", "ab", "abc", "A", ".x", "a%62", ".."];
        let target: String = (0..=self.below(4)).map(|_| format!("/{}", self.one(&segments))).collect();
        let asked = Asked {
            https: self.below(2) == 0,
            method: self.one(&["GET", "POST", "PUT"]),
            sni: self.one(&[None, Some("s"), Some("x.s")]),
            ..get(host, &target)
        };
        match self.below(3) {
            0 => asked.header(self.one(&["x-a", "X_B", "x-b"]), self.one(&["1", "V2", "3"])),
            _ => asked,
        }
    }
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

#[track_caller]
fn finds_what_a_scan_finds(flavor: Flavor) {
    let seed = number("GWCTL_ROUTER_SEED").unwrap_or_else(|| RandomState::new().hash_one(0) as usize >> 1) | 1;
    let mut random = Random(seed as u64);
    let pairs = number("GWCTL_ROUTER_PAIRS").unwrap_or(PAIRS);
    let mut found_any = 0;
    for _ in 0..pairs.div_ceil(REQUESTS) {
        let routes: Vec<_> = (0..=random.below(12)).map(|number| route(random.route(flavor, number))).collect();
        // Routes that the flavor does not take are left out on all sides.
        let (router, _) = Router::build(flavor, routes.clone()).unwrap();
        for _ in 0..REQUESTS {
            let asked = random.request();
            asked.with(|request| {
                let found = router.find(request);
                let scanned = router.find_by_scan(request);
                let view = |found: &Option<Match<'_, '_>>| {
                    found.as_ref().map(|found| (found.route.id.clone(), found.matched_path().map(str::to_owned)))
                };
                assert_eq!(view(&found), view(&scanned), "seed {seed}: {asked:?} of {routes:?}");
                let explained = router.explain(request);
                let winner = explained.winner().map(|verdict| &verdict.route.id);
                assert_eq!(winner, found.as_ref().map(|found| &found.route.id), "seed {seed}: {asked:?} of {routes:?}");
                found_any += usize::from(found.is_some());
            });
        }
    }
    assert!(found_any * 10 > pairs, "too few requests meet a route to say anything: {found_any} of {pairs}");
}

#[test]
fn traditional_compatible_finds_what_a_scan_finds() {
    finds_what_a_scan_finds(Flavor::TraditionalCompatible);
}

#[test]
fn traditional_finds_what_a_scan_finds() {
    finds_what_a_scan_finds(Flavor::Traditional);
}

#[test]
fn expressions_find_what_a_scan_finds() {
    finds_what_a_scan_finds(Flavor::Expressions);
}
