//! Tests of the expression language: reading, refusing, comparing, and the index against the ordered scan.

use super::ast::Node;
use super::{check, check_route};
use crate::tests::{Asked, any_request, any_route, get, route, router_of};
use crate::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn router(routes: &[(&str, Value)]) -> Router {
    router_of(Flavor::Expressions, routes)
}

#[track_caller]
fn takes(router: &Router, asked: Asked, expected: &str) {
    assert_eq!(asked.route(router).as_deref().unwrap_or("none"), expected, "{asked:?}");
}

/// Whether an expression holds for a request.
#[track_caller]
fn holds(expression: &str, asked: &Asked) -> bool {
    asked.route(&router(&[("it", json!({"expression": expression}))])).is_some()
}

fn http() -> Vec<String> {
    vec!["http".to_owned()]
}

#[test]
fn or_binds_closer_than_and() {
    for (text, expected) in [
        ("a == 1 && b == 2 || c == 3", "a == 1 && (b == 2 || c == 3)"),
        ("a == 1 || b == 2 && c == 3 || d == 4", "(a == 1 || b == 2) && (c == 3 || d == 4)"),
        ("!(a==1)&&(b not   in 10.0.0.0/8)", "!(a == 1) && b not in 10.0.0.0/8"),
        ("any( lower( a ) ) ~ r#\"^\\d\"#", "any(lower(a)) ~ \"^\\\\d\""),
        ("a == -0x1F && b > 017 && c == 08", "a == -31 && b > 15 && c == 8"),
        ("a == \"\\\"\\\\\\n\\r\\t\"", "a == \"\\\"\\\\\\n\\r\\t\""),
        ("a == ::1 || b in 2001:db8::/32 || c == 1.2.3.4", "a == ::1 || b in 2001:db8::/32 || c == 1.2.3.4"),
    ] {
        assert_eq!(Node::parse(text).unwrap().to_string(), expected, "{text}");
    }
}

#[test]
fn faults_are_pointed_at_in_the_words_of_kong() {
    let first_line = "Router Expression failed validation: ";
    for (text, expected) in [
        ("! a == 1", " --> 1:1\n  |\n1 | ! a == 1\n  | ^---\n  |\n  = expected term"),
        ("a == 1 || ! b == 2", " --> 1:11\n  |\n1 | a == 1 || ! b == 2\n  |           ^---\n  |\n  = expected term"),
        ("()", " --> 1:2\n  |\n1 | ()\n  |  ^---\n  |\n  = expected term"),
        (
            "(any(lower(http.headers.x)) ~ r#\"(\"#)",
            " --> 1:31\n  |\n1 | (any(lower(http.headers.x)) ~ r#\"(\"#)\n  |                               ^----^\n  |\n  \
             = regex parse error:\n    (\n    ^\nerror: unclosed group",
        ),
        (
            "http.path ~ 1",
            " --> 1:13\n  |\n1 | http.path ~ 1\n  |             ^\n  |\n  \
             = regex operator can only be used with String operands",
        ),
        (
            "upper(a) == 1",
            " --> 1:1\n  |\n1 | upper(a) == 1\n  | ^------^\n  |\n  = unknown transformation function: upper",
        ),
        (
            "net.src.ip in 10.0.0.1/8",
            " --> 1:15\n  |\n1 | net.src.ip in 10.0.0.1/8\n  |               ^--------^\n  |\n  \
             = host part of address was not zero",
        ),
    ] {
        assert_eq!(check(text, &http()).unwrap_err(), format!("{first_line}{expected}"), "{text}");
    }
}

#[test]
fn comparisons_must_make_sense() {
    let tcp = ["tcp".to_owned()];
    let refusal = |text: &str, protocols: &[String]| {
        check(text, protocols).unwrap_err().trim_start_matches("Router Expression failed validation: ").to_owned()
    };
    for (text, expected) in [
        ("http.nothing == \"a\"", "Unknown LHS field"),
        ("http.path == 1", "Type mismatch between the LHS and RHS values of predicate"),
        ("lower(net.dst.port) == 1", "lower-case transformation function only supported with String type fields"),
        ("net.dst.port ~ \"1\"", "Regex operators only supports string operands"),
        ("net.dst.port ^= 1", "Regex/Prefix/Postfix operators only supports string operands"),
        ("net.dst.port contains 1", "Contains operator only supports string operands"),
        ("net.src.ip in 1.2.3.4", "In/NotIn operators only supports IP in CIDR"),
        ("http.path in \"a\"", "In/NotIn operators only supports IP in CIDR"),
        ("http.path > \"a\"", "Greater/GreaterOrEqual/Lesser/LesserOrEqual operators only supports integer operands"),
        ("http.path.segments.2_1 == \"a\"", "illformed http.path.segments.* field"),
    ] {
        assert_eq!(refusal(text, &http()), expected, "{text}");
    }
    assert_eq!(refusal("http.path == \"/\"", &tcp), "Unknown LHS field");
    assert!(check("net.port == 80 && tls.sni == \"a\"", &tcp).is_ok());
}

#[test]
fn deep_nesting_is_refused_and_brackets_in_texts_do_not_nest() {
    let deep = format!("{}a == 1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Node::parse(&deep).unwrap_err().contains("nested"));
    let texts = format!("a == \"\\\"{0}\" && b == r#\"{0}\"#", "(".repeat(200));
    assert!(Node::parse(&texts).is_ok());
    let long = vec!["a == 1"; 5000].join(" && ");
    assert!(matches!(Node::parse(&long), Ok(Node::And(items)) if items.len() == 5000));
}

#[test]
fn routes_are_checked_by_what_they_amount_to() {
    let view = |fields: Value| route(fields).route;
    assert!(check_route(&view(json!({"id": "1"}))).is_ok());
    assert!(check_route(&view(json!({"id": "1", "paths": ["~/a\\d"], "hosts": ["a:80"]}))).is_ok());
    let fault = check_route(&view(json!({"id": "1", "paths": ["~/(?=a)"]}))).unwrap_err();
    assert!(fault.ends_with("look-around, including look-ahead and look-behind, is not supported"), "{fault}");
    for (fields, expected) in [
        (json!({"expression": "a", "paths": ["/"]}), "cannot set 'expression' with 'methods'"),
        (json!({"expression": "a", "regex_priority": 1}), "cannot set 'regex_priority'"),
        (json!({"paths": ["/"], "priority": 1}), "cannot set 'priority' with"),
        (json!({"expression": "http.path"}), "expected binary_operator"),
    ] {
        let mut fields = fields;
        fields["id"] = json!("1");
        let fault = check_route(&view(fields)).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn fields_are_compared() {
    let asked = get("a.test:81", "/a/B/c?q=1&q=2&e").header("X-A", "One").header("x-a", "two").header("x_b", "3");
    let asked = Asked { https: true, sni: Some("s.test"), ..asked };
    for (expression, expected) in [
        ("net.protocol == \"https\" && tls.sni == \"s.test\"", true),
        ("http.method == \"GET\" && http.host == \"a.test\" && net.dst.port == 81", true),
        ("http.host =^ \".test\" && http.host ^= \"a.\" && http.host contains \"te\"", true),
        ("lower(http.path) == \"/a/b/c\"", true),
        ("http.path == \"/a/b/c\"", false),
        ("http.path ~ \"B/c$\"", true),
        ("http.path.segments.0 == \"a\" && http.path.segments.len == 3", true),
        ("http.path.segments.1_2 == \"B/c\"", true),
        ("http.path.segments.1_3 != \"B\"", false),
        ("http.path.segments.3 != \"x\"", false),
        ("http.headers.x_a == \"One\"", false),
        ("any(http.headers.x_a) == \"two\"", true),
        ("lower(http.headers.x_a) ~ \"^(one|two)$\"", true),
        ("any(http.headers.x_a) == \"three\"", false),
        ("http.headers.x_b == \"3\"", true),
        ("http.headers.X_A contains \"o\"", false),
        ("any(http.headers.X_A) contains \"w\"", true),
        ("http.headers.x_c != \"a\"", false),
        ("!(http.headers.x_c == \"a\")", true),
        ("http.queries.q == \"1\"", false),
        ("any(http.queries.q) == \"2\" && http.queries.e == \"\"", true),
        ("net.src.ip in 127.0.0.0/8 && net.src.ip not in 10.0.0.0/8 && net.src.ip == 127.0.0.1", true),
        ("net.src.ip in ::/0", false),
        ("net.src.port >= 5000 && net.src.port <= 5000 && net.src.port > 4999 && net.src.port < 5001", true),
        ("net.src.port != 5000", false),
        ("net.dst.ip != 1.2.3.4", false),
    ] {
        assert_eq!(holds(expression, &asked), expected, "{expression}");
    }
    for (target, count) in [("/", 0), ("/a", 1), ("/a/", 2)] {
        assert!(holds(&format!("http.path.segments.len == {count}"), &get("x", target)), "{target}");
    }
}

#[test]
fn priorities_come_first_then_ids_and_fields_last() {
    let router = router(&[
        ("low", json!({"expression": "http.path ^= \"/p\"", "priority": 1})),
        ("high", json!({"expression": "http.path ^= \"/p/x\"", "priority": 70_000_000_000_000_u64})),
        ("same", json!({"expression": "http.path ^= \"/p\"", "priority": 1})),
        ("fields", json!({"paths": ["/", "/p/x/long"], "hosts": ["a.test"]})),
        ("four", json!({"paths": ["/p/x/y"], "hosts": ["a.test"], "methods": ["GET"], "headers": {"x": ["1"]}})),
    ]);
    takes(&router, get("a.test", "/p/x/long"), "high");
    takes(&router, get("a.test", "/p"), "same");
    takes(&router, get("a.test", "/"), "fields");
    takes(&router, get("a.test", "/p/x/y").header("x", "1"), "four");
    assert_eq!(router.flavor(), Flavor::Expressions);
}

#[test]
fn protocols_are_part_of_the_condition_unless_they_are_https_alone() {
    let root = |protocols: Value| json!({"expression": "http.path == \"/\"", "protocols": protocols});
    let tls = Asked { https: true, ..get("x", "/") };
    for (protocols, plain, secure) in
        [(json!(["http"]), "it", "none"), (json!(["https"]), "it", "it"), (json!(["grpcs"]), "none", "it")]
    {
        let router = router(&[("it", root(protocols))]);
        takes(&router, get("x", "/"), plain);
        takes(&router, tls.clone(), secure);
    }
}

#[test]
fn what_is_taken_off_the_path_is_what_was_compared() {
    let taken = |expression: &str, target: &str| {
        let router = router(&[("it", json!({"expression": expression}))]);
        get("x", target).with(|request| {
            let found = router.find(request).unwrap();
            (found.matched_path().unwrap_or("-").to_owned(), found.upstream_path())
        })
    };
    for (expression, target, prefix, upstream) in [
        ("http.path ^= \"/pre\"", "/pre/x", "/pre", "/x"),
        ("http.path =^ \".png\"", "/a.png", ".png", "/ng"),
        ("http.path ~ \"^/\\\\d+\"", "/12/x", "/12", "/x"),
        ("lower(http.path) ~ \"^/[a-z]+\"", "/AB/x", "/ab", "/x"),
        ("http.path contains \"x\"", "/x/y", "-", "/x/y"),
        ("http.path ^= \"/x\" && http.path != \"/y\"", "/x/y", "/x", "/y"),
        ("http.path ^= \"/x\" && http.path =^ \"y\"", "/x/y", "y", "/x/y"),
    ] {
        assert_eq!(taken(expression, target), (prefix.to_owned(), upstream.to_owned()), "{expression}");
    }
}

#[test]
fn captures_of_all_regexes_are_laid_over_each_other() {
    let expression = "http.headers.x ~ \"(a)(?<last>b)\" && http.path ~ \"^/(?<id>\\\\d+)\"";
    let router = router(&[("it", json!({"expression": expression})), ("none", json!({"paths": ["/"]}))]);
    get("x", "/12").header("x", "ab").with(|request| {
        let captures = router.find(request).unwrap().uri_captures().unwrap();
        assert_eq!(captures.numbered, [Some("/12".to_owned()), Some("12".to_owned()), Some("b".to_owned())]);
        let named = [("last".to_owned(), "b".to_owned()), ("id".to_owned(), "12".to_owned())];
        assert_eq!(captures.named, named);
    });
    get("x", "/12").with(|request| assert_eq!(router.find(request).unwrap().uri_captures(), None));
}

#[test]
fn a_bad_expression_is_reported() {
    let bad = route(json!({"id": "00000000-0000-4000-8000-000000000001", "expression": "http.path == 1"}));
    let (router, problems) = Router::build(Flavor::Expressions, [bad]).unwrap();
    assert!(router.is_empty());
    assert_eq!(problems[0].field, "expression");
    assert!(problems[0].reason.ends_with("Type mismatch between the LHS and RHS values of predicate"));
}

// From here on: properties.

fn any_test() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "http.path ^= \"/a\"",
        "http.path == \"/a/b\"",
        "http.path ~ \"^/a/\\\\w\"",
        "http.path ~ \"^/a|/b\"",
        "lower(http.path) =^ \"c\"",
        "http.path contains \"x\"",
        "http.host == \"a.test\"",
        "http.host =^ \".test\"",
        "http.host ^= \"a.\"",
        "http.host =^ \"t\"",
        "any(lower(http.headers.x_b)) == \"v2\"",
        "http.method != \"GET\"",
        "net.protocol == \"https\"",
        "http.path.segments.0 == \"a\"",
        "http.path.segments.len > 1",
        "net.src.ip not in 10.0.0.0/8",
    ])
    .prop_map(str::to_owned)
}

fn any_expression() -> impl Strategy<Value = String> {
    any_test().prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            list.clone().prop_map(|items| format!("({})", items.join(" && "))),
            list.prop_map(|items| format!("({})", items.join(" || "))),
            inner.prop_map(|item| format!("!({item})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "[ a-c.\"#r()!&|=~^<>0-9:/\\\\]{0,40}", other in any::<String>()) {
        for text in [text, other] {
            if let Ok(node) = Node::parse(&text) {
                prop_assert!(Node::parse(&node.to_string()).is_ok_and(|again| again == node), "{}", text);
            }
        }
    }

    #[test]
    fn what_is_printed_reads_back_equal(text in any_expression()) {
        let node = Node::parse(&text).unwrap();
        prop_assert_eq!(Node::parse(&node.to_string()).unwrap(), node);
        prop_assert!(check(&text, &http()).is_ok());
    }

    #[test]
    fn the_index_chooses_as_the_ordered_scan_does(
        expressions in prop::collection::vec((any_expression(), 0..4_u32), 0..12),
        fields in prop::collection::vec(any_route(), 0..12),
        requests in prop::collection::vec(any_request(), 1..30),
    ) {
        let usable = |fields: &Value| {
            let texts = fields["paths"].to_string();
            !texts.contains("(?!") && ["hosts", "paths", "methods", "snis"].iter().any(|name| fields[name] != json!([]))
        };
        let written = |(expression, priority)| json!({"expression": expression, "priority": priority});
        let routes = expressions.into_iter().map(written).chain(fields.into_iter().filter(usable));
        let router = router(&routes.map(|fields| ("r", fields)).collect::<Vec<_>>());
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
