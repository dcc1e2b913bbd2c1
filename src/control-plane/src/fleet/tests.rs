use super::*;
use gwctl_wire::stream::message::{Applied, Refused};
use gwctl_wire::v1::{BasicInfo, PluginVersion};
use gwctl_wire::v2::Dialect;

fn table() -> FleetTable {
    let (state, purge_delay, news) = (Mutex::default(), Duration::from_secs(60), broadcast::Sender::new(8));
    FleetTable { state, purge_delay, news, calls: Calls::default() }
}

fn identity(id: &str) -> Identity {
    Identity { id: id.to_owned(), hostname: "dp".to_owned(), ..Identity::default() }
}

fn reports(table: &FleetTable, id: &str, hash: &str) {
    let record =
        NodeRecord { sync_status: SyncStatus::Normal, config_hash: ConfigHash::from(hash), info: Default::default() };
    table.record(id, &record, None, true);
}

fn pulled(table: &FleetTable, version: u64) {
    table.pulled("a", &Held { version, hash: Dialect::Integers.hash(version), dialect: Dialect::Integers });
}

fn hello(version: &str, capabilities: &[&str]) -> Hello {
    let conf = serde_json::json!({"cluster_dp_labels": ["region:eu"]});
    Hello {
        capabilities: capabilities.iter().map(|name| (*name).to_owned()).collect(),
        version: version.to_owned(),
        node_id: "a".to_owned(),
        conf: conf.as_object().cloned().unwrap_or_default(),
        ..Hello::default()
    }
}

#[test]
fn a_connection_for_calls_only_tells_capabilities_and_leaves_the_row_to_the_other() {
    for calls_first in [true, false] {
        let table = table();
        let calls = Identity { protocol: Protocol::Calls, hostname: "other".to_owned(), ..identity("a") };
        let call = || {
            table.connected(&calls);
            table.said_hello(&hello("3.9.1", &["kong.debug.log_level.v1"]));
        };
        if calls_first {
            call();
            assert!(table.fleet(0).items.is_empty());
        }
        table.connected(&identity("a"));
        if !calls_first {
            call();
        }
        reports(&table, "a", "one");
        let row = &table.rows()[0];
        assert_eq!((row.hostname.as_str(), row.rpc_capabilities.len()), ("dp", 1));
        table.disconnected("a", Protocol::Calls);
        let member = &table.fleet(0).items[0];
        assert!(member.connected && member.protocol.as_deref() == Some("v1"));
        table.disconnected("a", Protocol::V1);
        assert!(!table.fleet(0).items[0].connected);
    }
}

#[test]
fn capabilities_of_earlier_times_are_forgotten() {
    let table = table();
    table.connected(&Identity { protocol: Protocol::V2, ..identity("a") });
    table.said_hello(&hello("3.9.1", &["kong.sync.v2"]));
    pulled(&table, 4);
    table.disconnected("a", Protocol::V2);
    assert_eq!(table.rows()[0].rpc_capabilities, ["kong.sync.v2"], "what it answered last");
    table.connected(&identity("a"));
    reports(&table, "a", "one");
    assert!(table.rows()[0].rpc_capabilities.is_empty(), "it speaks protocol v1 only now");
    let calls = Identity { protocol: Protocol::Calls, ..identity("a") };
    for _ in 0..2 {
        table.connected(&calls);
        table.said_hello(&hello("3.9.1", &["kong.debug.log_level.v1"]));
    }
    table.disconnected("a", Protocol::Calls);
    table.connected(&identity("a"));
    assert_eq!(table.rows()[0].rpc_capabilities.len(), 1, "another worker of it answers still");
    table.disconnected("a", Protocol::Calls);
    table.connected(&identity("a"));
    assert!(table.rows()[0].rpc_capabilities.is_empty());
}

#[test]
fn a_node_with_many_connections_joins_and_leaves_once() {
    let table = table();
    let mut news = table.news();
    for _ in 0..3 {
        table.connected(&Identity { protocol: Protocol::V2, ..identity("a") });
    }
    for _ in 0..3 {
        table.disconnected("a", Protocol::V2);
    }
    let told: Vec<_> = std::iter::from_fn(|| news.try_recv().ok()).map(|news| news.what).collect();
    assert_eq!(told, ["joined", "left"]);
}

#[test]
fn a_node_of_kong_3_10_is_shown_with_the_text_it_names_its_labels_and_the_end_of_its_certificate() {
    let table = table();
    let identity = Identity { protocol: Protocol::V2, version: "3.10.0".to_owned(), ..identity("a") };
    table.connected(&Identity { certificate_expires_at: Some(9), ..identity });
    table.said_hello(&hello("3.10.0", &["kong.sync.v2"]));
    table.pulled("a", &Held { version: 42, hash: Dialect::Texts.hash(42), dialect: Dialect::Texts });
    let row = &table.rows()[0];
    assert_eq!(
        (row.config_hash.as_str(), row.certificate_expires_at),
        ("v02_000000000000000000000000002a", Some(Some(9)))
    );
    assert_eq!(row.labels.as_ref().and_then(|labels| labels.get("region")).map(String::as_str), Some("eu"));
    assert_eq!(table.fleet(42).items[0].applied_version, Some(42));
}

#[test]
fn a_node_is_behind_until_it_reports_the_newest_hash() {
    let table = table();
    table.payload_made(&ConfigHash::from("one"), 3);
    table.payload_made(&ConfigHash::from("two"), 5);
    table.connected(&identity("a"));
    reports(&table, "a", "one");
    let fleet = table.fleet(5);
    assert_eq!((fleet.items[0].applied_version, fleet.items[0].target_version), (Some(3), Some(5)));
    reports(&table, "a", "two");
    let fleet = table.fleet(6);
    assert_eq!(fleet.items[0].applied_version, Some(5), "version 6 is not on its way yet");
    table.payload_made(&ConfigHash::from("two"), 6);
    let fleet = table.fleet(6);
    assert_eq!((fleet.items[0].applied_version, fleet.items[0].lag_millis), (Some(6), Some(0)));
    assert_eq!(fleet.config_hash.as_deref(), Some("two"));
}

#[test]
fn a_change_that_no_payload_shows_is_a_lag_and_the_reason_is_told() {
    let table = table();
    table.payload_made(&ConfigHash::from("one"), 3);
    table.connected(&identity("a"));
    reports(&table, "a", "one");
    assert_eq!(table.fleet(3).items[0].lag_millis, Some(0));
    assert_eq!(table.fleet(4).items[0].lag_millis, None, "nobody knows since when");
    table.committed_at(3, 1);
    table.committed_at(4, unix_millis() - 5000);
    let member = table.fleet(4).items.remove(0);
    assert!(member.lag_millis.is_some_and(|lag| (5000..60_000).contains(&lag)), "{member:?}");
    assert_eq!(member.sync_detail, None);
    table.payload_failed("too large".to_owned());
    assert_eq!(table.fleet(4).items[0].sync_detail.as_deref(), Some("too large"));
    assert_eq!(table.fleet(3).items[0].sync_detail, None, "it lacks nothing");
    table.payload_made(&ConfigHash::from("two"), 5);
    let member = table.fleet(5).items.remove(0);
    assert_eq!((member.sync_detail, member.lag_millis.is_some_and(|lag| lag >= 5000)), (None, true));
    reports(&table, "a", "two");
    assert_eq!(table.fleet(5).items[0].lag_millis, Some(0));
}

#[test]
fn what_cannot_be_answered_is_told_until_the_node_asks_again() {
    let table = table();
    table.connected(&Identity { protocol: Protocol::V2, ..identity("a") });
    pulled(&table, 0);
    table.not_sent("a", "too large".to_owned());
    assert_eq!(table.fleet(5).items[0].sync_detail.as_deref(), Some("too large"));
    pulled(&table, 5);
    assert_eq!(table.fleet(5).items[0].sync_detail, None);
}

#[test]
fn two_nodes_with_one_id_are_told_from_one_that_came_again() {
    for protocol in [Protocol::Stream, Protocol::V1] {
        let table = table();
        let one = || table.connected(&Identity { protocol, ..identity("a") });
        let shared = || table.fleet(0).items.remove(0);
        let (earlier, newer) = (one(), one());
        table.alive(&earlier);
        assert!(!shared().shared_id, "it was still under way");
        table.lock().members.values_mut().for_each(|member| member.connected_millis -= 20_000);
        table.alive(&newer);
        assert!(!shared().shared_id);
        table.alive(&earlier);
        assert!(shared().shared_id && shared().sync_detail.is_some_and(|words| words.contains("same id")));
        table.disconnected("a", protocol);
        assert!(!shared().shared_id && shared().sync_detail.is_none(), "one is left");
    }
}

fn streaming(table: &FleetTable) -> Seat {
    table.committed_at(4, 1);
    let seat = table.connected(&Identity { protocol: Protocol::Stream, reason: "both can", ..identity("a") });
    table.introduced(&seat, &BTreeMap::from([("zone".to_owned(), "one".to_owned())]), &["cors".to_owned()]);
    table.judged(&seat, None);
    table.holds(&seat, 4, "d4");
    seat
}

#[test]
fn a_node_with_our_own_sync_shows_version_digest_and_lag() {
    let table = table();
    let seat = streaming(&table);
    table.digest(5, "d5".to_owned());
    table.committed_at(5, unix_millis());
    let fleet = table.fleet(5);
    let member = &fleet.items[0];
    assert_eq!((member.applied_version, member.lags, fleet.config_hash.as_deref()), (Some(4), None, Some("d5")));
    assert_eq!((member.state.as_deref(), member.protocol_reason.as_deref()), (Some("online"), Some("both can")));
    let applied = Applied { version: 5, digest: "d5".to_owned(), stored_us: 900, active_us: 1500 };
    table.applied(&seat, &applied);
    let member = table.fleet(5).items.remove(0);
    assert_eq!((member.applied_version, member.lag_millis, member.apply_millis), (Some(5), Some(0), Some(2)));
    assert_eq!((member.lags.map(|lags| lags.reports), member.stored_micros), (Some(1), Some(900)));
    let row = &table.rows()[0];
    assert_eq!((row.config_hash.as_str(), row.hostname.as_str()), ("d5", "dp"));
}

#[test]
fn changes_made_while_a_node_was_away_are_no_lag() {
    let table = table();
    let seat = streaming(&table);
    table.committed_at(5, 2);
    table.applied(&seat, &Applied { version: 5, ..Applied::default() });
    assert_eq!(table.fleet(5).items[0].lags, None);
}

#[test]
fn a_refusal_names_the_row_and_a_goodbye_is_no_loss() {
    let table = table();
    let seat = streaming(&table);
    let (entity, id) = (Some("routes".to_owned()), Some("r".to_owned()));
    table.refused_rows(&seat, &Refused { version: 5, entity, id, fault: "bad".to_owned(), ..Refused::default() });
    table.diverged(&seat);
    let member = table.fleet(5).items.remove(0);
    assert_eq!(member.last_error.as_deref(), Some("version 5: routes r: bad"));
    assert_eq!(member.refusal.and_then(|refusal| refusal.entity).as_deref(), Some("routes"));
    assert_eq!(member.divergences, Some(1));
    table.disconnected("a", Protocol::Stream);
    assert_eq!(table.fleet(5).items[0].state.as_deref(), Some("offline"));
    let seat = table.connected(&Identity { protocol: Protocol::Stream, ..identity("a") });
    table.says_goodbye(&seat);
    table.disconnected("a", Protocol::Stream);
    assert_eq!(table.fleet(5).items[0].state.as_deref(), Some("left"));
    table.connected(&Identity { protocol: Protocol::Stream, ..identity("a") });
    assert_eq!(table.fleet(5).items[0].state.as_deref(), Some("online"));
}

#[test]
fn the_plugins_a_node_told_are_in_the_fleet() {
    let table = table();
    table.connected(&identity("a"));
    reports(&table, "a", "one");
    assert_eq!(table.fleet(1).items[0].plugins, None, "it told none");
    let info =
        BasicInfo { plugins: vec![PluginVersion { name: "cors".to_owned(), version: None }], ..BasicInfo::default() };
    let record = NodeRecord {
        sync_status: SyncStatus::Normal,
        config_hash: ConfigHash::from("one"),
        info: std::sync::Arc::new(info),
    };
    table.record("a", &record, None, true);
    assert_eq!(table.fleet(1).items[0].plugins, Some(vec!["cors".to_owned()]));
}

#[test]
fn what_a_node_does_is_told_once() {
    let table = table();
    table.payload_made(&ConfigHash::from("one"), 3);
    let mut news = table.news();
    table.connected(&identity("a"));
    reports(&table, "a", "one");
    reports(&table, "a", "one");
    let record = NodeRecord {
        sync_status: SyncStatus::PluginSetIncompatible,
        config_hash: ConfigHash::from("one"),
        info: Default::default(),
    };
    table.record("a", &record, Some("lacks cors".to_owned()), true);
    table.disconnected("a", Protocol::V1);
    let told: Vec<FleetNews> = std::iter::from_fn(|| news.try_recv().ok()).collect();
    let names: Vec<&str> = told.iter().map(|news| news.what).collect();
    assert_eq!(names, ["joined", "applied", "refused", "left"]);
    assert_eq!((told[1].version, told[2].detail.as_deref()), (Some(3), Some("lacks cors")));
}

#[test]
fn a_refusal_is_shown_until_something_is_applied() {
    let table = table();
    table.connected(&Identity { protocol: Protocol::V2, ..identity("a") });
    pulled(&table, 4);
    table.refused("a", "bad row".to_owned());
    pulled(&table, 0);
    let member = table.fleet(5).items.remove(0);
    assert_eq!((member.applied_version, member.last_error.as_deref()), (Some(4), Some("bad row")));
    pulled(&table, 5);
    let member = table.fleet(5).items.remove(0);
    assert_eq!((member.applied_version, member.last_error), (Some(5), None));
}

#[test]
fn no_hash_is_shown_while_nobody_needs_payloads() {
    let table = table();
    table.payload_made(&ConfigHash::from("one"), 3);
    table.payload_not_made();
    assert_eq!(table.fleet(4).config_hash, None);
    table.payload_made(&ConfigHash::from("two"), 4);
    assert_eq!(table.fleet(4).config_hash.as_deref(), Some("two"));
}

#[test]
fn a_node_that_pulls_has_the_version_it_asks_with() {
    let table = table();
    table.committed(5);
    table.connected(&Identity { protocol: Protocol::V2, certificate_expires_at: Some(9), ..identity("a") });
    assert!(table.rows().is_empty(), "nothing asked for yet");
    pulled(&table, 4);
    let row = &table.rows()[0];
    assert_eq!((row.hostname.as_str(), row.certificate_expires_at), ("a", Some(None)));
    assert_eq!(row.config_hash, "00000000000000000000000000000004");
    let member = &table.fleet(5).items[0];
    assert_eq!((member.applied_version, member.name.as_str()), (Some(4), "dp"));
    assert!(member.lag_millis.is_some());
    assert_eq!(table.fleet(9).items[0].applied_version, Some(4));
    pulled(&table, 5);
    let member = &table.fleet(5).items[0];
    assert_eq!((member.applied_version, member.lag_millis), (Some(5), Some(0)));
}

#[test]
fn a_node_is_connected_until_its_last_connection_ends_and_its_row_stays() {
    let table = table();
    table.connected(&identity("a"));
    table.connected(&identity("a"));
    table.disconnected("a", Protocol::V1);
    assert!(table.fleet(0).items[0].connected);
    table.disconnected("a", Protocol::V1);
    assert!(!table.fleet(0).items[0].connected);
    assert!(table.rows().is_empty(), "nothing reported yet");
}

#[test]
fn a_row_unheard_of_for_the_purge_delay_is_gone() {
    let table = FleetTable { purge_delay: Duration::ZERO, ..table() };
    table.connected(&identity("a"));
    assert_eq!(table.fleet(0).items.len(), 1, "a connected node is never purged");
    table.disconnected("a", Protocol::V1);
    assert!(table.fleet(0).items.is_empty());
}

#[test]
fn what_an_earlier_connection_still_brings_changes_nothing() {
    let table = table();
    let stream = || Identity { protocol: Protocol::Stream, ..identity("a") };
    let (earlier, newer) = (table.connected(&stream()), table.connected(&stream()));
    table.holds(&newer, 7, "d7");
    table.applied(&newer, &Applied { version: 8, digest: "d8".to_owned(), ..Applied::default() });
    table.applied(&earlier, &Applied { version: 6, digest: "d6".to_owned(), ..Applied::default() });
    table.refused_rows(&earlier, &Refused { version: 7, fault: "bad".to_owned(), ..Refused::default() });
    table.judged(&earlier, Some(("plugin_set_incompatible", "lacks cors")));
    table.diverged(&earlier);
    table.says_goodbye(&earlier);
    table.disconnected("a", Protocol::Stream);
    let member = table.fleet(8).items.remove(0);
    assert_eq!((member.applied_version, member.config_hash.as_deref()), (Some(8), Some("d8")));
    assert_eq!((member.last_error, member.sync_detail, member.divergences), (None, None, None));
    assert_eq!(member.state.as_deref(), Some("online"));
    table.disconnected("a", Protocol::Stream);
    assert_eq!(table.fleet(8).items[0].state.as_deref(), Some("offline"), "it never said goodbye");
}
