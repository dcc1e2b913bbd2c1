//! The API as a whole, without sockets.

use crate::answer::Content;
use crate::fake::Client;
use crate::place;
use gwctl_entities::{NodeKind, Registry, RegistryOptions, Value};
use serde_json::json;

const ID: &str = "aaaaaaaa-0000-4000-8000-000000000001";

fn control_plane() -> Client {
    Client::of(NodeKind::ControlPlane)
}

fn names(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect()
}

#[test]
fn put_by_name_creates_then_replaces_under_the_same_id() {
    let client = control_plane();
    let created = client.expect(200, "PUT", "/services/a", json!({"host": "one.test", "retries": 1}));
    let replaced = client.expect(200, "PUT", "/services/a", json!({"host": "two.test", "id": ID, "name": "b"}));
    assert_eq!((&replaced["id"], &replaced["name"]), (&created["id"], &json!("a")));
    assert_eq!(replaced["retries"], 5, "what is not given goes back to its default");
}

/// Also where a type that the path does not tell would judge the rest of the record.
#[test]
fn a_name_that_a_field_cannot_hold_is_told_for_every_entity_and_method() {
    let client = control_plane();
    let uncanny = "the only accepted ascii characters are alphanumerics or ., -, _, and ~";
    for (path, name, reason) in [
        ("/services/a%20b", "invalid unique name", uncanny),
        ("/routes/a%2Fb", "invalid unique name", uncanny),
        ("/plugins/a%20b", "invalid unique instance_name", uncanny),
        ("/vaults/A_b", "invalid unique prefix", "invalid value: A_b"),
        ("/vaults/env", "invalid unique prefix", "must not be one of: env"),
        ("/snis/a%20b", "invalid unique name", "invalid value: a b"),
        ("/upstreams/1.2.3.4", "invalid unique name", "no ip addresses allowed"),
        ("/certificates/1.2.3.4", "invalid unique name", "must not be an IP"),
    ] {
        for method in ["GET", "PUT", "PATCH", "DELETE"] {
            let (status, refused) = client.send(method, path, Some(json!({"name": "env"})));
            assert_eq!(
                (status, &refused["code"], &refused["name"]),
                (400, &json!(10), &json!(name)),
                "{method} {path}"
            );
            assert!(refused["message"].as_str().unwrap().contains(reason), "{refused}");
        }
    }
}

#[test]
fn put_by_id_takes_the_id_of_the_path() {
    let client = control_plane();
    let put =
        client.expect(200, "PUT", &format!("/services/{}", ID.to_uppercase()), json!({"host": "a.test", "id": "x"}));
    assert_eq!(put["id"], ID);
}

#[test]
fn patch_merges_and_is_refused_for_what_is_absent() {
    let client = control_plane();
    client.expect(201, "POST", "/services", json!({"name": "a", "host": "a.test", "path": "/p"}));
    let patched = client.expect(200, "PATCH", "/services/a", json!({"path": null, "retries": 7}));
    assert_eq!((&patched["path"], &patched["retries"], &patched["host"]), (&Value::Null, &json!(7), &json!("a.test")));
    let refused = client.expect(404, "PATCH", "/services/b", json!({}));
    assert_eq!((&refused["code"], &refused["fields"]), (&json!(6), &json!({"name": "b"})));
    assert_eq!(client.get("/services/b"), (404, json!({"message": "Not found"})));
}

#[test]
fn deleting_the_absent_is_done_at_the_top_and_not_found_below_a_parent() {
    let client = control_plane();
    client.expect(201, "POST", "/services", json!({"name": "a", "host": "a.test"}));
    assert_eq!(client.send("DELETE", "/services/nope", None).0, 204);
    assert_eq!(client.send("DELETE", "/services/a/routes/nope", None).0, 404);
    assert_eq!(client.send("DELETE", "/services/a", None).0, 204);
    assert_eq!(client.get("/services/a").0, 404);
}

#[test]
fn a_refused_write_leaves_nothing_behind() {
    let client = control_plane();
    client.expect(201, "POST", "/services", json!({"name": "a", "host": "a.test"}));
    client.expect(409, "POST", "/services", json!({"name": "a", "host": "b.test"}));
    client.expect(400, "POST", "/routes", json!({"paths": ["/x"], "service": {"id": ID}}));
    assert_eq!(names(&client.get("/services").1), ["a"]);
    assert_eq!(client.get("/routes").1["data"], json!([]));
}

#[test]
fn a_nested_collection_sets_the_parent_and_hides_children_of_others() {
    let client = control_plane();
    let mine = client.expect(201, "POST", "/services", json!({"name": "a", "host": "a.test"}));
    client.expect(201, "POST", "/services", json!({"name": "b", "host": "b.test"}));
    let body = json!({"name": "r", "paths": ["/x"], "service": {"name": "b"}});
    let route = client.expect(201, "POST", "/services/a/routes", body);
    assert_eq!(route["service"], json!({"id": mine["id"]}));
    assert_eq!(client.get("/services/a/routes/r").0, 200);
    assert_eq!(client.get("/services/b/routes/r").0, 404);
    assert_eq!(client.get("/services/nope/routes").0, 404);
    assert_eq!(client.get("/routes/r/service").1["name"], "a");
}

#[test]
fn the_parent_of_an_entity_is_updated_and_created_through_it() {
    let client = control_plane();
    client.expect(201, "POST", "/routes", json!({"name": "r", "paths": ["/x"]}));
    assert_eq!(client.get("/routes/r/service").0, 404);
    client.expect(404, "PATCH", "/routes/r/service", json!({"retries": 1}));
    client.expect(200, "PUT", "/routes/r/service", json!({"host": "a.test", "name": "made"}));
    client.expect(200, "PATCH", "/routes/r/service", json!({"retries": 1}));
    let (_, service) = client.get("/services/made");
    assert_eq!(service["retries"], 1);
    assert_eq!(client.get("/routes/r").1["service"]["id"], service["id"]);
    assert_eq!(client.send("DELETE", "/routes/r/service", None).0, 405);
}

#[test]
fn following_next_meets_every_row_once_in_order() {
    let client = control_plane();
    for number in 0..7 {
        client.expect(201, "POST", "/consumers", json!({"username": format!("u{number}"), "tags": ["t"]}));
    }
    let (mut target, mut ids, mut pages) = ("/consumers?size=2&tags=t".to_owned(), Vec::new(), 0);
    loop {
        let (status, page) = client.get(&target);
        assert_eq!(status, 200, "{page}");
        pages += 1;
        ids.extend(page["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else {
            assert!(page.get("offset").is_none(), "the last page has no offset, not a null one");
            break;
        };
        assert!(next.ends_with("&tags=t&size=2"), "{next}");
        target = next.to_owned();
    }
    assert_eq!((pages, ids.len()), (4, 7));
    assert!(ids.is_sorted());
}

#[test]
fn next_of_a_nested_list_keeps_the_path_as_given_and_nothing_else() {
    let client = control_plane();
    client.expect(200, "PUT", "/services/a", json!({"host": "a.test"}));
    for number in 0..2 {
        client.expect(201, "POST", "/services/a/routes", json!({"paths": [format!("/{number}")]}));
    }
    let next = client.get("/services/a/routes?size=1&tags=x").1["next"].as_str().unwrap().to_owned();
    assert!(next.starts_with("/services/a/routes?offset=") && !next.contains('&'), "{next}");
}

#[test]
fn targets_are_listed_newest_first_and_never_made_by_put() {
    let client = control_plane();
    client.expect(201, "POST", "/upstreams", json!({"name": "up.test"}));
    for address in ["10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80"] {
        client.expect(201, "POST", "/upstreams/up.test/targets", json!({"target": address}));
    }
    let (_, page) = client.get("/upstreams/up.test/targets?size=2");
    let addresses: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|row| &row["target"]).collect();
    assert_eq!(addresses, ["10.0.0.3:80", "10.0.0.2:80"]);
    assert_eq!((&page["offset"], &page["next"]), (&json!("2"), &json!("/upstreams/up.test/targets?offset=2")));
    client.expect(404, "PUT", &format!("/upstreams/up.test/targets/{ID}"), json!({"target": "10.0.0.9:80"}));
    let put = client.expect(200, "PUT", "/upstreams/up.test/targets/10.0.0.1:80", json!({"weight": 3}));
    assert_eq!((&put["weight"], &put["target"]), (&json!(3), &json!("10.0.0.1:80")));
    assert_eq!(client.get("/targets").0, 404);
    assert_eq!(client.get("/upstreams/up.test/health").1["node_id"], "95d1df3d-b1da-427f-b5a9-13d97e3ae6ff");
}

#[test]
fn a_group_stands_for_a_membership_below_its_consumer() {
    let client = control_plane();
    client.expect(200, "PUT", "/consumers/c", json!({}));
    let (status, body) = client.get("/consumers/c/acls/g");
    assert_eq!((status, body["request_id"].as_str().map(str::len)), (404, Some(32)));
    client.expect(200, "PUT", "/consumers/c/acls/g", json!({}));
    assert_eq!(client.get("/consumers/c/acls/g").1["group"], "g");
    assert_eq!(client.get("/acls/g").1["code"], 1, "elsewhere only the id counts");
}

#[test]
fn tags_of_all_entities_are_one_list() {
    let client = control_plane();
    client.expect(201, "POST", "/services", json!({"host": "a.test", "tags": ["red", "blue"]}));
    client.expect(201, "POST", "/vaults", json!({"name": "env", "prefix": "my-v", "tags": ["red"]}));
    let (mut target, mut seen) = ("/tags?size=1".to_owned(), Vec::new());
    loop {
        let (_, page) = client.get(&target);
        let row = &page["data"][0];
        seen.push(format!("{}:{}", row["entity_name"].as_str().unwrap(), row["tag"].as_str().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        target = format!("{next}&size=1");
    }
    seen.sort();
    assert_eq!(seen, ["services:blue", "services:red", "sm_vaults:red"]);
    assert_eq!(client.get("/tags/red").1["data"].as_array().unwrap().len(), 2);
    assert_eq!(client.get("/tags/none").1, json!({"data": [], "next": null}));
}

#[test]
fn a_name_the_field_could_not_hold_is_code_10_and_a_name_without_a_key_code_1() {
    let client = control_plane();
    assert_eq!(client.get("/services/a%20b").1["name"], "invalid unique name");
    assert_eq!(client.get("/ca_certificates/zzz").1["code"], 1);
    assert_eq!(client.get("/certificates/zzz.test"), (404, json!({"message": "SNI not found"})));
    assert_eq!(client.get(&format!("/certificates/{ID}")).1["code"], 6);
}

#[test]
fn without_a_store_writes_are_refused_after_everything_else_was_checked() {
    let client = Client::of(NodeKind::DbLess);
    let refused = client.expect(405, "POST", "/services", json!({"host": "a.test"}));
    assert_eq!(
        (&refused["code"], &refused["message"]),
        (&json!(12), &json!("cannot create 'services' entities when not using a database"))
    );
    client.expect(400, "POST", "/services", json!({}));
    let refused = client.expect(405, "PUT", "/services/x", json!({"host": "a.test"}));
    assert_eq!(refused["message"], "cannot create or update 'services' entities by 'name' when not using a database");
    client.expect(404, "PATCH", "/services/x", json!({}));
    assert_eq!(client.send("DELETE", "/services/x", None).0, 204);
    assert_eq!(client.get("/clustering/data-planes").0, 400);
}

#[test]
fn a_configuration_is_posted_only_where_there_is_no_store() {
    let without = Client::of(NodeKind::DbLess);
    without.expect(201, "POST", "/config", json!({"_format_version": "3.0"}));
    assert_eq!(without.send("POST", "/config?check_hash=1", Some(json!({"config": "x"}))), (304, Value::Null));
    assert_eq!(without.send("POST", "/config", None).0, 400);
    assert_eq!(without.get("/config").0, 200);
    let (status, body) = control_plane().get("/config");
    assert_eq!(
        (status, body),
        (400, json!({"message": "this endpoint is only available when Kong is configured to not use a database"}))
    );
}

#[test]
fn methods_are_told_by_options_and_others_refused() {
    let client = control_plane();
    let options = |path: &str| {
        let answer = client.answer("OPTIONS", path, None);
        (answer.status, answer.headers.into_iter().find(|(name, _)| *name == "allow").map(|(_, value)| value))
    };
    assert_eq!(options("/services"), (204, Some("GET, HEAD, OPTIONS, POST".to_owned())));
    assert_eq!(options("/services/x"), (204, Some("DELETE, GET, HEAD, OPTIONS, PATCH, PUT".to_owned())));
    assert_eq!(options("/targets").0, 404);
    assert_eq!(options("/certificates/nope.test").0, 404);
    assert_eq!(options("/nope").0, 404);
    assert_eq!(client.send("PATCH", "/services", None), (405, json!({"message": "Method not allowed"})));
    assert_eq!(client.answer("OPTIONS", "/", None).content, Content::Empty);
}

#[test]
fn validation_of_a_body_writes_nothing() {
    let client = control_plane();
    let body = json!({"host": "a.test", "client_certificate": null});
    client.expect(200, "POST", "/schemas/services/validate", body);
    client.expect(400, "POST", "/schemas/services/validate", json!({"host": 1}));
    client.expect(404, "POST", "/schemas/nope/validate", json!({}));
    assert_eq!(client.get("/services").1["data"], json!([]));
}

#[test]
fn every_pattern_listed_leads_somewhere() {
    for kind in [NodeKind::ControlPlane, NodeKind::Traditional, NodeKind::DbLess] {
        let options = RegistryOptions { kind, router_flavor: "traditional_compatible".to_owned(), plugins: None };
        let registry = Registry::bundled(&options);
        let patterns = place::patterns(&registry, kind);
        assert!(patterns.len() > 130 && patterns.contains(&"/key-sets/{key_sets}/keys/{keys}".to_owned()));
        for pattern in patterns {
            let segments = crate::request::segments(&pattern).unwrap();
            assert!(place::resolve(&registry, kind, &segments).is_some(), "{pattern}");
        }
    }
}

#[test]
fn the_fleet_is_told_by_control_planes_only() {
    for path in ["/gwctl/fleet", "/gwctl/data-planes"] {
        assert_eq!(control_plane().get(path).1["kind"], "fleet", "{path}");
    }
    assert_eq!(Client::of(NodeKind::Traditional).get("/gwctl/fleet").0, 400);
}

/// Certificates may come from a vault; such a text is not looked into.
fn certificate(snis: Value) -> Value {
    json!({"cert": "{vault://env/cert}", "key": "{vault://env/key}", "snis": snis})
}

#[test]
fn server_names_are_rows_of_their_own_written_with_their_certificate() {
    let client = control_plane();
    let made = client.expect(201, "POST", "/certificates", certificate(json!(["b.test", "a.test"])));
    assert_eq!(made["snis"], json!(["a.test", "b.test"]));
    assert_eq!(client.get("/certificates/b.test").1["id"], made["id"]);
    let path = format!("/certificates/{}", made["id"].as_str().unwrap());
    let patched = client.expect(200, "PATCH", &path, json!({"snis": ["b.test", "c.test"]}));
    assert_eq!(patched["snis"], json!(["b.test", "c.test"]));
    assert_eq!(client.expect(200, "PATCH", &path, json!({}))["snis"], json!(["b.test", "c.test"]));
    assert_eq!(client.get("/snis/a.test").0, 404);
    let mut bare = certificate(json!(null));
    bare.as_object_mut().unwrap().remove("snis");
    assert_eq!(client.expect(200, "PUT", &path, bare)["snis"], json!([]));
    assert_eq!(client.get("/snis").1["data"], json!([]));
}

#[test]
fn a_server_name_belongs_to_one_certificate() {
    let client = control_plane();
    let owner = client.expect(201, "POST", "/certificates", certificate(json!("a.test")));
    let refused = client.expect(400, "POST", "/certificates", certificate(json!(["a.test"])));
    let id = owner["id"].as_str().unwrap();
    assert_eq!(refused["fields"]["snis"], format!("a.test already associated with existing certificate '{id}'"));
    let twice = client.expect(400, "POST", "/certificates", certificate(json!(["x.test", "x.test"])));
    assert_eq!(twice["fields"]["snis"], "x.test is duplicated");
    assert_eq!(client.send("DELETE", "/certificates/a.test", None).0, 204);
    assert_eq!(client.get("/snis").1["data"], json!([]));
}

#[test]
fn a_certificate_authority_in_use_is_not_deleted() {
    let client = control_plane();
    let row = json!({"id": ID, "cert": "x", "cert_digest": "d", "tags": null, "created_at": 1, "updated_at": 1});
    let row = row.as_object().unwrap();
    let origin = crate::Origin::default();
    client.api.backend.write(&origin, &mut |write| write.insert("ca_certificates", row.clone())).unwrap();
    let body = json!({"url": "https://a.test", "ca_certificates": [ID]});
    let service = client.expect(201, "POST", "/services", body);
    let (status, refused) = client.send("DELETE", &format!("/ca_certificates/{ID}"), None);
    let id = service["id"].as_str().unwrap();
    let message = format!("ca certificate {ID} is still referenced by services (id = {id})");
    assert_eq!((status, refused), (400, json!({"code": 19, "name": "referenced by others", "message": message})));
    client.send("DELETE", &format!("/services/{id}"), None);
    assert_eq!(client.send("DELETE", &format!("/ca_certificates/{ID}"), None).0, 204);
}

#[test]
fn a_time_to_live_is_given_as_duration_and_shown_as_what_is_left() {
    let client = control_plane();
    client.expect(200, "PUT", "/consumers/c", json!({}));
    let made = client.expect(201, "POST", "/consumers/c/key-auth", json!({"key": "k", "ttl": 100}));
    assert!(made["ttl"].as_u64().is_some_and(|left| (99..=100).contains(&left)), "{made}");
    let body = json!({"tags": ["t"]});
    assert_eq!(client.expect(200, "PATCH", "/consumers/c/key-auth/k", body)["ttl"], made["ttl"]);
    assert_eq!(client.expect(200, "PUT", "/consumers/c/key-auth/k", json!({}))["ttl"], Value::Null);
    assert_eq!(client.expect(200, "PUT", "/consumers/c/key-auth/k", json!({"ttl": null}))["ttl"], Value::Null);
    let refused = client.expect(400, "POST", "/consumers/c/key-auth", json!({"ttl": -1}));
    assert_eq!((&refused["code"], refused["options"]["ttl"].is_string()), (&json!(11), true));
}

#[test]
fn a_write_meant_for_another_version_is_refused() {
    let mut client = control_plane();
    let version = |answer: crate::answer::Answer| {
        let header = answer.headers.into_iter().find(|(name, _)| *name == "etag");
        (answer.status, header.and_then(|(_, value)| crate::request::versions_of(&value)?.first().copied()))
    };
    let (status, first) = version(client.answer("POST", "/services", Some(json!({"host": "a.test"}))));
    assert_eq!((status, version(client.answer("GET", "/services", None)).1), (201, first));
    client.if_version = first;
    client.expect(200, "PUT", "/services/b", json!({"host": "b.test"}));
    let (status, refused) = client.send("PUT", "/services/c", Some(json!({"host": "c.test"})));
    assert_eq!(status, 412, "{refused}");
    client.if_version = None;
    assert_eq!(client.get("/services/c").0, 404);
}
