//! Protocols at the proxy, spoken by other people's programs: curl, openssl, nginx, HAProxy, python, nghttp2, and tonic.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "a test fails by panicking, and nobody else uses its modules")]

mod grpc;
mod peers;
mod probe;
mod tools;

use gwctl_testkit::{Upstream, free_ports};
use serde_json::json;
use tools::{Chain, Server, Stage, program, run, said};

/// What curl shows: head and body.
fn curl(arguments: &[&str]) -> String {
    said("curl", &[&["-sik", "--max-time", "60"], arguments].concat(), "")
}

#[test]
fn sessions_of_tls_are_resumed_at_any_worker() {
    if program("openssl").is_none() {
        return;
    }
    let stage = Stage::new(|options| options);
    let address = format!("127.0.0.1:{}", stage.secure);
    let ask = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for version in ["-tls1_2", "-tls1_3"] {
        let file = stage.cluster.path("session.pem").display().to_string();
        let session = ["s_client", "-connect", &address, "-ign_eof", version];
        said("openssl", &[&session[..], &["-sess_out", &file]].concat(), ask);
        // Tickets are the same for all workers; which of them answers is up to the system.
        for _ in 0..8 {
            let shown = said("openssl", &[&session[..], &["-sess_in", &file]].concat(), ask);
            assert!(shown.contains("\nReused, TLSv1."), "{version}: {shown}");
        }
    }
}

#[test]
fn versions_of_tls_that_are_not_wanted_are_refused() {
    if program("openssl").is_none() {
        return;
    }
    for (wanted, refused) in [("TLSv1.3", "-tls1_2"), ("TLSv1.2", "-tls1_3")] {
        let stage = Stage::new(|options| options.set("ssl_protocols", wanted));
        let address = format!("127.0.0.1:{}", stage.secure);
        let shake = |version: &str| run("openssl", &["s_client", "-connect", &address, version], "");
        assert!(!shake(refused).status.success(), "{refused} with ssl_protocols = {wanted}");
        assert!(shake(&format!("-tls{}", wanted[4..].replace('.', "_"))).status.success(), "{wanted}");
    }
}

#[test]
fn an_nginx_that_demands_a_certificate_and_sends_a_long_chain_is_spoken_to_as_the_service_says() {
    let (Some(nginx), Some(_)) = (program("nginx"), program("openssl")) else { return };
    let stage = Stage::new(|options| options);
    let chain = Chain::new(&stage, "up.test");
    let [port] = free_ports();
    let folder = stage.cluster.path("nginx");
    std::fs::create_dir(&folder).unwrap();
    let root = stage.file("root.pem", &chain.root);
    let settings = format!(
        "daemon off; error_log stderr crit; pid {folder}/pid; events {{}}\nhttp {{ access_log off; client_body_temp_path {folder}/1; \
         proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;\n\
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {certificate}; ssl_certificate_key {key}; \
         ssl_client_certificate {root}; ssl_verify_client optional;\n\
         location / {{ return 200 \"$ssl_client_verify $ssl_client_s_dn $ssl_server_name $server_protocol\"; }} }} }}\n",
        folder = folder.display(),
        certificate = chain.server.0.display(),
        key = chain.server.1.display(),
        root = root.display(),
    );
    let file = stage.file("nginx.conf", &settings).display().to_string();
    let _nginx = Server::start(&nginx, &["-c", &file, "-e", "stderr"], port);
    let service = json!({"url": format!("https://127.0.0.1:{port}"), "retries": 0});
    stage.serve(service, json!({"preserve_host": true}));
    let ask = || curl(&["-H", "Host: up.test", &format!("http://127.0.0.1:{}/", stage.plain)]);

    let seen = ask();
    assert!(seen.contains("NONE  up.test HTTP/1.1"), "{seen}");
    let (cert, key) = &chain.client;
    let certificate = stage.make("/certificates", &json!({"cert": cert, "key": key}));
    stage.change("/services/s", &json!({"client_certificate": {"id": certificate}}));
    stage.settled();
    let seen = ask();
    assert!(seen.contains("SUCCESS CN=client up.test"), "{seen}");

    let authority = stage.make("/ca_certificates", &json!({"cert": chain.root}));
    for (depth, status) in [(json!(null), "502"), (json!(1), "502"), (json!(2), "200"), (json!(9), "200")] {
        let verify = json!({"tls_verify": true, "tls_verify_depth": depth, "ca_certificates": [authority]});
        stage.change("/services/s", &verify);
        stage.settled();
        let seen = ask();
        assert!(seen.starts_with(&format!("HTTP/1.1 {status}")), "depth {depth}: {seen}");
    }
    stage.change("/services/s", &json!({"ca_certificates": null}));
    stage.settled();
    let seen = ask();
    assert!(seen.starts_with("HTTP/1.1 502"), "no authority of the system stands behind it: {seen}");
}

#[test]
fn the_certificate_of_the_node_is_presented_where_nothing_else_is_said() {
    if program("openssl").is_none() {
        return;
    }
    let first = Stage::new(|options| options);
    let chain = Chain::new(&first, "up.test");
    let client = (first.file("c.crt", &chain.client.0), first.file("c.key", &chain.client.1));
    let stage = Stage::new(|options| {
        let options = options.set("client_ssl", "on");
        options.set("client_ssl_cert", client.0.display()).set("client_ssl_cert_key", client.1.display())
    });
    let [port] = free_ports();
    let (certificate, key) = (chain.server.0.display().to_string(), chain.server.1.display().to_string());
    let accept = format!("127.0.0.1:{port}");
    // Answers with a page of what it knows of the connection.
    let _server = Server::start(
        "openssl",
        &["s_server", "-accept", &accept, "-cert", &certificate, "-key", &key, "-verify", "1", "-www", "-quiet"],
        port,
    );
    stage.serve(json!({"url": format!("https://127.0.0.1:{port}"), "retries": 0}), json!({}));
    let seen = curl(&[&format!("http://127.0.0.1:{}/", stage.plain)]);
    assert!(seen.contains("CN = client") || seen.contains("CN=client"), "{seen}");
}

#[test]
fn a_haproxy_in_front_names_the_client_by_the_proxy_protocol() {
    let Some(haproxy) = program("haproxy") else { return };
    let [behind, front] = free_ports();
    let stage = Stage::new(|options| {
        let options = options.set("trusted_ips", "127.0.0.1").set("real_ip_header", "proxy_protocol");
        let options = options.set("proxy_access_log", "access.log");
        options.set("proxy_listen", format!("127.0.0.1:{behind} proxy_protocol http2"))
    });
    let echo = Upstream::start();
    let service = json!({"name": "s", "url": format!("http://127.0.0.1:{}", echo.port)});
    stage.make("/services", &service);
    stage.make("/services/s/routes", &json!({"paths": ["/"], "strip_path": false}));
    let settings = format!(
        "defaults\n mode tcp\n timeout connect 60s\n timeout client 60s\n timeout server 60s\n\
         listen front\n bind 127.0.0.1:{front}\n server one 127.0.0.1:{behind} send-proxy-v2\n"
    );
    let file = stage.file("haproxy.cfg", &settings).display().to_string();
    let _haproxy = Server::start(&haproxy, &["-db", "-f", &file], front);
    let url = format!("http://127.0.0.1:{front}/x");
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        gwctl_testkit::wait_until("the route to serve", || {
            curl(&["--interface", "127.0.0.9", version, &url]).contains(" 200")
        });
    }
    let log = stage.cluster.path("node/access.log");
    gwctl_testkit::wait_until("the log to name the client", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("\n127.0.0.9 ") || log.starts_with("127.0.0.9 "))
    });
    let plain = run("curl", &["-s", &format!("http://127.0.0.1:{behind}/")], "");
    assert!(!plain.status.success(), "without the header the connection is closed");
}

#[test]
fn plain_requests_to_a_route_of_https_are_sent_on_with_each_status() {
    if program("curl").is_none() {
        return;
    }
    let stage = Stage::new(|options| options);
    let echo = Upstream::start();
    stage.serve(json!({"url": format!("http://127.0.0.1:{}", echo.port)}), json!({"protocols": ["https"]}));
    for status in [426, 301, 302, 307, 308] {
        stage.change("/routes/r", &json!({"https_redirect_status_code": status}));
        stage.settled();
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let url = format!("http://127.0.0.1:{}/a%20b?c=d", stage.plain);
            let seen = curl(&[version, "-H", "Host: a.test:8000", &url]).to_ascii_lowercase();
            assert!(seen.split("\r\n").next().unwrap().contains(&format!(" {status}")), "{version}: {seen}");
            let location = seen.contains("\nlocation: https://a.test/a%20b?c=d\r\n");
            assert_eq!(location, status != 426, "{version}: {seen}");
        }
    }
    let secure = format!("https://127.0.0.1:{}/a%20b?c=d", stage.secure);
    assert!(curl(&["--http2", &secure]).starts_with("HTTP/2 200"));
    assert!(curl(&["--http1.1", &secure]).starts_with("HTTP/1.1 200"));
}

#[test]
fn pages_of_errors_come_in_the_form_that_is_accepted() {
    if program("curl").is_none() {
        return;
    }
    let stage = Stage::new(|options| options);
    stage.settled();
    let url = format!("http://127.0.0.1:{}/nowhere", stage.plain);
    for (accept, kind, start) in [
        ("text/html", "text/html", "<"),
        ("application/json", "application/json", "{"),
        ("application/xml", "application/xml", "<?xml"),
        ("text/plain", "text/plain", "no Route"),
        ("text/plain;q=0.1, text/html;q=0.9", "text/html", "<"),
        ("image/png", "application/json", "{"),
    ] {
        for version in ["--http1.1", "--http2-prior-knowledge"] {
            let seen = curl(&[version, "-H", &format!("Accept: {accept}"), &url]);
            let (head, body) = seen.split_once("\r\n\r\n").unwrap();
            let head = head.to_ascii_lowercase();
            assert!(head.contains(" 404") && head.contains(&format!("content-type: {kind}")), "{accept}: {seen}");
            assert!(body.trim_start().starts_with(start), "{accept}: {seen}");
        }
    }
    let seen = curl(&["--http2-prior-knowledge", "-X", "POST", "-H", "Content-Type: application/grpc", &url]);
    assert!(seen.to_ascii_lowercase().contains("grpc-status: 5"), "{seen}");
}

#[test]
fn pages_of_errors_are_those_of_the_operator_where_there_are_some() {
    if program("curl").is_none() {
        return;
    }
    let files = Stage::new(|options| options);
    let html = files.file("page.html", "<h1>%s</h1><i>%s</i><u>100%%</u>");
    let stage = Stage::new(|options| options.set("error_template_html", html.display()));
    let url = format!("http://127.0.0.1:{}/nowhere", stage.plain);
    let seen = curl(&["-H", "Accept: text/html", &url]);
    assert!(seen.contains("<h1>no Route matched with those values</h1><i>"), "{seen}");
    assert!(seen.ends_with("</i><u>100%</u>"), "{seen}");
    let seen = curl(&["-H", "Accept: application/json", &url]);
    assert!(seen.contains("\"message\":\"no Route matched with those values\""), "{seen}");
}
