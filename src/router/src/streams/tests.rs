use crate::{Change, Flavor, RouteEntry, Router, StreamProtocol, StreamRequest};
use gwctl_entities::view::from_record;
use serde_json::{Value, json};
use std::sync::Arc;

const ALL: [Flavor; 3] = [Flavor::TraditionalCompatible, Flavor::Traditional, Flavor::Expressions];

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

fn entry(number: usize, fields: Value) -> RouteEntry {
    let mut fields = fields;
    fields["id"] = json!(id(number));
    fields["created_at"] = json!(number);
    RouteEntry { route: Arc::new(from_record(fields.as_object().unwrap()).unwrap()), service: None }
}

/// Routes numbered from 1.
fn router(flavor: Flavor, routes: &[Value]) -> Router {
    let entries = routes.iter().enumerate().map(|(index, fields)| entry(index + 1, fields.clone()));
    let (router, problems) = Router::build(flavor, entries).unwrap();
    assert_eq!((problems, router.len()), (Vec::new(), 0));
    router
}

/// The number of the route, 0 for none.
fn found(router: &Router, source: &str, destination: &str, sni: Option<&str>, tls: bool) -> usize {
    asked(router, if tls { StreamProtocol::Tls } else { StreamProtocol::Tcp }, sni, source, destination)
}

fn asked(router: &Router, protocol: StreamProtocol, sni: Option<&str>, source: &str, destination: &str) -> usize {
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    let asked = StreamRequest { protocol, sni, source, destination };
    router.find_stream(&asked).map_or(0, |found| found.route.id[24..].parse().unwrap())
}

#[test]
fn both_ends_are_compared_with_networks_and_ports() {
    for flavor in ALL {
        let router = router(
            flavor,
            &[
                json!({"protocols": ["tcp"], "sources": [{"ip": "10.1.0.0/16"}]}),
                json!({"protocols": ["tcp"], "destinations": [{"ip": "127.0.0.1", "port": 9000}, {"port": 9001}]}),
                json!({"protocols": ["tcp"], "sources": [{"ip": "10.1.2.3"}], "destinations": [{"port": 9001}]}),
            ],
        );
        for (source, destination, expected) in [
            ("10.1.9.9:1", "127.0.0.1:80", 1),
            ("10.2.0.1:1", "127.0.0.1:9000", 2),
            ("10.2.0.1:1", "127.0.0.2:9000", 0),
            ("10.2.0.1:1", "127.0.0.2:9001", 2),
            ("10.1.2.3:1", "127.0.0.2:9001", 3),
            ("10.1.2.3:1", "127.0.0.2:9002", 1),
            ("[::1]:1", "[::1]:9001", 2),
        ] {
            assert_eq!(found(&router, source, destination, None, false), expected, "{flavor:?} {source} {destination}");
        }
    }
}

#[test]
fn an_exact_address_comes_before_a_network_around_it() {
    for flavor in ALL {
        let network = json!({"protocols": ["tcp"], "sources": [{"ip": "10.0.0.0/8"}]});
        let router = router(flavor, &[network, json!({"protocols": ["tcp"], "sources": [{"ip": "10.0.0.9"}]})]);
        assert_eq!(found(&router, "10.0.0.9:1", "127.0.0.1:1", None, false), 2, "{flavor:?}");
        assert_eq!(found(&router, "10.0.0.8:1", "127.0.0.1:1", None, false), 1, "{flavor:?}");
    }
}

#[test]
fn server_names_are_asked_of_tls_and_protocols_of_all() {
    for flavor in ALL {
        let router = router(
            flavor,
            &[
                json!({"protocols": ["tls"], "snis": ["a.test"]}),
                json!({"protocols": ["tls_passthrough"], "snis": ["b.test."]}),
                json!({"protocols": ["tcp"], "destinations": [{"port": 1}]}),
                json!({"protocols": ["udp"], "destinations": [{"port": 2}]}),
            ],
        );
        let named = |sni| found(&router, "10.0.0.1:1", "127.0.0.1:1", sni, true);
        assert_eq!((named(Some("a.test")), named(Some("b.test")), named(Some("c.test"))), (1, 2, 0), "{flavor:?}");
        assert_eq!(named(None), 0, "{flavor:?}: a route with names wants one of them");
        assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.1:1", None, false), 3, "{flavor:?}");
        assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.1:2", None, false), 0, "{flavor:?}: that is for datagrams");
        let datagrams = |to| asked(&router, StreamProtocol::Udp, None, "10.0.0.1:1", to);
        assert_eq!((datagrams("127.0.0.1:2"), datagrams("127.0.0.1:1")), (4, 0), "{flavor:?}");
        assert_eq!(router.stream_len(), 4);
    }
}

#[test]
fn wildcard_names_fit_where_expressions_are_made() {
    let routes = [json!({"protocols": ["tls"], "snis": ["*.a.test"]})];
    let router = router(Flavor::TraditionalCompatible, &routes);
    assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.1:1", Some("x.a.test"), true), 1);
}

#[test]
fn expressions_ask_for_every_field_of_streams() {
    let routes = [
        json!({"protocols": ["tcp"], "expression": "net.src.ip in 10.0.0.0/8 && net.dst.port == 9000", "priority": 1}),
        json!({"protocols": ["tcp"], "expression": "net.protocol == \"tcp\" && net.dst.ip == 127.0.0.1", "priority": 2}),
        json!({"protocols": ["tls"], "expression": "tls.sni =^ \".test\" && net.protocol == \"tls\""}),
        json!({"protocols": ["udp"], "expression": "net.src.port >= 1024 && net.protocol == \"udp\""}),
    ];
    let router = router(Flavor::Expressions, &routes);
    assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.1:9000", None, false), 2);
    assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.2:9000", None, false), 1);
    assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.2:9001", None, false), 0);
    assert_eq!(found(&router, "10.0.0.1:1", "127.0.0.2:9001", Some("a.test"), true), 3);
    let datagrams = |source| asked(&router, StreamProtocol::Udp, None, source, "127.0.0.1:9000");
    assert_eq!((datagrams("10.0.0.1:1024"), datagrams("10.0.0.1:53")), (4, 0));
}

#[test]
fn a_route_may_change_its_family_and_go() {
    for flavor in ALL {
        let first = router(flavor, &[json!({"protocols": ["tcp"], "destinations": [{"port": 1}]})]);
        let over_http = entry(1, json!({"protocols": ["http"], "paths": ["/"]}));
        let (second, problems) = first.change([Change::Put(over_http)]);
        assert_eq!((second.len(), second.stream_len(), problems.len()), (1, 0, 0), "{flavor:?}");
        let (third, _) =
            second.change([Change::Put(entry(1, json!({"protocols": ["tcp"], "destinations": [{"port": 1}]})))]);
        assert_eq!((third.len(), third.stream_len()), (0, 1), "{flavor:?}");
        let (fourth, _) = third.change([Change::Remove(id(1).into())]);
        assert_eq!((fourth.stream_len(), first.stream_len()), (0, 1), "{flavor:?}: the first is as it was");
    }
}

#[test]
fn what_cannot_be_read_is_reported() {
    let entries = [entry(1, json!({"protocols": ["tcp"], "sources": [{"ip": "10.0.0.300"}, {"ip": "10.0.0.0/40"}]}))];
    let (_, problems) = Router::build(Flavor::Traditional, entries.clone()).unwrap();
    let fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
    assert_eq!(fields, ["sources[0]", "sources[1]"]);
    let (router, problems) = Router::build(Flavor::TraditionalCompatible, entries).unwrap();
    assert_eq!((router.stream_len(), problems.len()), (0, 1));
}
