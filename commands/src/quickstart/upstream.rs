//! The demo upstream: answers every request with what it saw.

use crate::cli::UpstreamArgs;
use crate::failure::Failure;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::process::ExitCode;
use tokio::net::TcpListener;

pub fn run(args: &UpstreamArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start the runtime", &error))?;
    runtime.block_on(async {
        for address in &args.addresses {
            let listener = TcpListener::bind(address).await;
            let listener = listener.map_err(|error| Failure::because(format!("cannot listen on {address}"), &error))?;
            tokio::spawn(serve(listener, address.clone()));
        }
        crate::node::stdin_ended().await;
        Ok(ExitCode::SUCCESS)
    })
}

async fn serve(listener: TcpListener, address: String) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let address = address.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = echo(&request, &address);
                async move { Ok::<_, Infallible>(answer) }
            });
            // A client that goes away is no fault of the demo.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn echo(request: &Request<Incoming>, address: &str) -> Response<Full<Bytes>> {
    let headers: Map<String, Value> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned().into()))
        .collect();
    let seen = json!({
        "upstream": address,
        "method": request.method().as_str(),
        "path": request.uri().to_string(),
        "headers": headers,
    });
    let mut answer = Response::new(Full::new(Bytes::from(format!("{seen:#}\n"))));
    answer.headers_mut().insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    answer
}
