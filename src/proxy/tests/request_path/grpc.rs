//! gRPC: HTTP/2 to the upstream, trailers, streams both ways at the same time.

use crate::stage::{Stage, Upstream, to};
use bytes::Bytes;
use gwctl_certs::{Identity, Source};
use gwctl_proxy::{Listener, ProxyOptions};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// Sends back each part as it comes, then the head of the request it saw as trailers.
struct Echo {
    parts: Incoming,
    trailers: Option<HeaderMap>,
}

impl Body for Echo {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let part = ready!(Pin::new(&mut self.parts).poll_frame(task));
        Poll::Ready(part.or_else(|| self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))))
    }
}

async fn echo(request: Request<Incoming>) -> Result<Response<Echo>, Infallible> {
    let (head, parts) = request.into_parts();
    let mut trailers = HeaderMap::new();
    let mut set = |name: &'static str, value: &str| trailers.insert(name, HeaderValue::from_str(value).unwrap());
    set("grpc-status", "0");
    set("seen-target", &head.uri.to_string());
    set("seen-te", head.headers.get("te").map_or("none", |te| te.to_str().unwrap()));
    set("seen-host", if head.headers.contains_key("host") { "also a header" } else { "target only" });
    let answer = Response::builder().header("content-type", "application/grpc");
    Ok(answer.body(Echo { parts, trailers: Some(trailers) }).unwrap())
}

async fn upstream() -> Upstream {
    Upstream::new(|stream, _| async move {
        // The proxy may end the connection as it likes.
        let _ =
            http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service_fn(echo)).await;
    })
    .await
}

fn stage(upstream: &Upstream) -> Stage {
    let mut config = to(upstream.address, json!({"protocol": "grpc"}));
    config["routes"][0]["protocols"] = json!(["grpc", "grpcs"]);
    let listener = Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: false, http2: true, proxy_protocol: false };
    Stage::with(config, ProxyOptions { listeners: vec![listener], ..ProxyOptions::default() }, Vec::new())
}

async fn client<B>(stage: &Stage) -> SendRequest<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = TokioIo::new(TcpStream::connect(stage.address).await.unwrap());
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn call<B>(body: B) -> Request<B> {
    let call = Request::post("http://svc.test/package.Service/Method");
    call.header("content-type", "application/grpc").header("te", "trailers").body(body).unwrap()
}

#[tokio::test]
async fn a_call_has_its_trailers_and_the_upstream_sees_a_grpc_request() {
    let upstream = upstream().await;
    let stage = stage(&upstream);
    let mut client = client(&stage).await;
    let answer = client.send_request(call(Full::new(Bytes::from_static(b"ping")))).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers().contains_key("x-kong-upstream-latency"));
    let answer = answer.into_body().collect().await.unwrap();
    let trailers = answer.trailers().cloned().unwrap();
    assert_eq!(answer.to_bytes(), "ping");
    assert_eq!(trailers["grpc-status"], "0");
    let target = format!("http://{}/package.Service/Method", upstream.address);
    assert_eq!(
        (trailers["seen-target"].to_str().unwrap(), &trailers["seen-te"]),
        (&*target, &HeaderValue::from_static("trailers"))
    );
    assert_eq!(trailers["seen-host"], "target only");
}

#[tokio::test]
async fn parts_go_both_ways_at_the_same_time() {
    let upstream = upstream().await;
    let stage = stage(&upstream);
    let (parts, waiting) = mpsc::channel::<Bytes>(1);
    let mut client = client(&stage).await;
    let answering = tokio::spawn(async move { client.send_request(call(Parts(waiting))).await.unwrap() });
    parts.send(Bytes::from_static(b"one")).await.unwrap();
    let mut answer = answering.await.unwrap().into_body();
    for (sent, next) in [("one", Some("two")), ("two", Some("three")), ("three", None)] {
        let frame = answer.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), sent, "each part comes back before the next is sent");
        if let Some(next) = next {
            parts.send(Bytes::from(next)).await.unwrap();
        }
    }
    drop(parts);
    let last = answer.frame().await.unwrap().unwrap();
    assert_eq!(last.into_trailers().unwrap()["grpc-status"], "0");
}

/// A body of the parts that come through a channel.
struct Parts(mpsc::Receiver<Bytes>);

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(task).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

#[tokio::test]
async fn many_calls_share_one_connection_to_the_upstream() {
    let upstream = upstream().await;
    let stage = stage(&upstream);
    let client = client(&stage).await;
    let first = client.clone().send_request(call(Full::new(Bytes::from_static(b"first")))).await.unwrap();
    first.into_body().collect().await.unwrap();
    let calls = (0..50).map(|number| {
        let mut client = client.clone();
        tokio::spawn(async move {
            let text = format!("call {number}");
            let answer = client.send_request(call(Full::new(Bytes::from(text.clone())))).await.unwrap();
            assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), text);
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn a_client_of_grpc_is_told_of_a_failure_in_its_own_words() {
    let upstream = Upstream::new(|stream, _| async move { drop(stream) }).await;
    let stage = stage(&upstream);
    let mut client = client(&stage).await;
    let answer = client.send_request(call(Full::new(Bytes::from_static(b"ping")))).await.unwrap();
    assert_eq!(answer.headers()["grpc-status"], "13");
    assert!(answer.headers().contains_key("grpc-message"));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "");
}

#[tokio::test]
async fn a_service_of_grpcs_is_spoken_to_over_tls_with_http2_agreed() {
    let pair = gwctl_certs::self_signed(&["svc.test".to_owned()], 1_700_000_000).unwrap();
    let source = |pem| Source { setting: "cert", place: "test", pem };
    let identity = Identity::read(source(&pair.certificate), source(&pair.key)).unwrap();
    let acceptor = TlsAcceptor::from(gwctl_certs::listener_config(&[identity], true).unwrap());
    let upstream = Upstream::new(move |stream, _| {
        let acceptor = acceptor.clone();
        async move {
            let stream = acceptor.accept(stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
            let _ = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service_fn(echo))
                .await;
        }
    })
    .await;
    let mut config = to(upstream.address, json!({"protocol": "grpcs"}));
    config["routes"][0]["protocols"] = json!(["grpc"]);
    let listener = Listener { addr: "127.0.0.1:0".parse().unwrap(), ssl: false, http2: true, proxy_protocol: false };
    let stage = Stage::with(config, ProxyOptions { listeners: vec![listener], ..ProxyOptions::default() }, Vec::new());
    let mut client = client(&stage).await;
    let answer = client.send_request(call(Full::new(Bytes::from_static(b"ping")))).await.unwrap();
    let answer = answer.into_body().collect().await.unwrap();
    let target = format!("https://{}/package.Service/Method", upstream.address);
    assert_eq!(answer.trailers().unwrap()["seen-target"].to_str().unwrap(), target);
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    // SETTINGS are the connection's, the others the first stream's.
    let stream = u8::from(kind != 4);
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

#[tokio::test]
async fn interim_responses_over_http2_are_not_the_answer() {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let upstream = Upstream::new(|mut stream, _| async move {
        // The preface and whatever comes with it; the library of the client begins with its request at once.
        let mut start = [0; 24];
        stream.read_exact(&mut start).await.unwrap();
        stream.write_all(&frame(SETTINGS, 0, &[])).await.unwrap();
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            stream.read_exact(&mut payload).await.unwrap();
            if head[3] == HEADERS {
                break;
            }
        }
        // `:status: 103` and `link: x` as literals, `:status: 200` of the static table.
        let hints = frame(HEADERS, 4, b"\x08\x03103\x00\x04link\x01x");
        let answer = [hints.repeat(3), frame(HEADERS, 4, b"\x88"), frame(DATA, 1, b"ok")].concat();
        stream.write_all(&answer).await.unwrap();
        let _ = stream.read_to_end(&mut Vec::new()).await;
    })
    .await;
    let stage = stage(&upstream);
    let answer = client(&stage).await.send_request(call(Full::new(Bytes::from_static(b"ping")))).await.unwrap();
    assert_eq!((answer.status(), answer.headers().get("link")), (StatusCode::OK, None));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "ok");
}
