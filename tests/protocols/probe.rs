//! A service of gRPC and its clients, both by tonic. Messages are plain bytes.

use bytes::{Buf, BufMut, Bytes};
use futures_util::stream::poll_fn;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::http::{Request as HttpRequest, Response as HttpResponse};
use tonic::codegen::tokio_stream::Stream;
use tonic::codegen::{BoxFuture, BoxStream, Service};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::server::{ClientStreamingService, ServerStreamingService, StreamingService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Identity, Server, ServerTlsConfig};
use tonic::{Code, Request, Response, Status, Streaming};

/// What a message is on the wire.
#[derive(Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        *self
    }

    fn decoder(&mut self) -> Plain {
        *self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// What `Watch` answers, in the hands of the test: an error ends it.
pub type Script = mpsc::Receiver<Result<Bytes, Status>>;

/// The service.
#[derive(Clone, Default)]
pub struct Probe {
    scripts: Arc<Mutex<VecDeque<Script>>>,
}

impl Probe {
    /// Serves on a free port, over TLS with an identity, as long as the test runs.
    pub async fn start(&self, tls: Option<Identity>) -> u16 {
        let server = Server::builder();
        self.serve(match tls {
            Some(identity) => server.tls_config(ServerTlsConfig::new().identity(identity)).unwrap(),
            None => server,
        })
        .await
    }

    /// The same with settings of the server.
    pub async fn serve(&self, server: Server) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = server.serve_with_incoming(self.clone(), TcpIncoming::from(listener));
        tokio::spawn(async move { serving.await.unwrap() });
        port
    }

    /// The next call of `Watch` is answered through what comes back.
    pub fn script(&self) -> mpsc::Sender<Result<Bytes, Status>> {
        let (sender, script) = mpsc::channel(1);
        self.scripts.lock().unwrap().push_back(script);
        sender
    }
}

impl Service<HttpRequest<Body>> for Probe {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = BoxFuture<HttpResponse<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        let probe = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Plain);
            let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
            Ok(match &*method {
                "Echo" => grpc.unary(Method(echo), request).await,
                "Refuse" => grpc.unary(Method(refuse), request).await,
                "Stall" => grpc.unary(Method(stall), request).await,
                "Watch" => grpc.server_streaming(Method(|_| watch(probe.clone())), request).await,
                "Join" => grpc.client_streaming(Method(join), request).await,
                "Talk" => grpc.streaming(Method(talk), request).await,
                other => Status::unimplemented(other).into_http(),
            })
        })
    }
}

/// The metadata of the request comes back: names with `seen-` before them.
fn returned(metadata: &MetadataMap) -> MetadataMap {
    let mut back = MetadataMap::new();
    for name in ["note", "grpc-timeout", "x-forwarded-proto"] {
        for value in metadata.get_all(name) {
            back.append(format!("seen-{name}").parse::<tonic::metadata::AsciiMetadataKey>().unwrap(), value.clone());
        }
    }
    for value in metadata.get_all_bin("note-bin") {
        back.append_bin("seen-note-bin", MetadataValue::from_bytes(&value.to_bytes().unwrap()));
    }
    back
}

async fn echo(request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    let metadata = returned(request.metadata());
    let mut response = Response::new(request.into_inner());
    *response.metadata_mut() = metadata;
    Ok(response)
}

/// An answer of trailers only.
async fn refuse(request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    let metadata = returned(request.metadata());
    Err(Status::with_details_and_metadata(Code::DataLoss, REFUSAL, request.into_inner(), metadata))
}

/// Signs that have a meaning in the percent encoding of a message, and some beyond ASCII.
pub const REFUSAL: &str = "50% of it is lost: größer";

async fn stall(_: Request<Bytes>) -> Result<Response<Bytes>, Status> {
    std::future::pending().await
}

async fn watch(probe: Probe) -> Result<Response<BoxStream<Bytes>>, Status> {
    let script = probe.scripts.lock().unwrap().pop_front();
    let mut script = script.ok_or_else(|| Status::internal("the test has written no script"))?;
    Ok(Response::new(Box::pin(poll_fn(move |task| script.poll_recv(task)))))
}

async fn join(request: Request<Streaming<Bytes>>) -> Result<Response<Bytes>, Status> {
    let (mut messages, mut whole) = (request.into_inner(), Vec::new());
    while let Some(message) = messages.message().await? {
        whole.extend_from_slice(&message);
        whole.push(b'.');
    }
    Ok(Response::new(whole.into()))
}

async fn talk(request: Request<Streaming<Bytes>>) -> Result<Response<BoxStream<Bytes>>, Status> {
    Ok(Response::new(Box::pin(request.into_inner())))
}

/// A function as a method of a service.
struct Method<F>(F);

impl<F, Answer, M> UnaryService<Bytes> for Method<F>
where
    F: FnMut(Request<Bytes>) -> Answer,
    Answer: Future<Output = Result<Response<M>, Status>>,
{
    type Response = M;
    type Future = Answer;

    fn call(&mut self, request: Request<Bytes>) -> Answer {
        (self.0)(request)
    }
}

impl<F, Answer, M> ClientStreamingService<Bytes> for Method<F>
where
    F: FnMut(Request<Streaming<Bytes>>) -> Answer,
    Answer: Future<Output = Result<Response<M>, Status>>,
{
    type Response = M;
    type Future = Answer;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Answer {
        (self.0)(request)
    }
}

impl<F, Answer, M, Messages> ServerStreamingService<Bytes> for Method<F>
where
    F: FnMut(Request<Bytes>) -> Answer,
    Answer: Future<Output = Result<Response<Messages>, Status>>,
    Messages: Stream<Item = Result<M, Status>>,
{
    type Response = M;
    type ResponseStream = Messages;
    type Future = Answer;

    fn call(&mut self, request: Request<Bytes>) -> Answer {
        (self.0)(request)
    }
}

impl<F, Answer, M, Messages> StreamingService<Bytes> for Method<F>
where
    F: FnMut(Request<Streaming<Bytes>>) -> Answer,
    Answer: Future<Output = Result<Response<Messages>, Status>>,
    Messages: Stream<Item = Result<M, Status>>,
{
    type Response = M;
    type ResponseStream = Messages;
    type Future = Answer;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Answer {
        (self.0)(request)
    }
}

/// A client of one service.
pub struct Client {
    grpc: tonic::client::Grpc<Channel>,
    service: &'static str,
}

impl Client {
    pub fn new(channel: Channel, service: &'static str) -> Client {
        Client { grpc: tonic::client::Grpc::new(channel), service }
    }

    async fn path(&mut self, method: &str) -> PathAndQuery {
        self.grpc.ready().await.unwrap();
        format!("/{}/{method}", self.service).parse().unwrap()
    }

    pub async fn unary(&mut self, method: &str, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        let path = self.path(method).await;
        self.grpc.unary(request, path, Plain).await
    }

    /// A call of one message without metadata.
    pub async fn ask(&mut self, method: &str, message: &'static str) -> Result<Response<Bytes>, Status> {
        self.unary(method, Request::new(message.into())).await
    }

    pub async fn watch(&mut self) -> Streaming<Bytes> {
        let path = self.path("Watch").await;
        self.grpc.server_streaming(Request::new(Bytes::new()), path, Plain).await.unwrap().into_inner()
    }

    pub async fn join(&mut self, mut messages: mpsc::Receiver<Bytes>) -> Result<Bytes, Status> {
        let path = self.path("Join").await;
        let messages = Request::new(poll_fn(move |task| messages.poll_recv(task)));
        self.grpc.client_streaming(messages, path, Plain).await.map(Response::into_inner)
    }

    pub async fn talk(&mut self, messages: mpsc::Receiver<Bytes>) -> Streaming<Bytes> {
        self.stream("Talk", messages).await.unwrap()
    }

    /// Streams both ways with any method.
    pub async fn stream(
        &mut self,
        method: &str,
        mut messages: mpsc::Receiver<Bytes>,
    ) -> Result<Streaming<Bytes>, Status> {
        let path = self.path(method).await;
        let messages = Request::new(poll_fn(move |task| messages.poll_recv(task)));
        self.grpc.streaming(messages, path, Plain).await.map(Response::into_inner)
    }
}
