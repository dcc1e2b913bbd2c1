//! A collector of OTLP over HTTP, which reads what it is sent with a codec that is not ours.

use gwctl_testkit::wait_for;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// The messages of `opentelemetry/proto`, as far as they are looked at.
mod proto {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ExportTraceServiceRequest {
        #[prost(message, repeated, tag = "1")]
        pub(super) resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        pub(super) resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub(super) scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Resource {
        #[prost(message, repeated, tag = "1")]
        pub(super) attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct ScopeSpans {
        #[prost(message, repeated, tag = "2")]
        pub(super) spans: Vec<Span>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Span {
        #[prost(bytes = "vec", tag = "1")]
        pub(super) trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub(super) span_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "4")]
        pub(super) parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        pub(super) name: String,
        #[prost(int32, tag = "6")]
        pub(super) kind: i32,
        #[prost(fixed64, tag = "7")]
        pub(super) start_time_unix_nano: u64,
        #[prost(fixed64, tag = "8")]
        pub(super) end_time_unix_nano: u64,
        #[prost(message, repeated, tag = "9")]
        pub(super) attributes: Vec<KeyValue>,
        #[prost(message, optional, tag = "15")]
        pub(super) status: Option<Status>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Status {
        #[prost(string, tag = "2")]
        pub(super) message: String,
        #[prost(int32, tag = "3")]
        pub(super) code: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct KeyValue {
        #[prost(string, tag = "1")]
        pub(super) key: String,
        #[prost(message, optional, tag = "2")]
        pub(super) value: Option<AnyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct AnyValue {
        #[prost(oneof = "Value", tags = "1, 2, 3")]
        pub(super) value: Option<Value>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Value {
        #[prost(string, tag = "1")]
        Text(String),
        #[prost(bool, tag = "2")]
        Truth(bool),
        #[prost(int64, tag = "3")]
        Whole(i64),
    }
}

/// A span as it arrived; ids in hexadecimal digits, attributes as text.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(crate) failed: bool,
    pub(crate) attributes: BTreeMap<String, String>,
    /// Whose it is.
    pub(crate) resource: BTreeMap<String, String>,
    /// Headers of the request it came with, names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
}

impl Arrived {
    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// Answers 200 to everything it can read.
#[derive(Debug, Clone)]
pub(crate) struct Collector {
    pub(crate) port: u16,
    spans: Arc<Mutex<Vec<Arrived>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self::start_at(0)
    }

    pub(crate) fn start_at(port: u16) -> Self {
        Self::start_with(port, None)
    }

    /// With TLS, by a certificate of its own for `localhost`. The certificate in PEM.
    pub(crate) fn start_tls() -> (Self, String) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let pair = gwctl_certs::self_signed(&["localhost".to_owned()], now).unwrap();
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
        (Self::start_with(0, Some(Arc::new(config))), pair.certificate)
    }

    fn start_with(port: u16, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let collector = Self { port: listener.local_addr().unwrap().port(), spans: Arc::default() };
        let shared = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, tls) = (shared.clone(), tls.clone());
                std::thread::spawn(move || match tls {
                    None => shared.serve(stream),
                    Some(tls) => {
                        let session = rustls::ServerConnection::new(tls).unwrap();
                        shared.serve(rustls::StreamOwned::new(session, stream));
                    }
                });
            }
        });
        collector
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/v1/traces", self.port)
    }

    /// Everything that has arrived.
    pub(crate) fn spans(&self) -> Vec<Arrived> {
        self.spans.lock().unwrap().clone()
    }

    /// The spans of a trace, once its first one is there: those of a request are sent together.
    pub(crate) fn trace(&self, id: &str) -> Vec<Arrived> {
        wait_for(&format!("the spans of {id}"), || {
            let mut spans = self.spans();
            spans.retain(|span| span.trace == id);
            (!spans.is_empty()).then_some(spans)
        })
    }

    fn serve(&self, stream: impl Read + Write) {
        let mut reader = BufReader::new(stream);
        while let Some((first, headers, body)) = read(&mut reader) {
            assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
            assert_eq!(headers["content-type"], "application/x-protobuf");
            let request: proto::ExportTraceServiceRequest = prost::Message::decode(body.as_slice()).unwrap();
            self.take(request, &headers);
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    }

    fn take(&self, request: proto::ExportTraceServiceRequest, headers: &BTreeMap<String, String>) {
        let mut arrived = self.spans.lock().unwrap();
        for of_resource in request.resource_spans {
            let resource = attributes(of_resource.resource.unwrap().attributes);
            for span in of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                arrived.push(Arrived {
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    name: span.name,
                    kind: span.kind,
                    started: span.start_time_unix_nano,
                    ended: span.end_time_unix_nano,
                    failed: span.status.is_some_and(|status| status.code == 2 && !status.message.is_empty()),
                    attributes: attributes(span.attributes),
                    resource: resource.clone(),
                    headers: headers.clone(),
                });
            }
        }
    }
}

fn attributes(pairs: Vec<proto::KeyValue>) -> BTreeMap<String, String> {
    let text = |value: Option<proto::AnyValue>| match value.unwrap().value.unwrap() {
        proto::Value::Text(text) => text,
        proto::Value::Truth(truth) => truth.to_string(),
        proto::Value::Whole(whole) => whole.to_string(),
    };
    pairs.into_iter().map(|pair| (pair.key, text(pair.value))).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// First line, headers and body of a request; None at the end of the connection.
pub(crate) fn read(reader: &mut impl BufRead) -> Option<(String, BTreeMap<String, String>, Vec<u8>)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, headers, body))
}
