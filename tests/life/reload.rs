//! SIGHUP: settings are read again; a bad file is refused whole.

use crate::upgrade::start_with_file;
use crate::{GWCTL, route_to, signal, wait_for_log};
use gwctl_testkit::{Cluster, Upstream, get, wait_until};

#[test]
fn a_reload_takes_over_what_it_can_and_names_what_needs_a_restart() {
    let cluster = Cluster::new(GWCTL);
    let (file, upstream) = (cluster.path("kong.conf"), Upstream::start());
    std::fs::write(&file, "headers = server_tokens\n").unwrap();
    let node = start_with_file(&cluster.options("node", "traditional"), &file);
    route_to(&node, upstream.port);
    assert!(get(node.proxy(), "/echo").header("via").is_some());
    let settings = "headers = off\nproxy_access_log = logs/proxy.log json\nrouter_flavor = expressions\n\
                    tracing_instrumentations = all\nopentelemetry_tracing_sampling_rate = 1\n";
    std::fs::write(&file, settings).unwrap();
    signal(node.id(), "HUP");
    wait_for_log(&node, "settings=router_flavor");
    let answer = get(node.proxy(), "/echo");
    assert_eq!((answer.status, answer.header("via")), (200, None));
    let log = cluster.path("node").join("logs/proxy.log");
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_until("the access log to be written", || lines().contains(r#""path":"/echo""#));
    // Rotation: the file is moved away and SIGUSR1 makes another one.
    std::fs::rename(&log, log.with_extension("old")).unwrap();
    signal(node.id(), "USR1");
    wait_until("the log to be opened anew", || log.exists());
}

/// Runs a command on the node of a folder; its code and what it said.
fn gwctl(command: &str, prefix: &std::path::Path) -> (i32, String) {
    let output = std::process::Command::new(GWCTL).arg(command).arg("-p").arg(prefix).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn commands_tell_what_came_of_a_reload_and_wait_for_the_end() {
    let cluster = Cluster::new(GWCTL);
    let (file, prefix) = (cluster.path("kong.conf"), cluster.path("node"));
    std::fs::write(&file, "log_level = notice\n").unwrap();
    let mut node = start_with_file(&cluster.options("node", "traditional"), &file);
    std::fs::write(&file, "log_level = info\nrouter_flavor = expressions\n").unwrap();
    let (code, said) = gwctl("reload", &prefix);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("in force: log_level; not before a restart") && said.contains("router_flavor"), "{said}");
    std::fs::write(&file, "log_level = loud\n").unwrap();
    let (code, said) = gwctl("reload", &prefix);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("expected one of debug"), "{said}");
    let (code, said) = gwctl("upgrade", &prefix);
    assert!(code == 1 && said.contains("expected one of debug"), "{said}");
    assert_eq!(gwctl("quit", &prefix).0, 0);
    assert!(node.ended().success());
    let (code, said) = gwctl("reload", &prefix);
    assert!(code == 1 && said.contains("no node runs in"), "{said}");
}

#[test]
fn a_bad_file_is_refused_whole_and_its_mistakes_are_told() {
    let cluster = Cluster::new(GWCTL);
    let (file, upstream) = (cluster.path("kong.conf"), Upstream::start());
    std::fs::write(&file, "headers = server_tokens\n").unwrap();
    let node = start_with_file(&cluster.options("node", "traditional"), &file);
    route_to(&node, upstream.port);
    std::fs::write(&file, "headers = off\nlog_level = loud\n").unwrap();
    signal(node.id(), "HUP");
    wait_for_log(&node, "settings refused, those before stay in force");
    assert!(node.log().contains("expected one of debug"), "{}", node.log());
    assert!(get(node.proxy(), "/echo").header("via").is_some());
}

#[test]
fn a_reload_shows_in_the_admin_api_and_names_files_that_were_changed_and_are_not_read_again() {
    let cluster = Cluster::new(GWCTL);
    let (file, prefix) = (cluster.path("kong.conf"), cluster.path("node"));
    let authority = cluster.path("authority.pem");
    let pem = || gwctl_certs::self_signed(&["a.test".to_owned()], 1_700_000_000).unwrap().certificate;
    std::fs::write(&authority, pem()).unwrap();
    let settings = format!("lua_ssl_trusted_certificate = {}\n", authority.display());
    std::fs::write(&file, &settings).unwrap();
    let node = start_with_file(&cluster.options("node", "traditional"), &file);
    std::fs::write(&authority, pem()).unwrap();
    let other = "client_max_body_size = 5m\nheaders = off\nssl_protocols = TLSv1.3\n";
    std::fs::write(&file, settings + other).unwrap();
    let (code, said) = gwctl("reload", &prefix);
    assert_eq!(code, 0, "{said}");
    let words = "in force: headers, client_max_body_size; not before a restart or `gwctl upgrade`: ssl_protocols, lua_ssl_trusted_certificate";
    assert!(said.contains(words), "{said}");
    let shown = &get(node.admin(), "/").json()["configuration"];
    assert_eq!(shown["client_max_body_size"], "5m");
    assert_eq!((&shown["headers"], &shown["enabled_headers"]["Via"]), (&serde_json::json!(["off"]), &false.into()));
    assert_eq!(shown["ssl_protocols"], "TLSv1.2 TLSv1.3", "as it is in force");
}
