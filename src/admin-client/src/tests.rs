//! The client against a server that answers what it is told to.

use crate::fleet::date_seconds;
use crate::{ChangeOperation, Client, ClientError, ListQuery, Options, Token};
use gwctl_entities::Map;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

/// An Admin API with these answers by path: status and body. Other paths are 404, `/head` tells the request's head.
async fn server(answers: &'static [(&'static str, u16, &'static str)]) -> Client {
    Client::new(&Options::of(address(answers).await)).unwrap()
}

async fn address(answers: &'static [(&'static str, u16, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let told = address.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            // The first byte of a TLS handshake is answered at once, as by a server that knows only HTTP.
            while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.first() != Some(&0x16) {
                match stream.read(&mut buffer).await {
                    Ok(0) | Err(_) => break,
                    Ok(read) => request.extend_from_slice(&buffer[..read]),
                }
            }
            let head = String::from_utf8_lossy(&request).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let found = answers.iter().find(|(known, ..)| *known == path);
            let (_, status, body) = found.copied().unwrap_or(("", 404, r#"{"message":"Not found"}"#));
            let heads = serde_json::to_string(&head).unwrap();
            let (status, body) = if path == "/head" { (200, heads.as_str()) } else { (status, body) };
            let answer = format!(
                "HTTP/1.1 {status} X\r\netag: \"7\"\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    told
}

#[tokio::test]
async fn the_token_goes_with_every_request_and_is_never_shown() {
    let token = Some(Token::new(" s3cret\n"));
    let options = Options { token, ..Options::of(address(&[]).await) };
    let client = Client::new(&options).unwrap();
    let head = client.get("/head").await.unwrap().to_string();
    assert!(head.contains("authorization: Bearer s3cret\\r"), "{head}");
    assert!(!format!("{options:?} {client:?}").contains("s3cret"));
    for secret in ["", "a\nb"] {
        let error = Client::new(&Options { token: Some(Token::new(secret)), ..options.clone() }).unwrap_err();
        assert!(matches!(error, ClientError::ConfigOption { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_login_in_the_address_is_refused_without_being_repeated() {
    let error = Client::new(&Options::of("http://bob:hunter2@cp:8001")).unwrap_err();
    assert!(!error.to_string().contains("hunter2") && error.hint().unwrap().contains("--token-file"), "{error}");
}

#[tokio::test]
async fn a_batch_is_one_request_and_none_where_the_endpoint_is_missing() {
    let delete =
        ChangeOperation { action: "delete", entity: "services".into(), id: "i".into(), body: None, transform: None };
    let answers = &[("/gwctl/changes?results=none", 200, r#"{"version":8}"#), ("/", 200, "{}")];
    let client = server(answers).await;
    assert_eq!(client.version_read(), None);
    client.node().await.unwrap();
    assert_eq!(client.version_read(), Some(7));
    let done = client.change(std::slice::from_ref(&delete), Some(7)).await.unwrap();
    assert_eq!(done.map(|done| done.version), Some(8));
    assert_eq!(server(&[]).await.change(&[delete], None).await.unwrap(), None);
}

#[tokio::test]
async fn lists_follow_every_page() {
    let client = server(&[
        ("/services?size=1000", 200, r#"{"data":[{"name":"a"}],"offset":"x=","next":"/services?offset=x%3D"}"#),
        ("/services?size=1000&offset=x%3D", 200, r#"{"data":[{"name":"b"}],"next":null}"#),
    ])
    .await;
    let mut seen = Vec::new();
    let rows = client.list_pages("/services", &ListQuery::default(), &mut |rows| seen.push(rows)).await.unwrap();
    assert_eq!((rows.len(), seen), (2, vec![1, 2]));
}

#[tokio::test]
async fn a_server_that_repeats_a_page_is_not_asked_for_ever() {
    let client = server(&[
        ("/services?size=1000", 200, r#"{"data":[],"offset":"x"}"#),
        ("/services?size=1000&offset=x", 200, r#"{"data":[],"offset":"x"}"#),
    ])
    .await;
    let error = client.list("/services", &ListQuery::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::PeerAnswer { .. }), "{error}");
}

#[tokio::test]
async fn a_refusal_carries_the_code_and_the_fields() {
    let body = r#"{"message":"schema violation (host: required field missing)","code":2,"name":"schema violation","fields":{"host":"required field missing"}}"#;
    let client = server(Box::leak(Box::new([("/services/a", 400, body)]))).await;
    let error = client.put("/services/a", &Map::new()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "PUT /services/a was refused with status 400: schema violation (host: required field missing) (code 2)"
    );
    let ClientError::PeerRefused { refusal, .. } = error else { panic!("{error}") };
    assert_eq!(refusal.fields["host"], "required field missing");
}

#[tokio::test]
async fn what_is_not_there_is_none_and_its_delete_no_error() {
    let client = server(&[]).await;
    assert_eq!(client.record("services", "a b").await.unwrap(), None);
    client.delete("/services/a").await.unwrap();
}

#[tokio::test]
async fn nobody_listening_is_unreachable_with_address_and_hint() {
    // Taken and not listened on, so that no other test comes to it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let client = Client::new(&Options::of(format!("127.0.0.1:{port}"))).unwrap();
    let error = client.node().await.unwrap_err();
    assert!(error.is_unreachable() && error.hint().is_some());
    assert!(error.to_string().contains(&format!("http://127.0.0.1:{port}")), "{error}");
    assert!(error.to_string().contains("onnection refused"), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_no_json_names_the_likely_mistake() {
    let client = server(&[("/", 200, "<html>hello</html>")]).await;
    let error = client.node().await.unwrap_err();
    assert!(error.hint().unwrap().contains("Admin API"), "{error}");
}

#[tokio::test]
async fn addresses_that_are_none_are_refused_before_any_request() {
    for address in ["", "ftp://host", "http://", "http://a b"] {
        let error = Client::new(&Options::of(address)).unwrap_err();
        assert!(matches!(error, ClientError::ConfigAddress { .. }), "{address}: {error}");
    }
    assert_eq!(Client::new(&Options::of("cp:8001/")).unwrap().address(), "http://cp:8001");
}

#[tokio::test]
async fn a_plain_kong_gives_a_fleet_too() {
    let rows = r#"{"data":[
        {"id":"b","hostname":"dp-b","ip":"10.0.0.2","version":"3.9.1","sync_status":"normal","config_hash":"00","last_seen":1767225590,"labels":{"a":"1"},"cert_details":{"expiry_timestamp":1767230000}},
        {"id":"a","hostname":"dp-a","ip":"10.0.0.1","version":"3.9.1","sync_status":"unknown","config_hash":"00","last_seen":1767220000,"labels":null,"cert_details":null}],"next":null}"#;
    let client = server(Box::leak(Box::new([
        ("/clustering/data-planes?size=1", 200, rows),
        ("/clustering/data-planes?size=1000", 200, rows),
    ])))
    .await;
    let fleet = client.fleet().await.unwrap();
    assert_eq!(fleet.now_millis, 1_767_225_600_000);
    let shown: Vec<_> = fleet.items.iter().map(|member| (member.name.as_str(), member.connected)).collect();
    assert_eq!(shown, [("dp-a", false), ("dp-b", true)]);
    assert_eq!(fleet.items[1].certificate_expires_at, Some(1_767_230_000));
}

#[tokio::test]
async fn a_node_that_has_no_fleet_is_told_from_a_control_plane() {
    let error = server(&[]).await.fleet().await.unwrap_err();
    assert!(error.to_string().contains("no control plane") && error.hint().is_some(), "{error}");
}

#[tokio::test]
async fn a_port_that_speaks_no_https_is_told_in_words() {
    let address = format!("https://{}", address(&[]).await);
    let error = Client::new(&Options::of(address)).unwrap().node().await.unwrap_err();
    assert!(error.to_string().ends_with("it does not speak https"), "{error}");
    assert!(error.hint().unwrap().contains("http://"));
}

#[test]
fn dates_of_answers_are_read() {
    assert_eq!(date_seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
    assert_eq!(date_seconds("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    assert_eq!(date_seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    for wrong in ["", "yesterday", "Sun, 06 Nov 1994 08:49:37", "Sun, 99 Nov 1994 08:49:37 GMT"] {
        assert_eq!(date_seconds(wrong), None);
    }
}
