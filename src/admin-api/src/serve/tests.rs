mod limits;

use super::*;
use crate::fake::Fake;
use gwctl_entities::NodeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: gwctl_lifecycle::Task,
}

fn options() -> ListenOptions {
    ListenOptions { address: ([127, 0, 0, 1], 0).into(), tls: None, setting: "admin_listen" }
}

fn start(face: Face, backend: Arc<Fake>) -> Server {
    start_with(face, backend, ServeOptions::default())
}

fn start_with(face: Face, backend: Arc<Fake>, options: ServeOptions) -> Server {
    let listener = Listener::bind(&self::options()).unwrap();
    let address = listener.local_address().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = spawn("server under test", Phase::Stop, async move {
        serve_with(listener, face, backend, &options, async {
            let _ = stopped.await;
        })
        .await;
    });
    Server { address, stop: Some(stop), task }
}

fn control_plane() -> Arc<Fake> {
    Arc::new(Fake::new(NodeKind::ControlPlane))
}

/// Sends bytes on a connection of its own and gives all that comes back until the server closes.
async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_body_announced_too_large_is_refused_before_it_is_sent() {
    let server = start(Face::Admin, control_plane());
    let request =
        "POST /services HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100000000\r\n\r\n";
    let answer = exchange(server.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_body_that_nobody_asked_for_leaves_the_connection_usable() {
    let server = start(Face::Admin, control_plane());
    let body = "x".repeat(200_000);
    let first = format!("GET /nope HTTP/1.1\r\nhost: x\r\ncontent-length: 200000\r\n\r\n{body}");
    let request = format!("{first}GET /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let answer = exchange(server.address, &request).await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let server = start(Face::Admin, control_plane());
    let answer = exchange(server.address, "HEAD /services HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("content-length: 23\r\n") && answer.contains("server: kong/3.9.1\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn refusals_carry_the_headers_of_every_answer() {
    let server = start(Face::Admin, control_plane());
    let request = "POST /services HTTP/1.1\r\nhost: x\r\norigin: http://ui\r\ncontent-type: text/plain\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx";
    let answer = exchange(server.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 415") && answer.contains("<h1>415 Unsupported Media Type</h1>"), "{answer}");
    assert!(answer.contains("access-control-allow-origin: http://ui\r\n"), "{answer}");
    assert!(answer.contains("x-kong-admin-latency: "), "{answer}");
}

#[tokio::test]
async fn a_request_in_flight_is_answered_after_stopping_began() {
    let backend = control_plane();
    let (entered, mut entering) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    *backend.before_status.lock().unwrap() = Some(Box::new(move || {
        entered.send(()).unwrap();
        released.recv().unwrap();
    }));
    let mut server = start(Face::Admin, backend);
    let address = server.address;
    let request = spawn("client", Phase::Stop, async move {
        let answer = exchange(address, "GET /status HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    });
    entering.recv().await.unwrap();
    server.stop.take().unwrap().send(()).unwrap();
    release.send(()).unwrap();
    request.join().await.unwrap();
    server.task.ended().await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn the_status_api_answers_probes_and_nothing_else() {
    let server = start(Face::Status, control_plane());
    let ask = async |head: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        exchange(server.address, &request).await.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(ask("GET /status", "").await, "200");
    assert_eq!(ask("GET /services", "").await, "404");
    assert_eq!(ask("GET /status/ready", "").await, "200");
    assert_eq!(ask("POST /status/ready", "status=up").await, "400");
    assert_eq!(ask("POST /status/ready", "status=draining").await, "204");
    assert_eq!(ask("GET /status/ready", "").await, "503");
}

#[tokio::test]
async fn an_address_in_use_is_told_with_the_way_to_find_its_user() {
    let first = Listener::bind(&options()).unwrap();
    let address = first.local_address().unwrap();
    let error = Listener::bind(&ListenOptions { address, ..options() }).unwrap_err();
    assert!(error.to_string().contains(&format!("{address} (admin_listen)")), "{error}");
    assert!(error.hint().contains(&format!("'sport = :{}'", address.port())), "{}", error.hint());
}
