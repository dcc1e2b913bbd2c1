//! Whole configurations: precedence, mistakes, combinations, what is shown.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::{AccessForm, ConfigError, Database, Flag, Loaded, NodeConf, Origin, Role, Sources, Workers, load};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn from_file(text: &str) -> Result<Loaded, ConfigError> {
    load(&Sources { file: Some(("kong.conf", text)), ..Sources::default() })
}

fn mistakes(text: &str) -> Vec<String> {
    let error = from_file(text).map(|loaded| loaded.warnings).unwrap_err();
    error.problems.iter().map(ToString::to_string).collect()
}

fn warnings(text: &str) -> Vec<String> {
    from_file(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

fn conf(text: &str) -> NodeConf {
    from_file(text).unwrap().conf
}

const CONTROL_PLANE: &str = "role = control_plane\ncluster_cert = c.crt\ncluster_cert_key = c.key\n";
const DATA_PLANE: &str = "role = data_plane\ncluster_cert = c.crt\ncluster_cert_key = c.key\n";

#[test]
fn nothing_set_is_a_traditional_node_with_the_embedded_store() {
    let loaded = load(&Sources::default()).unwrap();
    let conf = loaded.conf;
    assert_eq!(loaded.warnings, []);
    assert_eq!((conf.role, conf.database, conf.workers), (Role::Traditional, Database::Lmdb, Workers::Auto));
    assert_eq!(conf.prefix, Path::new("/var/lib/gwctl"));
    assert_eq!(conf.proxy_listen.len(), 2);
    assert_eq!(conf.admin_listen[0].address, "127.0.0.1:8001".parse().unwrap());
    assert!(conf.cluster_listen.is_empty());
    assert_eq!(conf.lmdb_map_size, 2 << 30);
    assert_eq!(conf.upstream_keepalive.idle_timeout, Duration::from_secs(60));
    assert_eq!(conf.plugins.len(), 45);
    assert!(conf.adds_header("via") && !conf.adds_header("X-Kong-Upstream-Status"));
}

#[test]
fn a_flag_beats_gwctl_beats_kong_beats_the_file_and_each_names_its_origin() {
    let environment = pairs(&[
        ("KONG_LOG_LEVEL", "info"),
        ("GWCTL_LOG_LEVEL", "warn"),
        ("KONG_PORT_MAPS", "80:8000, 443:8443"),
        ("KONG_DATABASE", "off"),
    ]);
    let flags = [Flag { flag: "--database".into(), key: "database".into(), value: "lmdb".into() }];
    let file = "log_level = debug\nreal_ip_recursive = on\n";
    let sources = Sources { file: Some(("/etc/kong.conf", file)), environment: &environment, flags: &flags };
    let conf = load(&sources).unwrap().conf;
    assert_eq!((conf.log_level.as_str(), conf.database), ("warn", Database::Lmdb));
    assert_eq!(conf.port_maps.get(&8443), Some(&443));
    let origin = |key: &str| conf.show(false).into_iter().find(|row| row.key == key).unwrap().origin.to_string();
    let origins = ["log_level", "database", "port_maps", "real_ip_recursive", "role"].map(origin);
    assert_eq!(origins, ["GWCTL_LOG_LEVEL", "--database", "KONG_PORT_MAPS", "/etc/kong.conf:2", "default"]);
}

#[test]
fn an_empty_text_means_unset_and_brings_the_default_back() {
    let environment = pairs(&[("KONG_LOG_LEVEL", ""), ("KONG_NODE_ID", " ")]);
    let sources =
        Sources { file: Some(("c", "log_level = debug\nnode_id = x")), environment: &environment, flags: &[] };
    let conf = load(&sources).unwrap().conf;
    assert_eq!((conf.log_level.as_str(), conf.node_id), ("notice", None));
}

#[test]
fn the_prefix_lies_below_the_home_folder_unless_the_user_is_root() {
    let prefix = |environment: &[(&str, &str)]| {
        let environment = pairs(environment);
        load(&Sources { environment: &environment, ..Sources::default() }).unwrap().conf.prefix.display().to_string()
    };
    assert_eq!(prefix(&[("HOME", "/home/ada/")]), "/home/ada/.local/state/gwctl");
    assert_eq!(prefix(&[("HOME", "/home/ada"), ("XDG_STATE_HOME", "/srv/state")]), "/srv/state/gwctl");
    assert_eq!(prefix(&[("HOME", "/root")]), "/var/lib/gwctl");
    assert_eq!(prefix(&[("HOME", "/home/ada"), ("KONG_PREFIX", "/kong")]), "/kong");
}

#[test]
fn all_mistakes_of_a_file_come_at_once_with_their_lines() {
    let text = "cluster_mtls = sharde\nproxy_listen = 0.0.0.0:80 sll, nowhere\nlmdb_map_size = 2x\nnginx_worker_processes = 0\n\
                cluster_data_plane_purge_delay = 5\ntrusted_ips = 10.0.0.0/33\nheaders = server_tokens, vai\nnode_id = 1\n";
    assert_eq!(
        mistakes(text),
        [
            "cluster_mtls = sharde (kong.conf:1): expected one of shared, pki; did you mean `shared`?",
            "proxy_listen = 0.0.0.0:80 sll, nowhere (kong.conf:2): unknown flag `sll`, did you mean `ssl`?; `nowhere` has no port",
            "lmdb_map_size = 2x (kong.conf:3): expected bytes as a whole number with k, m or g, such as 2048m",
            "nginx_worker_processes = 0 (kong.conf:4): expected `auto` or a number from 1 to 1024",
            "cluster_data_plane_purge_delay = 5 (kong.conf:5): expected at least 60",
            "trusted_ips = 10.0.0.0/33 (kong.conf:6): `10.0.0.0/33` is not an address or network, such as 10.0.0.0/8",
            "headers = server_tokens, vai (kong.conf:7): `vai` is not one of server_tokens, latency_tokens, Server, Via, \
             X-Kong-Proxy-Latency, X-Kong-Response-Latency, X-Kong-Admin-Latency, X-Kong-Upstream-Latency, \
             X-Kong-Upstream-Status, X-Kong-Request-Id; did you mean `Via`?",
            "node_id = 1 (kong.conf:8): expected a UUID",
        ]
    );
}

#[test]
fn unknown_keys_and_keys_without_effect_are_warned_about_but_accepted() {
    let text = "proxy_lisen = off\nnginx_http_gzip = on\nmem_cache_size = 1g\npg_host = db\nallow_debug_header = yes\nrole = traditional\nrole = traditional\n";
    assert_eq!(
        warnings(text),
        [
            "proxy_lisen (kong.conf:1): unknown setting, passed over; did you mean `proxy_listen`?",
            "role (kong.conf:7): set before in line 6; the last one counts",
            "allow_debug_header = yes (kong.conf:5): neither on nor off, read as off",
            "mem_cache_size, nginx_http_gzip, pg_host (kong.conf:3): known to Kong and accepted, without effect in gwctl",
        ]
    );
}

#[test]
fn variables_of_the_command_line_tool_are_no_settings() {
    let environment = pairs(&[("GWCTL_ADDR", "http://x"), ("KONG_NONSENSE", "1"), ("HOMEBREW", "2")]);
    let loaded = load(&Sources { environment: &environment, ..Sources::default() }).unwrap();
    let shown: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["nonsense (KONG_NONSENSE): unknown setting, passed over"]);
}

#[test]
fn combinations_that_cannot_run_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "",
            "role = control_plane",
            "cluster_cert (default): a control plane needs a cluster certificate and its key; `gwctl certs init` makes both",
        ),
        (
            "",
            "role = data_plane",
            "cluster_cert_key (default): a data plane needs a cluster certificate and its key; `gwctl certs init` makes both",
        ),
        (CONTROL_PLANE, "admin_listen = off", "admin_listen = off (kong.conf:4): a control plane needs this listener"),
        (
            CONTROL_PLANE,
            "cluster_listen = off",
            "cluster_listen = off (kong.conf:4): a control plane needs this listener",
        ),
        (
            CONTROL_PLANE,
            "database = off",
            "database = off (kong.conf:4): a control plane needs a store; leave it unset for the embedded store",
        ),
        (
            CONTROL_PLANE,
            "cluster_use_proxy = on",
            "cluster_use_proxy = on (kong.conf:4): only a data plane reaches its peer through a proxy",
        ),
        (
            CONTROL_PLANE,
            "cluster_dp_labels = a:b",
            "cluster_dp_labels = a:b (kong.conf:4): only data planes have labels",
        ),
        (
            CONTROL_PLANE,
            "cluster_mtls = pki",
            "cluster_ca_cert (default): a control plane with cluster_mtls = pki needs the authority of its data planes; `gwctl certs init --pki` makes one",
        ),
        (
            DATA_PLANE,
            "proxy_listen = off",
            "proxy_listen = off (kong.conf:4): a data plane needs a listener for the proxy",
        ),
        (
            DATA_PLANE,
            "database = postgres",
            "database = postgres (kong.conf:4): a data plane has no database; set it to off or leave it unset",
        ),
        (DATA_PLANE, "cluster_use_proxy = on", "proxy_server (default): needed because cluster_use_proxy is on"),
        (
            DATA_PLANE,
            "cluster_control_plane = cp",
            "cluster_control_plane = cp (kong.conf:4): expected host:port, such as cp.example.com:8005",
        ),
        (
            DATA_PLANE,
            "proxy_server = ftp://u:secret@h",
            "proxy_server = ****** (kong.conf:4): expected a URL with http:// or https://",
        ),
        (
            DATA_PLANE,
            "cluster_control_plane = cp:1, cp2",
            "cluster_control_plane = cp:1, cp2 (kong.conf:4): expected host:port, such as cp.example.com:8005",
        ),
        (
            "",
            "stream_listen = 127.0.0.1:9000 udp ssl",
            "stream_listen = 127.0.0.1:9000 udp ssl (kong.conf:1): `127.0.0.1:9000 udp ssl`: ssl and proxy_protocol are for \
             TCP, not with udp; leave the flag out",
        ),
        (
            "",
            "admin_listen = 127.0.0.1:9000 proxy_protocol",
            "admin_listen = 127.0.0.1:9000 proxy_protocol (kong.conf:1): the flag proxy_protocol is for proxy_listen and \
             stream_listen in this version; leave it out",
        ),
        ("", "cluster_dp_labels = a:b", "cluster_dp_labels = a:b (kong.conf:1): only data planes have labels"),
        ("", "ssl_cert = a.crt", "ssl_cert_key (default): 1 in ssl_cert but 0 in ssl_cert_key"),
        (
            "",
            "status_listen = 127.0.0.1:8001",
            "status_listen = 127.0.0.1:8001 (kong.conf:1): 127.0.0.1:8001 is also in admin_listen",
        ),
        ("", "plugins = off, cors", "plugins = off, cors (kong.conf:1): `off` stands alone"),
        (
            "",
            "declarative_config = kong.yml",
            "declarative_config = kong.yml (kong.conf:1): read only by a node without a store; set database to off, or import the file with `gwctl apply`",
        ),
    ];
    for (base, line, expected) in cases {
        let found = mistakes(&format!("{base}{line}\n"));
        assert!(found.iter().any(|problem| problem == expected), "{line}: {found:#?}");
    }
}

#[test]
fn postgres_is_refused_with_a_way_out() {
    let found = mistakes("database = postgres");
    assert_eq!(found.len(), 1);
    assert!(
        found[0].contains("PostgreSQL is not supported yet") && found[0].contains("deck gateway dump"),
        "{found:?}"
    );
}

#[test]
fn labels_keep_the_rules_of_their_form() {
    let conf = conf(&format!("{DATA_PLANE}cluster_dp_labels = region: eu-1, url:a:b\n"));
    assert_eq!(conf.cluster.dp_labels.into_iter().collect::<Vec<_>>(), pairs(&[("region", "eu-1"), ("url", "a:b")]));
    for bad in [
        "plain",
        "Konnect-x:y",
        "a:",
        ":b",
        "-a:b",
        "a:b!",
        &format!("a:{}", "b".repeat(64)),
        "a:b,".repeat(11).as_str(),
    ] {
        assert!(!mistakes(&format!("{DATA_PLANE}cluster_dp_labels = {bad}\n")).is_empty(), "{bad}");
    }
}

#[test]
fn sync_without_rpc_is_turned_off_and_said() {
    let loaded = from_file("cluster_incremental_sync = on").unwrap();
    assert!(!loaded.conf.cluster.incremental_sync);
    assert_eq!(loaded.warnings[0].hint.as_deref(), Some("set cluster_rpc to on as well"));
    let shown = loaded.conf.show(true);
    assert_eq!((shown[0].value.as_str(), &shown[0].origin), ("off", &Origin::Corrected("cluster_rpc")));
    assert!(conf("cluster_rpc = on\ncluster_incremental_sync = on").cluster.incremental_sync);
}

#[test]
fn the_name_that_kong_3_10_has_for_sync_means_the_same() {
    let loaded = from_file("cluster_rpc = on\ncluster_rpc_sync = on").unwrap();
    assert!(loaded.conf.cluster.incremental_sync && loaded.warnings.is_empty());
    let shown = loaded.conf.show(true);
    assert!(shown.iter().any(|row| row.key == "cluster_incremental_sync" && row.value == "on"));
}

#[test]
fn references_to_the_environment_are_resolved_and_others_refused() {
    let environment = pairs(&[("MY_LEVEL", "crit")]);
    let text = "log_level = {vault://env/my-level}\n";
    let sources = Sources { file: Some(("c", text)), environment: &environment, flags: &[] };
    assert_eq!(load(&sources).unwrap().conf.log_level.as_str(), "crit");
    let found = mistakes("request_debug_token = {vault://aws/x}\npg_password = {vault://env/gone}");
    assert_eq!(found[1], "pg_password = ****** (kong.conf:2): the environment has no variable GONE");
    assert_eq!(
        found[0],
        "request_debug_token = ****** (kong.conf:1): only the vault `env` can be read before the node runs"
    );
}

#[test]
fn every_certificate_that_cannot_be_loaded_is_named() {
    let conf = conf(&format!("{CONTROL_PLANE}admin_ssl_cert = a.crt, b.crt\nadmin_ssl_cert_key = a.key, b.key\n"));
    let read = |path: &Path| match path.to_str() {
        Some("c.crt" | "a.crt" | "b.crt" | "a.key") => Ok("-----BEGIN X-----".to_owned()),
        Some("b.key") => Ok("nothing".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let error = conf.read_materials(&read).unwrap_err();
    let shown: Vec<_> = error.problems.iter().map(|problem| format!("{}: {}", problem.key, problem.fault)).collect();
    let expected = [
        "cluster_cert_key: cannot load c.key: entity not found",
        "admin_ssl_cert_key: cannot load b.key: holds no PEM (`-----BEGIN ...`)",
    ];
    assert_eq!(shown, expected);
    let materials = conf.read_materials(&|_| Ok("-----BEGIN X-----".into())).unwrap();
    assert_eq!((materials.place("cluster_cert"), materials.all("admin_ssl_cert").len()), ("c.crt", 2));
}

#[test]
fn secrets_are_shown_nowhere() {
    let text = format!(
        "{DATA_PLANE}pg_password = hunter2\nproxy_server = http://u:hunter2@proxy:1\nrequest_debug_token = hunter2\n"
    );
    let loaded = from_file(&text).unwrap();
    let shown = format!("{:?}{:?}{:?}", loaded.conf.show(false), loaded.conf.configuration_json(), loaded.warnings);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert_eq!(loaded.conf.configuration_json()["cluster_cert_key"], "******");
}

#[test]
fn the_configuration_is_shown_in_the_forms_of_kong() {
    let json = conf("proxy_listen = 127.0.0.1:8000 backlog=7\nplugins = bundled, mine\nport_maps = 80:8000\n")
        .configuration_json();
    let listener = &json["proxy_listeners"][0];
    assert_eq!((&listener["backlog=7"], &listener["so_keepalive=%w*:%w*:%d*"]), (&true.into(), &false.into()));
    assert_eq!((&json["database"], &json["log_level"]), (&"lmdb".into(), &"notice".into()));
    assert_eq!((&json["db_update_frequency"], &json["tracing_sampling_rate"]), (&5.into(), &0.01.into()));
    assert_eq!((&json["loaded_plugins"]["mine"], &json["loaded_plugins"]["cors"]), (&true.into(), &true.into()));
    assert_eq!(
        (&json["cluster_dp_labels"], &json["port_maps"]),
        (&serde_json::json!({}), &serde_json::json!(["80:8000"]))
    );
    assert_eq!(json["headers"], serde_json::json!(["server_tokens", "latency_tokens", "x-kong-request-id"]));
    assert_eq!(json["enabled_headers"]["X-Kong-Upstream-Status"], false);
    assert_eq!((json.get("node_id"), json.get("pg_password")), (None, None));
}

#[test]
fn what_is_traced_is_chosen_by_known_words() {
    let tracing = |text: &str| conf(text).tracing;
    assert!(tracing("").instrumentations.is_empty());
    let some = tracing("tracing_instrumentations = router, plugin_access\ntracing_sampling_rate = 0.5\n");
    assert_eq!((some.instrumentations.join(" "), some.sampling_rate), ("router plugin_access".to_owned(), 0.5));
    assert_eq!(tracing("opentelemetry_tracing = all\n").instrumentations, ["all"]);
    let wrong = mistakes("tracing_instrumentations = routr\n");
    assert!(wrong.len() == 1 && wrong[0].contains("`routr` is not one of off, all, request, router"), "{wrong:?}");
}

proptest::proptest! {
    #[test]
    fn no_value_of_any_key_makes_loading_panic(index in 0..crate::KEYS.len(), text in "\\PC{0,40}|[0-9a-z:.,/\\[\\]= -]{0,40}") {
        let environment = pairs(&[(&format!("KONG_{}", crate::KEYS[index].name.to_uppercase()), &text)]);
        if let Ok(loaded) = load(&Sources { environment: &environment, ..Sources::default() }) {
            loaded.conf.configuration_json();
            loaded.conf.show(false);
        }
    }
}

#[test]
fn an_access_log_is_written_only_where_it_is_asked_for() {
    let access = |text: &str| conf(text).logs.proxy_access;
    assert_eq!(access(""), None);
    assert_eq!(access("proxy_access_log = off"), None);
    let asked = access("prefix = /srv\nproxy_access_log = logs/access.log\n").expect("asked for");
    assert_eq!(
        (asked.path.to_str(), asked.form, asked.sample),
        (Some("/srv/logs/access.log"), AccessForm::Combined, 1.0)
    );
    let json = access("proxy_access_log = /dev/stdout json\nproxy_access_log_sample = 0.5\n").expect("asked for");
    assert_eq!((json.path.to_str(), json.form, json.sample), (Some("/dev/stdout"), AccessForm::Json, 0.5));
    let wrong = mistakes("proxy_access_log = /dev/stdout own_format\n");
    assert!(wrong.len() == 1 && wrong[0].contains("expected a path, then `combined` or `json`"), "{wrong:?}");
}

#[test]
fn the_access_log_of_streams_has_a_form_of_its_own() {
    let access = |text: &str| conf(text).logs.proxy_stream_access;
    assert_eq!((access(""), access("proxy_stream_access_log = off")), (None, None));
    let form = |text: &str| access(&format!("proxy_stream_access_log = /dev/stdout{text}")).expect("asked for").form;
    assert_eq!(
        [form(""), form(" basic"), form(" combined"), form(" json")],
        [AccessForm::Combined, AccessForm::Basic, AccessForm::Combined, AccessForm::Json]
    );
    let sampled = access("proxy_stream_access_log = a\nproxy_stream_access_log_sample = 0.1").expect("asked for");
    assert_eq!(sampled.sample, 0.1);
    let wrong = mistakes("proxy_stream_access_log = /dev/stdout own_format\n");
    assert!(wrong.len() == 1 && wrong[0].contains("then `basic`, `combined` or `json`"), "{wrong:?}");
}

#[test]
fn directives_for_clients_are_read_and_those_of_the_server_block_come_first() {
    let read = |text: &str| load(&Sources { file: Some(("kong.conf", text)), ..Sources::default() });
    let conf = read("").unwrap().conf;
    let seconds = Duration::from_secs;
    assert_eq!((conf.client_keepalive_timeout, conf.client_keepalive_requests), (seconds(75), 10_000));
    assert_eq!((conf.client_header_buffers.number, conf.client_header_buffers.size), (4, 8192));
    let text = "nginx_http_keepalive_timeout = 10s\nnginx_proxy_keepalive_timeout = 0\nnginx_proxy_keepalive_requests = 7\n\
                nginx_http_send_timeout = 2m\nnginx_proxy_large_client_header_buffers = 8 16k\n\
                nginx_proxy_client_max_body_size = 1m\nnginx_proxy_gzip = on\n";
    let loaded = read(text).unwrap();
    let conf = loaded.conf;
    assert_eq!((conf.client_keepalive_timeout, conf.client_keepalive_requests), (seconds(0), 7));
    assert_eq!((conf.client_header_buffers.number, conf.client_header_buffers.size), (8, 16_384));
    assert_eq!((conf.client_send_timeout, conf.limits.client_max_body_size), (seconds(120), 1 << 20));
    let warnings: Vec<_> = loaded.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["nginx_proxy_gzip (kong.conf:7): known to Kong and accepted, without effect in gwctl"]);
    for wrong in [
        "keepalive_timeout = 75s 60s",
        "keepalive_requests = -1",
        "large_client_header_buffers = 4",
        "send_timeout = 0",
    ] {
        for block in ["http", "proxy"] {
            let faults = mistakes(&format!("nginx_{block}_{wrong}\n"));
            assert!(faults.len() == 1 && faults[0].contains("(kong.conf:1): expected a"), "{faults:?}");
        }
    }
}
