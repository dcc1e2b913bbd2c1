//! Tests of the whole crate: the rules by example, and the index against the ordered scan.

use crate::router::Table;
use crate::*;
use gwctl_entities::view::{Route, Service, from_record};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn route(value: Value) -> RouteEntry {
    let mut record = value.as_object().unwrap().clone();
    record.entry("protocols").or_insert_with(|| json!(["http", "https"]));
    RouteEntry { route: Arc::new(from_record::<Route>(&record).unwrap()), service: None }
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// Routes named by their fields, with ids that rise in the order given.
fn router(routes: &[(&str, Value)]) -> Router {
    router_of(Flavor::TraditionalCompatible, routes)
}

pub(crate) fn router_of(flavor: Flavor, routes: &[(&str, Value)]) -> Router {
    let entries = routes.iter().enumerate().map(|(number, (name, fields))| {
        let mut fields = fields.clone();
        fields["name"] = json!(name);
        fields["id"] = json!(id(number));
        route(fields)
    });
    let (router, problems) = Router::build(flavor, entries).unwrap();
    assert_eq!(problems, []);
    router
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) https: bool,
    pub(crate) method: &'static str,
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) sni: Option<&'static str>,
}

pub(crate) fn get(host: &str, target: &str) -> Asked {
    Asked { https: false, method: "GET", host: host.into(), target: target.into(), headers: vec![], sni: None }
}

impl Asked {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn with<T>(&self, ask: impl FnOnce(&Request<'_>) -> T) -> T {
        let path = RequestPath::normalise(self.target.as_bytes());
        ask(&Request {
            https: self.https,
            method: self.method,
            host: &self.host,
            port: 8000,
            path: &path,
            headers: &self.headers,
            sni: self.sni,
            source: Some(([127, 0, 0, 1], 5000).into()),
            destination_ip: None,
        })
    }

    pub(crate) fn route(&self, router: &Router) -> Option<String> {
        self.with(|request| router.find(request).and_then(|found| found.route.name.as_deref().map(str::to_owned)))
    }
}

#[track_caller]
fn takes(router: &Router, asked: Asked, expected: &str) {
    assert_eq!(asked.route(router).as_deref().unwrap_or("none"), expected, "{asked:?}");
}

#[test]
fn the_longest_prefix_wins_for_every_order_of_creation() {
    let routes = [("ends", json!({"paths": ["/a", "/a/b/c"]})), ("middle", json!({"paths": ["/a/b"]}))];
    for routes in [routes.clone(), [routes[1].clone(), routes[0].clone()]] {
        let router = router(&routes);
        takes(&router, get("x", "/a/x"), "ends");
        takes(&router, get("x", "/a/b/x"), "middle");
        takes(&router, get("x", "/a/b/c"), "ends");
        takes(&router, get("x", "/b"), "none");
    }
}

#[test]
fn regexes_rank_by_their_priority_and_above_prefixes() {
    let router = router(&[
        ("low", json!({"paths": [r"~/u/\d+$"]})),
        ("high", json!({"paths": [r"~/u/\w+"], "regex_priority": 5})),
        ("prefix", json!({"paths": ["/u/123/long/prefix"], "regex_priority": 9})),
    ]);
    takes(&router, get("x", "/u/123"), "high");
    takes(&router, get("x", "/u/123/long/prefix"), "high");
    takes(&router, get("x", "/u/-"), "none");
}

#[test]
fn each_path_of_a_route_ranks_by_itself_and_a_prefix_may_end_within_a_segment() {
    let routes = [("mixed", json!({"paths": ["/a", r"~/a/\d+$"]})), ("plain", json!({"paths": ["/a/1"]}))];
    for routes in [routes.clone(), [routes[1].clone(), routes[0].clone()]] {
        let router = router(&routes);
        takes(&router, get("x", "/a/1"), "mixed");
        takes(&router, get("x", "/a/1/"), "plain");
        takes(&router, get("x", "/a/1x"), "plain");
        takes(&router, get("x", "/a/22"), "mixed");
        takes(&router, get("x", "/a/x"), "mixed");
        takes(&router, get("x", "/ax"), "mixed");
        takes(&router, get("x", "/b"), "none");
    }
}

#[test]
fn regex_priority_of_one_host_leaves_other_hosts_alone() {
    let routes = |priority: i64| {
        router(&[
            ("a1", json!({"hosts": ["a.test"], "paths": ["~/v/.*"]})),
            ("a2", json!({"hosts": ["a.test"], "paths": ["~/v/x.*"], "regex_priority": 1})),
            ("b1", json!({"hosts": ["b.test"], "paths": ["~/v/.*"], "regex_priority": priority})),
            ("b2", json!({"hosts": ["b.test"], "paths": ["~/v/x.*"], "regex_priority": 1})),
        ])
    };
    for (priority, of_b) in [(0, "b2"), (7, "b1")] {
        let router = routes(priority);
        takes(&router, get("a.test", "/v/x"), "a2");
        takes(&router, get("b.test", "/v/x"), of_b);
    }
}

#[test]
fn of_equals_the_greater_id_wins() {
    let router = router(&[("first", json!({"paths": ["/t"], "created_at": 1})), ("second", json!({"paths": ["/t"]}))]);
    takes(&router, get("x", "/t"), "second");
}

#[test]
fn hosts_match_by_letter_wildcard_and_port() {
    let router = router(&[
        ("plain", json!({"hosts": ["a.test"]})),
        ("left", json!({"hosts": ["*.a.test"]})),
        ("right", json!({"hosts": ["b.*"]})),
        ("port", json!({"hosts": ["c.test:8000", "*.c.test:81"]})),
    ]);
    for (host, expected) in [
        ("a.test", "plain"),
        ("a.test:99", "plain"),
        ("A.test", "none"),
        ("a.test.", "none"),
        ("x.y.a.test", "left"),
        ("b.com", "right"),
        ("b", "none"),
        ("c.test", "port"),
        ("c.test:8000", "port"),
        ("c.test:81", "none"),
        ("x.c.test:81", "port"),
        ("x.c.test", "none"),
    ] {
        takes(&router, get(host, "/"), expected);
    }
}

#[test]
fn a_plain_host_outweighs_up_to_three_kinds_of_fields() {
    let router = router(&[
        ("plain", json!({"hosts": ["a.test"]})),
        ("three", json!({"hosts": ["*.test"], "paths": ["/p"], "methods": ["GET"]})),
        ("four", json!({"hosts": ["*.test"], "paths": ["/p"], "methods": ["GET"], "headers": {"x": ["1"]}})),
    ]);
    takes(&router, get("a.test", "/p"), "plain");
    takes(&router, get("a.test", "/p").header("x", "1"), "four");
    takes(&router, get("b.test", "/p"), "three");
}

#[test]
fn headers_ask_for_any_value_whatever_the_case() {
    let router = router(&[
        ("one", json!({"headers": {"X-A": ["1", "Two"]}})),
        ("both", json!({"headers": {"x-a": ["1"], "x-b": ["2"]}})),
        ("regex", json!({"headers": {"x-r": ["~*^V\\d+$"]}})),
    ]);
    takes(&router, get("x", "/").header("x-a", "9").header("X-A", "TWO"), "one");
    takes(&router, get("x", "/").header("x-a", "1").header("x-b", "2"), "both");
    takes(&router, get("x", "/").header("x_a", "1"), "one");
    takes(&router, get("x", "/").header("x_a", "0").header("x-a", "1"), "none");
    takes(&router, get("x", "/").header("x-r", "V12"), "regex");
    takes(&router, get("x", "/").header("x-r", "12"), "none");
}

#[test]
fn server_names_count_over_tls_only_and_yield_in_plain() {
    let names = json!({"protocols": ["https"], "snis": ["s.test."], "paths": ["/s"]});
    let router = router(&[("names", names), ("any", json!({"paths": ["/s/t"]}))]);
    let tls = |sni, target: &str| Asked { https: true, sni, ..get("x", target) };
    takes(&router, tls(Some("s.test"), "/s/t"), "names");
    takes(&router, tls(Some("s.test."), "/s/t"), "any");
    takes(&router, tls(None, "/s"), "none");
    takes(&router, get("x", "/s"), "names");
    takes(&router, get("x", "/s/t"), "any");
}

#[test]
fn gates_follow_the_protocols() {
    let router = router(&[
        ("tls", json!({"protocols": ["https"], "paths": ["/tls"]})),
        ("moved", json!({"protocols": ["https"], "paths": ["/moved"], "https_redirect_status_code": 301})),
        ("plain", json!({"protocols": ["http"], "paths": ["/plain"]})),
        ("grpcs", json!({"protocols": ["grpcs"], "paths": ["/grpcs"]})),
    ]);
    let grpc = Some(b"application/grpc+proto".as_slice());
    for (target, https, http2, content_type, expected) in [
        ("/tls", false, false, None, Gate::UseHttps { status: 426 }),
        ("/tls", true, false, None, Gate::Pass),
        ("/moved", false, false, None, Gate::UseHttps { status: 301 }),
        ("/plain", true, false, None, Gate::Pass),
        ("/grpcs", true, true, grpc, Gate::Pass),
        ("/grpcs", true, false, grpc, Gate::UseHttp2),
        ("/grpcs", false, true, grpc, Gate::UseGrpcs),
        ("/grpcs", true, true, None, Gate::NotGrpc),
    ] {
        let gate = get("x", target).with(|request| router.find(request).unwrap().gate(https, http2, content_type));
        assert_eq!(gate, expected, "{target} {https} {http2}");
    }
    assert_eq!(Match::https_location("x.test", "/a?b"), "https://x.test/a?b");
}

#[test]
fn a_match_tells_prefix_captures_host_and_target() {
    let router = router(&[
        ("strip", json!({"paths": ["/strip"], "preserve_host": true})),
        ("keep", json!({"paths": [r"~/u/(?<id>\d+)(x)?"], "strip_path": false})),
        ("root", json!({"paths": ["/"]})),
    ]);
    get("a.test:1", "/strip/./x%20y?a=%2F&b").with(|request| {
        let found = router.find(request).unwrap();
        assert_eq!(found.forwarded_prefix(), Some("/strip"));
        assert_eq!(found.upstream_target("/strip/./x%20y?a=%2F&b"), "/x%20y?a=%2F&b");
        assert_eq!((found.preserved_host(), found.uri_captures()), (Some("a.test:1"), None));
    });
    get("a.test", "/u/12/z").with(|request| {
        let found = router.find(request).unwrap();
        assert_eq!((found.matched_path(), found.forwarded_prefix()), (Some("/u/12"), None));
        assert_eq!((found.upstream_path().as_str(), found.preserved_host()), ("/u/12/z", None));
        let captures = found.uri_captures().unwrap();
        assert_eq!(captures.numbered, [Some("/u/12".to_owned()), Some("12".to_owned()), None]);
        assert_eq!(captures.named, [("id".to_owned(), "12".to_owned())]);
    });
    get("a.test", "/?").with(|request| {
        let found = router.find(request).unwrap();
        assert_eq!((found.forwarded_prefix(), found.upstream_target("/?").as_str()), (None, "/?"));
    });
}

#[test]
fn the_service_path_comes_first_unless_the_service_is_a_stream() {
    let service = |protocol: &str| {
        let record = json!({"id": id(1), "protocol": protocol, "host": "h", "port": 80, "path": "/s"});
        Some(Arc::new(from_record::<Service>(record.as_object().unwrap()).unwrap()))
    };
    for (protocol, expected) in [("http", "/s/x"), ("grpc", "/s/x"), ("tcp", "/x")] {
        let entry = RouteEntry { service: service(protocol), ..route(json!({"id": id(2), "paths": ["/r"]})) };
        let (router, _) = Router::build(Flavor::default(), [entry]).unwrap();
        get("h", "/r/x").with(|request| assert_eq!(router.find(request).unwrap().upstream_path(), expected));
    }
}

#[test]
fn bad_routes_are_reported_in_full_and_left_out() {
    let bad = json!({"id": "7", "name": "bad", "paths": ["/x", "~/(a"], "headers": {"x-a": ["1", "~*["]}});
    let good = json!({"id": id(1), "paths": ["/x"]});
    let (router, problems) = Router::build(Flavor::default(), [route(bad), route(good)]).unwrap();
    assert_eq!(router.len(), 1);
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["id", "headers.x-a[1]", "paths[1]"]);
    assert_eq!(problems[2].to_string(), "route bad: paths[1]: is no valid regular expression: unclosed group");
}

#[test]
fn disabled_services_and_streams_are_not_served() {
    let record = json!({"id": id(1), "protocol": "http", "host": "h", "port": 80, "enabled": false});
    let off = Some(Arc::new(from_record::<Service>(record.as_object().unwrap()).unwrap()));
    let disabled = RouteEntry { service: off, ..route(json!({"id": id(2), "paths": ["/"]})) };
    let stream = route(json!({"id": id(3), "protocols": ["tcp"], "snis": ["a"]}));
    let (router, problems) = Router::build(Flavor::default(), [disabled, stream]).unwrap();
    assert!(router.is_empty() && problems.is_empty());
}

#[test]
fn a_path_that_is_not_utf8_meets_no_route_once_any_route_has_paths() {
    let hosts_only = [("host", json!({"hosts": ["x"]}))];
    takes(&router(&hosts_only), get("x", "/%FF"), "host");
    let with_path = [hosts_only[0].clone(), ("path", json!({"paths": ["/"]}))];
    takes(&router(&with_path), get("x", "/%FF"), "none");
}

#[test]
fn explain_names_the_first_field_that_failed() {
    let router = router(&[
        ("method", json!({"methods": ["POST"], "hosts": ["y"], "paths": ["/a"]})),
        ("host", json!({"hosts": ["y"], "paths": ["/a"]})),
        ("path", json!({"paths": ["/b", "/c/d"]})),
        ("header", json!({"paths": ["/a"], "headers": {"X-A": ["1"]}})),
        ("won", json!({"paths": ["/a/b", "/a"]})),
        ("lost", json!({"paths": ["/"]})),
    ]);
    get("x", "/a/b").with(|request| {
        let explanation = router.explain(request);
        let told: Vec<_> = explanation
            .verdicts
            .iter()
            .map(|verdict| match &verdict.outcome {
                Outcome::Won => format!("{} won by {}", verdict.route.name.as_ref().unwrap(), verdict.path.unwrap()),
                Outcome::Outranked => format!("{} lost", verdict.route.name.as_ref().unwrap()),
                Outcome::Failed(field) => format!("{} {field}", verdict.route.name.as_ref().unwrap()),
            })
            .collect();
        let expected =
            ["won won by /a/b", "lost lost", "method methods", "host hosts", "header headers.x-a", "path paths"];
        assert_eq!(told, expected);
        assert_eq!(explanation.winner().unwrap().route.name.as_deref(), Some("won"));
    });
}

#[test]
fn a_change_shares_what_it_does_not_touch() {
    let entries: Vec<_> =
        (0..3).map(|number| route(json!({"id": id(number), "paths": [format!("/{number}")]}))).collect();
    let (old, _) = Router::build(Flavor::default(), entries.clone()).unwrap();
    let changed = route(json!({"id": id(1), "name": "changed", "paths": ["/new"]}));
    let (new, problems) = old.change([Change::Put(changed), Change::Remove(id(2).into())]);
    assert_eq!((new.len(), problems), (2, vec![]));
    let first = |router: &Router| match &router.table {
        Table::Compatible(table) => Arc::as_ptr(&table.routes[id(0).as_str()]),
        _ => unreachable!("it was built so"),
    };
    assert_eq!(first(&old), first(&new));
    takes(&new, get("x", "/new"), "changed");
    takes(&new, get("x", "/1"), "none");
    takes(&new, get("x", "/2"), "none");
    assert_eq!(old.len(), 3);
}

#[test]
fn a_changed_service_is_seen_by_its_routes() {
    let service = |path: &str| {
        let record = json!({"id": id(1), "protocol": "http", "host": "h", "port": 80, "path": path});
        Arc::new(from_record::<Service>(record.as_object().unwrap()).unwrap())
    };
    let entry = RouteEntry { service: Some(service("/old")), ..route(json!({"id": id(2), "paths": ["/r"]})) };
    let (old, _) = Router::build(Flavor::default(), [entry]).unwrap();
    let (new, _) = old.change([Change::PutService(service("/new"))]);
    for (router, expected) in [(&old, "/old/x"), (&new, "/new/x")] {
        get("h", "/r/x").with(|request| assert_eq!(router.find(request).unwrap().upstream_path(), expected));
    }
}

// From here on: the index against the ordered scan.

fn some(choices: &'static [&'static str], most: usize) -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![Just(vec![]), prop::sample::subsequence(choices, 1..=most)]
}

pub(crate) const HOSTS: &[&str] =
    &["a.test", "b.a.test", "*.a.test", "*.test", "a.*", "a.test:81", "*.test:8000", "*", "*t", "a*", "c"];
pub(crate) const PATHS: &[&str] = &[
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/a/b/c",
    "/ab",
    "/abc",
    "/b",
    r"~/a/\w+",
    "~/a",
    "~/(a|b)/b",
    "~/b|/c",
    "~/a?b",
    r"~/\.x",
    "~/.*c$",
    "~/(?i)A",
    "~/(?!a)",
    "~/[ab]{2}",
];

pub(crate) fn any_route() -> impl Strategy<Value = Value> {
    let methods = some(&["GET", "POST"], 2);
    let headers = some(&["x-a", "x_b"], 2);
    let protocols = prop::sample::select(vec![json!(["http", "https"]), json!(["https"]), json!(["grpc"])]);
    (some(HOSTS, 3), some(PATHS, 4).prop_shuffle(), methods, headers, some(&["s", "*.s"], 1), protocols, -1..5000_i64)
        .prop_map(|(hosts, paths, methods, headers, snis, protocols, regex_priority)| {
            let headers: serde_json::Map<_, _> =
                headers.into_iter().map(|name| (name.into(), json!(["1", "~*^v"]))).collect();
            json!({
                "hosts": hosts, "paths": paths, "methods": methods, "headers": headers, "snis": snis,
                "protocols": protocols, "regex_priority": regex_priority % 7 * (regex_priority / 700 + 1),
            })
        })
}

pub(crate) fn any_request() -> impl Strategy<Value = Asked> {
    let host =
        prop::sample::select(vec!["a.test", "b.a.test", "x.test", "a.b", "a", "c", "a.test:81", "a.test:8000", ""]);
    let header = prop::sample::select(vec![("x-a", "1"), ("X_B", "V2"), ("x-b", "1"), ("x-c", "1")]);
    let sni = prop::sample::select(vec![None, Some("s"), Some("x.s")]);
    let method = prop::sample::select(vec!["GET", "POST", "PUT"]);
    (any::<bool>(), method, host, "(/[abc.x]{0,3}){1,4}", prop::collection::vec(header, 0..3), sni).prop_map(
        |(https, method, host, target, headers, sni)| {
            let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            Asked { https, method, host: host.to_owned(), target, headers, sni }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_chooses_as_the_ordered_scan_does(
        routes in prop::collection::vec(any_route(), 0..40),
        requests in prop::collection::vec(any_request(), 1..40),
    ) {
        let routes: Vec<_> = routes.into_iter().map(|fields| ("r", fields)).collect();
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
