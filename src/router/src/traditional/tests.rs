//! Tests of the old router: its rules by example, and the index against the plain scan.

use crate::tests::{Asked, any_request, any_route, get, route, router_of};
use crate::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn router(routes: &[(&str, Value)]) -> Router {
    router_of(Flavor::Traditional, routes)
}

#[track_caller]
fn takes(router: &Router, asked: Asked, expected: &str) {
    assert_eq!(asked.route(router).as_deref().unwrap_or("none"), expected, "{asked:?}");
}

#[test]
fn more_kinds_of_fields_come_first_and_hosts_outweigh_paths() {
    let router = router(&[
        ("path", json!({"paths": ["/a/very/long/path"]})),
        ("host", json!({"hosts": ["a.test"]})),
        ("both", json!({"hosts": ["a.test"], "paths": ["/a"]})),
        ("method", json!({"methods": ["GET"]})),
    ]);
    takes(&router, get("a.test", "/a/very/long/path"), "both");
    takes(&router, get("a.test", "/b"), "host");
    takes(&router, get("b.test", "/a/very/long/path"), "path");
    takes(&router, get("b.test", "/b"), "method");
    assert_eq!(router.flavor(), Flavor::Traditional);
}

#[test]
fn wildcard_hosts_outweigh_paths_too() {
    let router = router(&[
        ("left", json!({"hosts": ["*.a.test"]})),
        ("right", json!({"hosts": ["b.*"]})),
        ("root", json!({"paths": ["/"]})),
    ]);
    takes(&router, get("x.a.test", "/"), "left");
    takes(&router, get("b.com:81", "/"), "right");
    takes(&router, get("c", "/"), "root");
}

#[test]
fn a_host_with_port_is_compared_with_the_port_asked_for() {
    let router = router(&[("port", json!({"hosts": ["a.test:81", "*.b.test:80"]})), ("any", json!({"paths": ["/"]}))]);
    takes(&router, get("a.test:81", "/"), "port");
    takes(&router, get("a.test", "/"), "any");
    takes(&router, get("x.b.test", "/"), "port");
    takes(&router, get("x.b.test:81", "/"), "any");
}

#[test]
fn the_older_of_equals_wins() {
    let fields = |created_at: u32| json!({"paths": ["/t"], "created_at": created_at});
    takes(&router(&[("new", fields(2)), ("old", fields(1))]), get("x", "/t"), "old");
    takes(&router(&[("old", fields(1)), ("new", fields(2))]), get("x", "/t"), "old");
}

#[test]
fn routes_with_the_rarest_value_come_before_the_order() {
    let router = router(&[
        ("first", json!({"methods": ["GET"], "paths": ["~/a/.*"], "regex_priority": 9})),
        ("regex", json!({"methods": ["GET"], "paths": ["~/a/b"], "regex_priority": 1})),
        ("prefix", json!({"methods": ["POST"], "paths": ["/a/b/c"]})),
    ]);
    takes(&router, get("x", "/a/b/c"), "first");
    takes(&router, Asked { method: "POST", ..get("x", "/a/b/c") }, "prefix");
}

#[test]
fn header_regexes_stand_alone_and_underscores_are_not_dashes() {
    let router = router(&[
        ("dash", json!({"headers": {"X-A": ["One"]}})),
        ("under", json!({"headers": {"x_b": ["~*^v\\d+$"]}})),
        ("two", json!({"headers": {"x-c": ["~*.", "b"]}})),
    ]);
    takes(&router, get("x", "/").header("x-a", "ONE"), "dash");
    takes(&router, get("x", "/").header("x_a", "one"), "none");
    takes(&router, get("x", "/").header("x-b", "V1"), "under");
    takes(&router, get("x", "/").header("x_b", "v").header("x-b", "v1"), "none");
    takes(&router, get("x", "/").header("x-c", "c"), "none");
}

#[test]
fn plain_http_skips_server_names_only_when_nothing_else_uses_the_same_fields() {
    let names = json!({"protocols": ["https"], "snis": ["s.test."], "paths": ["/s"]});
    let alone = router(&[("names", names.clone())]);
    takes(&alone, get("x", "/s"), "names");
    let beside = router(&[("names", names), ("any", json!({"paths": ["/s"]}))]);
    takes(&beside, get("x", "/s"), "any");
    takes(&beside, Asked { https: true, sni: Some("s.test"), ..get("x", "/s") }, "names");
}

#[test]
fn regexes_are_tied_to_the_start_and_captures_tell_the_whole_path() {
    let router = router(&[("one", json!({"paths": ["~/a|/b/(?<id>\\d+)(x)?"]}))]);
    takes(&router, get("x", "/c/b/1"), "none");
    get("x", "/b/1/rest").with(|request| {
        let found = router.find(request).unwrap();
        assert_eq!((found.forwarded_prefix(), found.upstream_path().as_str()), (Some("/b/1"), "/rest"));
        let captures = found.uri_captures().unwrap();
        assert_eq!(captures.numbered, [Some("/b/1/rest".to_owned()), Some("1".to_owned()), None]);
        assert_eq!(captures.named, [("id".to_owned(), "1".to_owned())]);
    });
    // The rest of the path belongs to the last branch; the first takes nothing off.
    get("x", "/a/rest").with(|request| {
        let found = router.find(request).unwrap();
        assert_eq!((found.forwarded_prefix(), found.upstream_path().as_str()), (None, "/a/rest"));
    });
}

#[test]
fn path_handling_counts() {
    let service = json!({"id": "s", "protocol": "http", "host": "h", "port": 80, "path": "/s"});
    let service: gwctl_entities::view::Service =
        gwctl_entities::view::from_record(service.as_object().unwrap()).unwrap();
    for (flavor, expected) in [(Flavor::Traditional, "/sx"), (Flavor::TraditionalCompatible, "/s/x")] {
        let id = "00000000-0000-4000-8000-000000000001";
        let mut entry = route(json!({"id": id, "paths": ["/r/"], "path_handling": "v1"}));
        entry.service = Some(std::sync::Arc::new(service.clone()));
        let (router, _) = Router::build(flavor, [entry]).unwrap();
        get("h", "/r/x").with(|request| assert_eq!(router.find(request).unwrap().upstream_path(), expected));
    }
}

#[test]
fn bad_routes_are_reported_in_full() {
    let bad = json!({"id": "7", "paths": ["~/(a"], "headers": {"x-a": ["~*["]}, "expression": "a"});
    let (router, problems) = Router::build(Flavor::Traditional, [route(bad)]).unwrap();
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!((router.len(), fields), (0, vec!["expression", "paths[0]", "headers.x-a[0]"]));
}

#[test]
fn a_change_keeps_the_flavor() {
    let entry = route(json!({"id": "1", "paths": ["/a"], "path_handling": "v1"}));
    let (old, _) = Router::build(Flavor::Traditional, [entry.clone()]).unwrap();
    let (new, _) = old.change([Change::Put(entry)]);
    assert_eq!((new.flavor(), new.len()), (Flavor::Traditional, 1));
    takes(&new, get("x", "/b"), "none");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_chooses_as_the_plain_scan_does(
        routes in prop::collection::vec(any_route(), 0..40),
        requests in prop::collection::vec(any_request(), 1..40),
    ) {
        let usable = |fields: &Value| ["hosts", "paths", "methods", "snis"].iter().any(|name| fields[name] != json!([]));
        let routes: Vec<_> = routes.into_iter().filter(usable).map(|fields| ("r", fields)).collect();
        let router = router(&routes);
        for asked in requests {
            asked.with(|request| {
                let view = |found: Match<'_, '_>| (found.route.id.clone(), found.matched_path().map(str::to_owned));
                let found = router.find(request).map(view);
                prop_assert_eq!(&found, &router.find_by_scan(request).map(view), "{:?}", asked);
                let winner = router.explain(request).winner().map(|verdict| verdict.route.id.clone());
                prop_assert_eq!(winner, found.map(|(id, _)| id), "{:?}", asked);
                Ok(())
            })?;
        }
    }
}
