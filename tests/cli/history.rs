//! What changed, the way back, and others who write meanwhile.

use super::live::Live;
use super::{Ran, gwctl};
use gwctl_testkit::{delete, get, patch, post};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

fn services(host: &str) -> String {
    format!("{{_format_version: \"3.0\", services: [{{name: orders, url: \"http://{host}:9/x\"}}]}}")
}

/// Two versions by file: a service, then its host and a consumer with a key.
fn with_past() -> Live {
    let live = Live::start();
    assert_eq!(live.run(&["apply", "-f", &live.file("one.yaml", &services("one.test"))]).code, 0);
    let consumers = "consumers: [{username: bob, keyauth_credentials: [{key: sesame-open}]}]";
    let both = services("two.test").replacen("services:", &format!("{consumers}, services:"), 1);
    assert_eq!(live.run(&["apply", "-f", &live.file("two.yaml", &both)]).code, 0);
    live
}

fn json_of(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

#[test]
fn the_history_lists_versions_and_shows_what_one_did() {
    let live = with_past();
    let listed = live.run(&["history"]);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert!(lines[0].starts_with("VERSION  WHEN") && lines[1].starts_with("3 "), "{}{}", listed.out, listed.err);
    assert!(lines[1].contains("+2 ~1 ") && lines[1].contains("consumers bob"), "{}", lines[1]);
    assert!(lines[1].contains("gwctl/") && lines[1].contains("ago"), "{}", lines[1]);
    let document = json_of(&live.run(&["history", "--limit", "1", "-o", "json"]));
    let item = &document["items"][0];
    assert_eq!((&document["kind"], &item["version"], &item["changes"]), (&json!("history"), &json!(3), &json!(3)));
    assert!(item["time"].as_str().is_some_and(|time| time.ends_with('Z') && time.contains('T')), "{item}");
    assert_eq!(document["items"].as_array().map(Vec::len), Some(1));
    let one = live.run(&["history", "3"]);
    for line in ["~ change services orders", "+ create keyauth_credentials (consumers bob)", "2 created, 1 changed"] {
        assert!(one.out.contains(line), "{line}: {}{}", one.out, one.err);
    }
    let document = live.run(&["history", "3", "-o", "yaml"]);
    for text in [&one.out, &document.out, &listed.out] {
        assert!(!text.contains("sesame-open"), "a key is shown: {text}");
    }
    let missing = live.run(&["history", "99"]);
    assert!(missing.code == 1 && missing.err.contains("the newest is 3"), "{}", missing.err);
}

#[test]
fn a_rollback_is_shown_confirmed_and_one_version() {
    let live = with_past();
    let tried = live.run(&["rollback", "2", "--dry-run"]);
    assert_eq!(tried.code, 2, "{}", tried.err);
    assert!(tried.out.contains("host: \"two.test\" -> \"one.test\""), "{}", tried.out);
    assert!(tried.out.contains("- delete consumers bob") && !tried.out.contains("sesame-open"), "{}", tried.out);
    let asked = live.run(&["rollback", "2"]);
    assert!(asked.code == 5 && asked.err.contains("--yes"), "{}", asked.err);
    assert_eq!(live.run(&["get", "consumers"]).out.lines().count(), 2, "nothing was sent");
    let done = live.run(&["rollback", "2", "--yes"]);
    assert!(done.code == 0 && done.err.contains("rolled back to version 2: version 4"), "{}", done.err);
    assert_eq!(live.run(&["diff", "--prune", "-f", &live.file("one.yaml", &services("one.test"))]).code, 0);
    assert!(live.run(&["history"]).out.lines().nth(1).is_some_and(|line| line.contains("(rollback to 2)")));
    let again = live.run(&["rollback", "2"]);
    assert!(again.code == 0 && again.err.contains("nothing to do"), "{}", again.err);
    assert_eq!(live.run(&["rollback", "3", "--yes"]).code, 0);
    assert_eq!(live.run(&["get", "key-auths"]).out.lines().count(), 2, "a rollback can be rolled back");
    let missing = live.run(&["rollback", "99", "--yes"]);
    assert!(missing.code == 1 && missing.err.contains("`gwctl history`"), "{}", missing.err);
}

#[test]
fn a_credential_that_changes_hands_is_told_loudly_and_by_name() {
    let live = with_past();
    let moved = "{_format_version: \"3.0\", consumers: [{username: bob}, {username: eve, keyauth_credentials: [{key: sesame-open}]}]}";
    let file = live.file("moved.yaml", moved);
    let plan = live.run(&["diff", "-f", &file]);
    assert!(plan.out.contains("    consumer: bob -> eve\n"), "{}", plan.out);
    let loud = plan.out.lines().find(|line| line.starts_with("! MOVES keyauth_credentials ")).unwrap();
    assert!(loud.contains("from consumer bob to consumer eve"), "{loud}");
    let document = json_of(&live.run(&["diff", "-f", &file, "-o", "json"]));
    assert!(document["warnings"][0].as_str().is_some_and(|warning| warning.starts_with("MOVES ")), "{document}");
    assert!(!plan.out.contains("sesame-open") && !document.to_string().contains("sesame-open"));
    assert!(plan.out.contains("1 left as they are (not in the file): services orders"), "{}", plan.out);
}

/// An Admin API before which somebody else changes something whenever changes or a rollback are on their way.
fn with_others(admin: u16, meddle: impl Fn(u16) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let meddle = Arc::new(meddle);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let meddle = Arc::clone(&meddle);
            thread::spawn(move || {
                pass_on(client, admin, &|piece| {
                    if holds(piece, b"POST /gwctl/changes") || holds(piece, b"POST /gwctl/rollback HTTP") {
                        meddle(admin);
                    }
                })
            });
        }
    });
    address
}

fn holds(piece: &[u8], text: &[u8]) -> bool {
    piece.windows(text.len()).any(|window| window == text)
}

/// An Admin API without the endpoint for many changes, as a plain Kong is.
pub(crate) fn without_batches(admin: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || {
                pass_on(client, admin, &|piece| {
                    if let Some(at) = piece.windows(14).position(|window| window == b"/gwctl/changes") {
                        piece[at..at + 14].copy_from_slice(b"/kong/no-batch");
                    }
                })
            });
        }
    });
    address
}

fn pass_on(mut client: TcpStream, admin: u16, look: &dyn Fn(&mut [u8])) {
    let mut server = TcpStream::connect(("127.0.0.1", admin)).unwrap();
    let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut back, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let mut piece = [0; 65536];
    while let Ok(read @ 1..) = client.read(&mut piece) {
        look(&mut piece[..read]);
        if server.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn a_change_by_others_that_touches_nothing_of_the_plan_is_no_obstacle() {
    let live = with_past();
    let once = std::sync::Once::new();
    let address = with_others(live.cp.admin(), move |admin| {
        once.call_once(|| assert_eq!(post(admin, "/consumers", &json!({"username": "late"})).status, 201));
    });
    let file = live.file("three.yaml", &services("three.test"));
    let ran = gwctl(&["apply", "-f", &file, "--addr", &address]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("the plan is the same, going on"), "{}", ran.err);
    assert_eq!(get(live.cp.admin(), "/services/orders").json()["host"], "three.test");
}

#[test]
fn a_change_by_others_to_the_same_record_is_told_with_the_code_of_a_guard() {
    let live = with_past();
    let once = std::sync::Once::new();
    let address = with_others(live.cp.admin(), move |admin| {
        once.call_once(|| assert_eq!(patch(admin, "/services/orders", &json!({"retries": 1})).status, 200));
    });
    let file = live.file("three.yaml", &services("three.test"));
    let ran = gwctl(&["apply", "-f", &file, "--addr", &address]);
    assert!(ran.code == 5 && ran.err.contains("somebody else changed the configuration"), "{}", ran.err);
    assert_eq!(get(live.cp.admin(), "/services/orders").json()["host"], "two.test");
    assert_eq!(delete(live.cp.admin(), "/consumers/bob").status, 204);
}

#[test]
fn a_rollback_that_others_changed_the_meaning_of_is_not_carried_out() {
    let live = with_past();
    let once = std::sync::Once::new();
    let address = with_others(live.cp.admin(), move |admin| {
        once.call_once(|| assert_eq!(post(admin, "/consumers", &json!({"username": "late"})).status, 201));
    });
    let ran = gwctl(&["rollback", "2", "--yes", "--addr", &address]);
    assert!(ran.code == 5 && ran.err.contains("somebody else changed the configuration"), "{}", ran.err);
    assert_eq!(get(live.cp.admin(), "/consumers/late").status, 200);
    assert_eq!(get(live.cp.admin(), "/services/orders").json()["host"], "two.test");
}
