//! Which target a request goes to, seen from outside.

use crate::stage::{Stage, Upstream, receive, to};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

/// An address nobody listens on. Its port stays taken, so that no other test comes to it.
pub fn nobody() -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    Box::leak(Box::new(socket));
    address
}

/// A service balanced over targets; `settings` are those of the upstream.
pub fn balanced(targets: &[SocketAddr], service: Value, settings: Value) -> Value {
    let mut config = to(targets[0], service);
    config["services"][0]["host"] = json!("u.test");
    let mut upstream = json!({"id": "u", "name": "u.test"});
    upstream.as_object_mut().unwrap().extend(settings.as_object().cloned().unwrap());
    config["upstreams"] = json!([upstream]);
    let row = |target: &SocketAddr| json!({"id": target.to_string(), "upstream": {"id": "u"}, "target": target.to_string(), "weight": 100});
    config["targets"] = targets.iter().map(row).collect();
    config
}

/// An upstream that answers with its own port.
async fn named() -> Upstream {
    Upstream::new(|mut stream, _| async move {
        let port = stream.local_addr().unwrap().port().to_string();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{port}", port.len());
        while receive(&mut stream).await.is_some() {
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// Three of them, and a stage that balances over them.
async fn three(settings: Value) -> (Vec<Upstream>, Stage) {
    let upstreams = vec![named().await, named().await, named().await];
    let addresses: Vec<_> = upstreams.iter().map(|upstream| upstream.address).collect();
    let stage = Stage::new(balanced(&addresses, json!({}), settings));
    (upstreams, stage)
}

async fn ask(stage: &Stage, path: &str, headers: &str) -> (String, Option<String>) {
    let reply = stage.raw(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{headers}Connection: close\r\n\r\n")).await;
    assert_eq!(reply.status(), 200, "{reply:?}");
    (reply.text(), reply.header("set-cookie"))
}

#[tokio::test]
async fn a_header_decides_where_a_request_goes() {
    let hashed = json!({"algorithm": "consistent-hashing", "hash_on": "header", "hash_on_header": "X-User"});
    let (_upstreams, stage) = three(hashed).await;
    let mut found = std::collections::BTreeSet::new();
    for user in 0..20 {
        let header = format!("X-User: {user}\r\n");
        let (first, _) = ask(&stage, "/", &header).await;
        assert_eq!(ask(&stage, "/other", &header).await.0, first);
        found.insert(first);
    }
    assert!(found.len() > 1, "twenty users on one target");
}

#[tokio::test]
async fn a_client_without_the_cookie_is_given_one_and_stays() {
    let settings = json!({"algorithm": "consistent-hashing", "hash_on": "cookie", "hash_on_cookie": "sid", "hash_on_cookie_path": "/shop"});
    let (_upstreams, stage) = three(settings).await;
    let mut values = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let (first, cookie) = ask(&stage, "/", "").await;
        let cookie = cookie.unwrap();
        assert!(cookie.contains("; Path=/shop;") && cookie.ends_with("HttpOnly"), "{cookie}");
        let pair = cookie.split(';').next().unwrap().to_owned();
        let (again, none) = ask(&stage, "/", &format!("Cookie: a=b; {pair}\r\n")).await;
        assert_eq!((again, none), (first, None));
        values.insert(pair);
    }
    assert_eq!(values.len(), 10, "each client has a value of its own");
}

#[tokio::test]
async fn a_group_of_the_path_decides_where_a_request_goes() {
    let hashed = json!({"algorithm": "consistent-hashing", "hash_on": "uri_capture", "hash_on_uri_capture": "user"});
    let upstreams = [named().await, named().await, named().await];
    let addresses: Vec<_> = upstreams.iter().map(|upstream| upstream.address).collect();
    let mut config = balanced(&addresses, json!({}), hashed);
    config["routes"][0]["paths"] = json!(["~/users/(?<user>\\d+)"]);
    let stage = Stage::new(config);
    let mut found = std::collections::BTreeSet::new();
    for user in 0..20 {
        let (first, _) = ask(&stage, &format!("/users/{user}/a"), "").await;
        assert_eq!(ask(&stage, &format!("/users/{user}/b"), "").await.0, first);
        found.insert(first);
    }
    assert!(found.len() > 1, "twenty users on one target");
}

#[tokio::test]
async fn the_least_busy_target_gets_the_request() {
    let (release, released) = tokio::sync::watch::channel(false);
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    // Holds every answer back until told.
    let slow = Upstream::new(move |mut stream: TcpStream, _| {
        let (mut released, seen) = (released.clone(), seen.clone());
        async move {
            while receive(&mut stream).await.is_some() {
                seen.fetch_add(1, Ordering::SeqCst);
                released.wait_for(|done| *done).await.unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow").await.unwrap();
            }
        }
    })
    .await;
    let quick = named().await;
    let addresses = [slow.address, quick.address];
    let service = || json!({"read_timeout": 60_000, "retries": 0});
    let config = || balanced(&addresses, service(), json!({"algorithm": "least-connections"}));
    let stage = Arc::new(Stage::new(config()));
    // Idle targets take turns: one of the first requests goes to the slow one and stays there.
    let waiting = loop {
        let stage = stage.clone();
        let task = tokio::spawn(async move { stage.get("/").await.text() });
        while asked.load(Ordering::SeqCst) == 0 && !task.is_finished() {
            tokio::task::yield_now().await;
        }
        if asked.load(Ordering::SeqCst) > 0 {
            break task;
        }
    };
    for round in 0..10 {
        assert_eq!(ask(&stage, "/", "").await.0, quick.address.port().to_string());
        if round == 5 {
            // The count outlives a change of the configuration.
            let mut changed = config();
            changed["upstreams"][0]["slots"] = json!(round + 1000);
            stage.reconfigure(changed);
        }
    }
    release.send_replace(true);
    assert_eq!(waiting.await.unwrap(), "slow");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Passive checks as an upstream with all of them has.
fn passive() -> Value {
    json!({"healthchecks": {"passive": {"healthy": {"successes": 1, "http_statuses": [200]},
        "unhealthy": {"http_failures": 2, "http_statuses": [500], "tcp_failures": 1, "timeouts": 1}}}})
}

#[tokio::test]
async fn a_dead_target_costs_one_attempt_and_is_left_out() {
    let alive = named().await;
    let targets = [nobody(), alive.address];
    let stage = Stage::new(balanced(&targets, json!({"retries": 1}), passive()));
    for _ in 0..10 {
        assert_eq!(ask(&stage, "/", "").await.0, alive.address.port().to_string());
    }
    // Without retries the dead target would show.
    stage.reconfigure(balanced(&targets, json!({"retries": 0}), passive()));
    for _ in 0..10 {
        ask(&stage, "/", "").await;
    }
}

#[tokio::test]
async fn a_target_that_answers_badly_is_left_out() {
    let bad = Upstream::fixed(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n").await;
    let good = named().await;
    let stage = Stage::new(balanced(&[bad.address, good.address], json!({}), passive()));
    let mut failures = 0;
    for _ in 0..20 {
        failures += usize::from(stage.get("/").await.status() == 500);
    }
    assert_eq!(failures, 2, "as many as the limit says");
}

#[tokio::test]
async fn a_target_that_does_not_answer_in_time_is_left_out() {
    let silent = Upstream::new(|mut stream, _| async move { while receive(&mut stream).await.is_some() {} }).await;
    let good = named().await;
    let config = |read_timeout: u32, good_weight: u32| {
        let service = json!({"read_timeout": read_timeout, "retries": 0});
        let mut config = balanced(&[silent.address, good.address], service, passive());
        config["targets"][1]["weight"] = json!(good_weight);
        config
    };
    // Little time is given to the silent one only: the good one may have to wait for its turn on this machine.
    let stage = Stage::new(config(50, 0));
    assert_eq!(stage.get("/").await.status(), 504);
    stage.reconfigure(config(60_000, 100));
    for _ in 0..10 {
        assert_eq!(ask(&stage, "/", "").await.0, good.address.port().to_string());
    }
    assert_eq!(silent.connections(), 1);
}

#[tokio::test]
async fn without_a_healthy_target_it_is_a_503() {
    let stage = Stage::new(balanced(&[nobody()], json!({"retries": 0}), passive()));
    assert_eq!(stage.get("/").await.status(), 502);
    let reply = stage.get("/").await;
    assert_eq!(reply.status(), 503);
    assert!(reply.text().contains("failure to get a peer from the ring-balancer"));
}

#[tokio::test]
async fn a_post_that_reached_a_target_is_not_sent_to_another() {
    let count = Arc::new(AtomicUsize::new(0));
    let breaking = || {
        let count = count.clone();
        Upstream::new(move |mut stream, _| {
            let count = count.clone();
            async move {
                receive(&mut stream).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let targets = [breaking().await.address, breaking().await.address];
    let stage = Stage::new(balanced(&targets, json!({"retries": 5}), json!({})));
    let send = async |method: &str| {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        assert_eq!(stage.raw(request).await.status(), 502);
        count.swap(0, Ordering::SeqCst)
    };
    assert_eq!(send("POST").await, 1);
    assert_eq!(send("PATCH").await, 1);
    assert_eq!(send("GET").await, 6);
    assert_eq!(send("PUT").await, 6);
}

#[tokio::test]
async fn a_retry_asks_each_target_once_before_any_again() {
    let counts: [Arc<AtomicUsize>; 3] = Default::default();
    let mut targets = Vec::new();
    for count in &counts {
        let count = count.clone();
        let breaking = Upstream::new(move |mut stream, _| {
            let count = count.clone();
            async move {
                receive(&mut stream).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        })
        .await;
        targets.push(breaking.address);
    }
    for algorithm in ["round-robin", "least-connections", "consistent-hashing", "latency"] {
        let settings = json!({"algorithm": algorithm, "hash_on": "ip"});
        let stage = Stage::new(balanced(&targets, json!({"retries": 2}), settings));
        assert_eq!(stage.get("/").await.status(), 502);
        let asked = counts.each_ref().map(|count| count.swap(0, Ordering::SeqCst));
        assert_eq!(asked, [1, 1, 1], "{algorithm}");
    }
}

#[tokio::test]
async fn a_target_that_comes_and_goes_fails_nobody_and_is_asked_at_once_when_it_is_back() {
    let (coming, staying) = (named().await, named().await);
    let alone = balanced(&[coming.address], json!({"retries": 0}), passive());
    let mut nobody = alone.clone();
    nobody["targets"] = json!([]);
    let (both, one) = ([coming.address, staying.address], [staying.address]);
    let [both, one] = [&both[..], &one[..]].map(|targets| balanced(targets, json!({"retries": 0}), passive()));
    let stage = Stage::new(alone.clone());
    for _ in 0..50 {
        stage.reconfigure(nobody.clone());
        assert_eq!(stage.get("/").await.status(), 503);
        stage.reconfigure(alone.clone());
        assert_eq!(stage.get("/").await.status(), 200);
    }
    for _ in 0..50 {
        for config in [&both, &one] {
            let asked = (0..4).map(|_| stage.get("/"));
            let replies = futures_util::future::join(futures_util::future::join_all(asked), async {
                stage.reconfigure(config.clone());
            });
            assert!(replies.await.0.iter().all(|reply| reply.status() == 200));
        }
    }
}
