//! SIGHUP: settings are read again; a bad file is refused whole.

use crate::certificates::now;
use crate::upgrade::start_with_file;
use crate::{Beside, GWCTL, route_to, signal, wait_for_log};
use gwctl_testkit::{Cluster, Node, Upstream, get, post, read_answer, wait_until};
use serde_json::json;
use std::fs::File;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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
pub(crate) fn gwctl(command: &str, prefix: &Path) -> (i32, String) {
    let output = Command::new(GWCTL).arg(command).arg("-p").arg(prefix).output().unwrap();
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
fn a_reload_shows_in_the_admin_api_with_files_that_hold_something_else() {
    let cluster = Cluster::new(GWCTL);
    let (file, prefix) = (cluster.path("kong.conf"), cluster.path("node"));
    let authority = cluster.path("authority.pem");
    let pem = || gwctl_certs::self_signed(&["a.test".to_owned()], 1_700_000_000).unwrap().certificate;
    std::fs::write(&authority, pem()).unwrap();
    let settings = format!("lua_ssl_trusted_certificate = {}\n", authority.display());
    std::fs::write(&file, &settings).unwrap();
    let node = start_with_file(&cluster.options("node", "traditional"), &file);
    std::fs::write(&authority, pem()).unwrap();
    let other = "client_max_body_size = 5m\nheaders = off\nssl_protocols = TLSv1.3\nrouter_flavor = expressions\n";
    std::fs::write(&file, settings + other).unwrap();
    let (code, said) = gwctl("reload", &prefix);
    assert_eq!(code, 0, "{said}");
    let (now, later) = said.split_once("; not before a restart or `gwctl upgrade`: ").unwrap();
    assert!(now.contains("in force: headers, client_max_body_size, ssl_protocols"), "{said}");
    assert_eq!(later.trim(), "router_flavor", "{said}");
    let shown = &get(node.admin(), "/").json()["configuration"];
    assert_eq!(shown["client_max_body_size"], "5m");
    assert_eq!((&shown["headers"], &shown["enabled_headers"]["Via"]), (&json!(["off"]), &false.into()));
    assert_eq!(shown["ssl_protocols"], "TLSv1.3");
    assert_eq!(shown["router_flavor"], "traditional_compatible", "as it is in force");
}

/// Runs openssl to its end with nothing to say.
fn openssl(arguments: &[&str]) -> Output {
    Command::new("openssl").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// A node with a listener for TLS as well, whose other settings are in a file: its port.
fn secure(cluster: &Cluster, file: &Path) -> (Node, u16) {
    let [port] = gwctl_testkit::free_ports();
    let options = cluster.options("node", "traditional");
    let plain = options.settings.iter().find(|(key, _)| key == "proxy_listen").unwrap().1.clone();
    (start_with_file(&options.set("proxy_listen", format!("{plain}, 127.0.0.1:{port} ssl")), file), port)
}

#[test]
fn versions_of_tls_hold_for_those_who_connect_after_the_reload() {
    let cluster = Cluster::new(GWCTL);
    let file = cluster.path("kong.conf");
    std::fs::write(&file, "ssl_protocols = TLSv1.2\n").unwrap();
    let (node, port) = secure(&cluster, &file);
    let address = format!("127.0.0.1:{port}");
    let shakes = |version: &str| openssl(&["s_client", "-connect", &address, version]).status.success();
    assert!(shakes("-tls1_2") && !shakes("-tls1_3"));
    let early = Command::new("openssl")
        .args(["s_client", "-connect", &address, "-quiet"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut early = Beside(early.unwrap());
    let (mut says, mut hears) = (early.0.stdin.take().unwrap(), BufReader::new(early.0.stdout.take().unwrap()));
    let mut ask = || {
        says.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        read_answer(&mut hears).unwrap().status
    };
    assert_eq!(ask(), 404);
    std::fs::write(&file, "ssl_protocols = TLSv1.3\n").unwrap();
    let (code, said) = gwctl("reload", &cluster.path("node"));
    assert!(code == 0 && said.contains("in force: ssl_protocols"), "{said}");
    assert!(shakes("-tls1_3") && !shakes("-tls1_2"));
    assert_eq!(ask(), 404, "whoever was there stays");
    std::fs::write(&file, "ssl_protocols = TLSv1.1\n").unwrap();
    assert_eq!(gwctl("reload", &cluster.path("node")).0, 1);
    assert!(shakes("-tls1_3"));
    drop(node);
}

#[test]
fn whom_the_node_trusts_and_what_it_presents_to_upstreams_follow_a_reload() {
    let cluster = Cluster::new(GWCTL);
    let (file, prefix) = (cluster.path("kong.conf"), cluster.path("node"));
    let write = |name: &str, text: &str| {
        std::fs::write(cluster.path(name), text).unwrap();
        cluster.path(name).display().to_string()
    };
    let (authority, root) = gwctl_certs::Authority::create("ca", now(), 10).unwrap();
    let issued = authority.issue_control_plane(&["localhost".to_owned()], now(), 10).unwrap();
    let (cert, key) = (write("up.crt", &issued.certificate), write("up.key", &issued.key));
    let [port] = gwctl_testkit::free_ports();
    // It asks for a certificate and shows what it got.
    let (listen, faults) = (format!("127.0.0.1:{port}"), cluster.path("upstream.log"));
    let upstream = Command::new("openssl")
        .args(["s_server", "-www", "-verify", "1", "-accept", &listen, "-cert", &cert, "-key", &key])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&faults).unwrap())
        .spawn();
    let upstream = Beside(upstream.unwrap());
    wait_until("the upstream to listen", || TcpStream::connect(&listen).is_ok());
    let pair = |name: &str| gwctl_certs::self_signed(&[name.to_owned()], now()).unwrap();
    let (other, first, second) = (pair("other.test"), pair("first.test"), pair("second.test"));
    let trusted = format!("lua_ssl_trusted_certificate = {}\n", write("authority.pem", &other.certificate));
    std::fs::write(&file, &trusted).unwrap();
    let node = start_with_file(&cluster.options("node", "traditional"), &file);
    let service = json!({"name": "s", "url": format!("https://localhost:{port}"), "tls_verify": true});
    assert_eq!(post(node.admin(), "/services", &service).status, 201);
    assert_eq!(post(node.admin(), "/services/s/routes", &json!({"paths": ["/"]})).status, 201);
    wait_until("the route", || get(node.proxy(), "/").status == 502);
    let refused = || std::fs::read_to_string(&faults).unwrap().matches("alert unknown ca").count();
    wait_until("the upstream to hear that it is not trusted", || refused() > 0);
    // A bad one changes nothing, whichever part of the node it is for.
    let client = format!(
        "client_ssl = on\nclient_ssl_cert = {}\nclient_ssl_cert_key = {}\n",
        write("own.crt", &first.certificate),
        write("own.key", &second.key)
    );
    std::fs::write(&file, format!("lua_ssl_trusted_certificate = {}\n{client}", write("root.pem", &root.certificate)))
        .unwrap();
    let (code, said) = gwctl("reload", &prefix);
    assert!(code == 1 && said.contains("client_ssl_cert"), "{said}");
    let before = refused();
    assert_eq!(get(node.proxy(), "/").status, 502);
    wait_until("the upstream to be refused again", || refused() > before);
    // The file keeps its name.
    write("authority.pem", &root.certificate);
    std::fs::write(&file, &trusted).unwrap();
    assert_eq!(gwctl("reload", &prefix).0, 0);
    let shown = || get(node.proxy(), "/").body;
    assert!(shown().contains("no client certificate available"), "{}", shown());
    write("own.key", &first.key);
    std::fs::write(&file, format!("{trusted}{client}")).unwrap();
    let (code, said) = gwctl("reload", &prefix);
    assert!(code == 0 && said.contains("in force: client_ssl, client_ssl_cert, client_ssl_cert_key\n"), "{said}");
    assert!(shown().contains("CN = first.test") || shown().contains("CN=first.test"), "{}", shown());
    drop((node, upstream));
}
