//! What the upstream and the client see of each other.

use crate::stage::{ROUTE, SERVICE, Stage, Upstream, client, header, to};
use gwctl_proxy::{Network, ProxyOptions};
use http_body_util::{BodyExt, Full};
use serde_json::json;

#[tokio::test]
async fn the_upstream_sees_the_forwarded_headers() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let port = stage.address.port();
    let reply = stage
        .raw("GET /a/b?c=1 HTTP/1.1\r\nHost: H.test:99\r\nX-Forwarded-For: 9.9.9.9\r\nVia: 1.0 x\r\nConnection: close\r\n\r\n")
        .await;
    let seen = reply.text();
    assert!(seen.starts_with("GET /a/b?c=1 HTTP/1.1\r\n"), "{seen}");
    assert_eq!(header(&seen, "host").unwrap(), upstream.address.to_string());
    assert_eq!(header(&seen, "x-forwarded-for").unwrap(), "9.9.9.9, 127.0.0.1");
    assert_eq!(header(&seen, "x-real-ip").unwrap(), "127.0.0.1");
    assert_eq!(header(&seen, "x-forwarded-proto").unwrap(), "http");
    assert_eq!(header(&seen, "x-forwarded-host").unwrap(), "h.test");
    assert_eq!(header(&seen, "x-forwarded-port").unwrap(), port.to_string());
    assert_eq!(header(&seen, "x-forwarded-path").unwrap(), "/a/b");
    assert_eq!(header(&seen, "x-forwarded-prefix"), None);
    assert_eq!(header(&seen, "connection").unwrap(), "keep-alive");
    assert_eq!(header(&seen, "via").unwrap(), "1.0 x, 1.1 kong/3.9.1");
    assert_eq!(header(&seen, "x-kong-request-id"), reply.header("x-kong-request-id"));
}

#[tokio::test]
async fn the_client_sees_who_answered_and_how_long_it_took() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let reply = stage.get("/").await;
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.header("server").unwrap(), "echo");
    assert_eq!(reply.header("via").unwrap(), "1.1 kong/3.9.1");
    assert!(reply.header("x-kong-upstream-latency").unwrap().parse::<u64>().is_ok());
    assert!(reply.header("x-kong-proxy-latency").unwrap().parse::<u64>().is_ok());
    assert_eq!(reply.header("x-kong-request-id").unwrap().len(), 32);
    assert_eq!(reply.header("x-kong-response-latency"), None);
}

#[tokio::test]
async fn no_route_is_a_404_of_the_node() {
    let stage = Stage::new(json!({}));
    let reply = stage.get("/").await;
    let id = reply.header("x-kong-request-id").unwrap();
    assert_eq!(reply.status(), 404);
    assert_eq!(reply.header("server").unwrap(), "kong/3.9.1");
    assert!(reply.header("x-kong-response-latency").is_some());
    assert_eq!(
        reply.text(),
        format!("{{\n  \"message\":\"no Route matched with those values\",\n  \"request_id\":\"{id}\"\n}}")
    );
}

#[tokio::test]
async fn a_trusted_proxy_is_believed() {
    let upstream = Upstream::echo().await;
    let trusted_ips = vec![Network::parse("127.0.0.0/8").unwrap()];
    let options = ProxyOptions { trusted_ips, real_ip_header: "x-forwarded-for".to_owned(), ..Default::default() };
    let stage = Stage::with(to(upstream.address, json!({})), options, Vec::new());
    let seen = stage
        .raw("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 7.7.7.7, 8.8.8.8\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 1\r\nConnection: close\r\n\r\n")
        .await
        .text();
    assert_eq!(header(&seen, "x-real-ip").unwrap(), "8.8.8.8");
    assert_eq!(header(&seen, "x-forwarded-proto").unwrap(), "https");
    assert_eq!(header(&seen, "x-forwarded-port").unwrap(), "1");
    assert_eq!(header(&seen, "x-forwarded-for").unwrap(), "7.7.7.7, 8.8.8.8, 127.0.0.1");
}

#[tokio::test]
async fn hop_by_hop_headers_go_no_further() {
    let upstream = Upstream::new(|mut stream, _| async move {
        let (head, _) = crate::stage::receive(&mut stream).await.unwrap();
        let answer = format!(
            "HTTP/1.1 200 OK\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 5\r\nContent-Length: {}\r\n\r\n{head}",
            head.len()
        );
        tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let reply = stage
        .raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close, x-mine\r\nX-Mine: 1\r\nProxy-Connection: x\r\nProxy: x\r\nKeep-Alive: 1\r\nTE: gzip\r\nUpgrade: h2c\r\n\r\n")
        .await;
    for name in ["x-mine", "proxy-connection", "proxy", "keep-alive", "te", "upgrade"] {
        assert_eq!(header(&reply.text(), name), None, "{name} went to the upstream");
    }
    for name in ["x-secret", "keep-alive"] {
        assert_eq!(reply.header(name), None, "{name} came to the client");
    }
}

#[tokio::test]
async fn the_host_is_preserved_on_demand_as_it_came_and_told_without_its_port() {
    let upstream = Upstream::echo().await;
    let own = upstream.address.to_string();
    for preserves in [true, false] {
        let mut config = to(upstream.address, json!({}));
        config["routes"][0]["preserve_host"] = json!(preserves);
        let stage = Stage::new(config);
        for (host, told) in [
            ("Keep.test", "keep.test"),
            ("Keep.test:80", "keep.test"),
            ("keep.test:443", "keep.test"),
            ("keep.test:99", "keep.test"),
            ("keep.test.", "keep.test"),
            ("127.0.0.1:8000", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[::1]:8000", "[::1]"),
        ] {
            let seen = stage.raw(format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await.text();
            assert_eq!(header(&seen, "host").unwrap(), if preserves { host } else { &own }, "{host}");
            assert_eq!(header(&seen, "x-forwarded-host").unwrap(), told, "{host}");
        }
    }
}

#[tokio::test]
async fn an_upstream_entity_gives_targets_and_host() {
    let (one, other) = (Upstream::echo().await, Upstream::echo().await);
    let mut config = to(one.address, json!({"host": "balanced.test", "port": 80}));
    config["upstreams"] = json!([{"id": "u", "name": "balanced.test", "host_header": "hh.test"}]);
    config["targets"] = json!([
        {"id": "1", "upstream": {"id": "u"}, "target": one.address.to_string(), "weight": 100},
        {"id": "2", "upstream": {"id": "u"}, "target": other.address.to_string(), "weight": 100},
    ]);
    let stage = Stage::new(config);
    let mut hosts = Vec::new();
    for _ in 0..4 {
        hosts.push(header(&stage.get("/").await.text(), "host").unwrap());
    }
    hosts.sort();
    let mut expected: Vec<_> = [&one, &other].map(|upstream| format!("hh.test:{}", upstream.address.port())).into();
    expected.sort();
    assert_eq!(hosts.iter().collect::<Vec<_>>(), [&expected[0], &expected[0], &expected[1], &expected[1]]);
}

#[tokio::test]
async fn connections_are_kept_on_both_sides() {
    let upstream = Upstream::echo().await;
    let stage = Stage::new(to(upstream.address, json!({})));
    let mut client = client(stage.address).await;
    for number in 0..20 {
        client.ready().await.unwrap();
        let request = http::Request::post(format!("/{number}")).header("host", "a").body(Full::from("hello")).unwrap();
        let body = client.send_request(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert!(body.ends_with(b"hello"));
    }
    assert_eq!(upstream.connections(), 1);
    let stats = stage.proxy.as_ref().unwrap().stats().now();
    assert_eq!((stats.connections_accepted, stats.connections_active, stats.total_requests), (1, 1, 20));
}

#[tokio::test]
async fn debug_headers_name_route_and_service_when_allowed() {
    let upstream = Upstream::echo().await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\nKong-Debug: 1\r\nConnection: close\r\n\r\n";
    let options = ProxyOptions { allow_debug_header: true, ..Default::default() };
    let reply = Stage::with(to(upstream.address, json!({})), options, Vec::new()).raw(request).await;
    assert_eq!(
        (reply.header("kong-route-id").unwrap(), reply.header("kong-service-id").unwrap()),
        (ROUTE.into(), SERVICE.into())
    );
    assert_eq!(Stage::new(to(upstream.address, json!({}))).raw(request).await.header("kong-route-id"), None);
}

#[tokio::test]
async fn a_websocket_passes_through() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let upstream = Upstream::new(|mut stream, _| async move {
        let (head, _) = crate::stage::receive(&mut stream).await.unwrap();
        assert_eq!(header(&head, "connection").unwrap(), "keep-alive, Upgrade");
        stream
            .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
            .await
            .unwrap();
        let mut word = [0; 4];
        stream.read_exact(&mut word).await.unwrap();
        stream.write_all(&[b"re:".as_slice(), &word].concat()).await.unwrap();
    })
    .await;
    let stage = Stage::new(to(upstream.address, json!({})));
    // What is closed after the answer is the connection as one of HTTP.
    for connection in ["Upgrade", "Upgrade, close", "close, upgrade", "keep-alive, Upgrade"] {
        let mut stream = tokio::net::TcpStream::connect(stage.address).await.unwrap();
        let head = format!("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\nUpgrade: WebSocket\r\n\r\nping");
        stream.write_all(head.as_bytes()).await.unwrap();
        let reply = crate::stage::Reply::read(&mut stream).await;
        assert_eq!(reply.status(), 101, "{connection}");
        assert_eq!(reply.header("upgrade").unwrap(), "websocket");
        assert_eq!(reply.header("connection").unwrap(), "upgrade");
        assert_eq!(reply.text(), "re:ping");
    }
}
