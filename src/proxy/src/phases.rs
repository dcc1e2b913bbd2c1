//! A request through its phases.

use crate::arrival::Arrival;
use crate::body::Reply;
use crate::buffering::buffer_body;
use crate::clock;
use crate::flight::{Flight, crashed};
use crate::forward::wants_websocket;
use crate::plans::Plan;
use crate::respond::failure_exit;
use crate::stream::{Entered, Limits, OpenStreams};
use crate::upgrade::Tunnel;
use crate::upstream::send::{Answered, Choice, Failure, Outgoing, send};
use crate::upstream::target::Target;
use gwctl_http1::names::{
    CONNECTION, CONTENT_TYPE, GRPC_MESSAGE, GRPC_STATUS, HOST, LOCATION, UPGRADE, X_FORWARDED_PROTO,
};
use gwctl_http1::{Headers, Value};
use gwctl_plugins::{Body, Context, Exit, Phases, Scheme, Source, Stage, Upstream};
use gwctl_router::{Gate, HeaderLookup, Match, Request as Asked, RequestPath};
use http::header::HeaderValue;
use http::{StatusCode, Version};
use std::net::SocketAddr;
use std::sync::Arc;

/// Most that is read of a body for a plugin that needs it whole, when the node has no limit of its own.
const BUFFER_LIMIT: u64 = 64 * 1024 * 1024;

/// Answers a request. Never fails: what goes wrong is an answer, too.
pub(crate) async fn serve(arrival: Arrival) -> Reply {
    let Arrival { mut flight, refused, upgrades } = arrival;
    if let Some(exit) = refused {
        return flight.answer(*exit, Source::Error);
    }
    let rewritten = flight.run.rewrite(&mut flight.context).await;
    if flight.run.has(Phases::REWRITE) {
        clock::turn();
    }
    match rewritten {
        Ok(None) => {}
        Ok(Some(exit)) => return flight.answer(*exit, Source::Exit),
        Err(_) => return flight.answer(crashed(), Source::Error),
    }
    let searching = flight.context.enter(|| Stage::Router);
    let routed = route(&mut flight);
    flight.context.leave(searching);
    let prefix = match routed {
        Ok(prefix) => prefix,
        Err(exit) => return flight.answer(*exit, Source::Exit),
    };
    let reads = flight.run.chain().needs().request_body;
    if reads && let Err(failure) = Box::pin(read_body(&mut flight)).await {
        return flight.answer(failure_exit(&failure), Source::Error);
    }
    let accessed = flight.run.access(&mut flight.context).await;
    if flight.run.has(Phases::ACCESS) {
        clock::turn();
    }
    match accessed {
        Ok(None) => {}
        Ok(Some(exit)) => return flight.answer(*exit, Source::Exit),
        Err(_) => return flight.answer(crashed(), Source::Error),
    }
    let comes = matches!(flight.context.request.body, Body::Stream(_));
    if comes && let Err(failure) = Box::pin(buffer_body(&mut flight)).await {
        return flight.answer(failure_exit(&failure), Source::Error);
    }
    match proxy(&mut flight, prefix).await {
        Ok(mut answered) => {
            if answered.head.status != StatusCode::SWITCHING_PROTOCOLS {
                return flight.pass_on(answered);
            }
            let Some((stream, read)) = answered.connection.pass().filter(|_| upgrades) else {
                return flight.answer(failure_exit(&Failure::Invalid), Source::Error);
            };
            let limits = flight
                .context
                .upstream
                .as_ref()
                .map_or(Limits::NONE, |upstream| Limits { read: upstream.read_timeout, write: upstream.write_timeout });
            let tunnel = Tunnel { stream, read, lease: answered.lease.take(), limits, entered: entered(&flight) };
            let mut response = flight.pass_on(answered);
            // A plugin may have put another answer in its place.
            if response.status == StatusCode::SWITCHING_PROTOCOLS {
                response.body.set_tunnel(tunnel);
            }
            response
        }
        Err(failure) => {
            let source =
                if matches!(failure, Failure::NoPeer | Failure::NoService) { Source::Exit } else { Source::Error };
            flight.answer(failure_exit(&failure), source)
        }
    }
}

/// Makes an upgraded connection known, so that a stop waits for it.
fn entered(flight: &Flight) -> Entered {
    let client = SocketAddr::new(flight.context.client.ip, flight.context.client.port);
    let entered = OpenStreams::enter(&flight.worker.streams, client, None);
    if let Some(route) = &flight.context.route {
        entered.found(route.clone());
    }
    entered
}

/// Finds the route and prepares the way to its service. Gives the part of the path that was taken off.
fn route(flight: &mut Flight) -> Result<Option<String>, Box<Exit>> {
    let Flight { snapshot, context, run, plan, .. } = flight;
    let path = RequestPath::normalise(context.request.uri.as_str().as_bytes());
    let host = context.request.header(HOST).unwrap_or(&context.request.host);
    let asked = Asked {
        https: context.request.scheme == Scheme::Https,
        method: context.request.method.as_str(),
        host,
        port: context.request.port,
        path: &path,
        headers: &Asking(&context.request.headers),
        sni: context.client.server_name.as_deref(),
        source: Some(SocketAddr::new(context.client.ip, context.client.port)),
        destination_ip: None,
    };
    let not_found = || Box::new(Exit::page(StatusCode::NOT_FOUND, "no Route matched with those values"));
    let found = snapshot.router.find(&asked).ok_or_else(not_found)?;
    let service = found.service.map(|service| &*service.id);
    let chain = snapshot.chains.of_route(&found.route.id, service);
    *plan = service.and_then(|id| snapshot.plans.of(id)).cloned();
    let upstream = plan.as_ref().and_then(|plan| way(&found, plan));
    let prefix = found.forwarded_prefix().map(str::to_owned);
    let gate = gate(&found, context);
    let hashed = upstream.as_ref().is_some_and(|upstream| snapshot.hashes_captures(&upstream.host));
    let mut captures = Vec::new();
    if chain.needs().captures || hashed {
        let groups = found.uri_captures().unwrap_or_default();
        let numbered = groups.numbered.into_iter().skip(1).map(|text| (None, text.unwrap_or_default()));
        let named = groups.named.into_iter().map(|(name, text)| (Some(name), text));
        captures.extend(numbered.chain(named));
    }
    let (route, service) = (found.route.clone(), found.service.cloned());
    drop(found);
    drop(path);
    context.captures = captures;
    context.route = Some(route);
    context.service = service;
    context.upstream = upstream;
    run.route(chain);
    gate.map_or(Ok(prefix), |exit| Err(Box::new(exit)))
}

/// Where a matched request goes.
fn way(found: &Match<'_, '_>, plan: &Plan) -> Option<Upstream> {
    let service = found.service?;
    Some(Upstream {
        scheme: plan.scheme,
        host: plan.host.clone(),
        port: service.port,
        path: found.upstream_path(),
        query: None,
        host_header: found.preserved_host().and_then(|host| HeaderValue::from_str(host).ok()),
        retries: service.retries,
        connect_timeout: plan.connect_timeout,
        write_timeout: plan.write_timeout,
        read_timeout: plan.read_timeout,
    })
}

/// The answer to a request whose protocol the route does not take.
fn gate(found: &Match<'_, '_>, context: &Context) -> Option<Exit> {
    let request = &context.request;
    let forwarded = if context.client.trusted { request.header(X_FORWARDED_PROTO) } else { None };
    let https = forwarded.map_or(request.scheme == Scheme::Https, |proto| proto.eq_ignore_ascii_case("https"));
    let content_type = request.headers.get(CONTENT_TYPE).map(Value::as_bytes);
    let upgrade = |message, to| {
        Exit::json(StatusCode::UPGRADE_REQUIRED, &serde_json::json!({ "message": message }))
            .with_header(CONNECTION, Value::from_static("Upgrade"))
            .with_header(UPGRADE, Value::from_static(to))
    };
    match found.gate(https, request.version == Version::HTTP_2, content_type) {
        Gate::Pass => None,
        Gate::UseHttps { status: 426 } => Some(upgrade("Please use HTTPS protocol", "TLS/1.2, HTTP/1.1")),
        Gate::UseHttps { status } => Some(redirect(status, &request.host, request.uri.as_str())),
        Gate::UseHttp2 => Some(upgrade("Please use HTTP2 protocol", "HTTP/2")),
        Gate::NotGrpc => Some(Exit::json(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            &serde_json::json!({ "message": "Non-gRPC request matched gRPC route" }),
        )),
        Gate::UseGrpcs => {
            let mut exit = Exit::bytes(StatusCode::OK, "application/grpc", "");
            exit.headers.insert(GRPC_STATUS, Value::from_static("1"));
            exit.headers.insert(GRPC_MESSAGE, Value::from_static("gRPC request matched gRPCs route"));
            Some(exit)
        }
    }
}

fn redirect(status: u16, host: &str, target: &str) -> Exit {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::MOVED_PERMANENTLY);
    let title = format!("{} {}", status.as_u16(), status.canonical_reason().unwrap_or_default());
    let page = format!(
        "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n</body>\r\n</html>\r\n"
    );
    // nginx makes the pages of 301 and 302 itself, Kong those of the others.
    let kind = if matches!(status.as_u16(), 301 | 302) { "text/html" } else { "text/html; charset=UTF-8" };
    let mut exit = Exit::bytes(status, kind, page);
    if let Some(location) = Value::new(Match::https_location(host, target).as_bytes()) {
        exit.headers.insert(LOCATION, location);
    }
    exit
}

/// Reads the body whole, for a plugin of the chain.
async fn read_body(flight: &mut Flight) -> Result<(), Failure> {
    let limit = match flight.worker.options.client_max_body_size {
        0 => BUFFER_LIMIT,
        limit => limit,
    };
    let pause = flight.worker.options.client_timeout;
    let read = flight.read.clone().unwrap_or_default();
    let mut reading = std::pin::pin!(flight.context.request.body.read(limit));
    loop {
        let before = read.get();
        match tokio::time::timeout(pause, &mut reading).await {
            Ok(body) => return body.map(|_| ()).map_err(Failure::Client),
            Err(_) if read.get() > before => {}
            Err(_) => return Err(Failure::ClientTimedOut),
        }
    }
}

async fn proxy(flight: &mut Flight, prefix: Option<String>) -> Result<Box<Answered>, Failure> {
    let Flight { worker, snapshot, context, plan, .. } = flight;
    let Some(upstream) = &context.upstream else { return Err(Failure::NoService) };
    let protocol = context.service.as_ref().map(|service| service.protocol.as_str());
    let http2 = matches!(protocol, Some("grpc" | "grpcs"));
    if !Target::of(upstream, &context.request).is_sendable(http2) {
        return Err(Failure::Malformed("path"));
    }
    let balancer = snapshot.balancers.get(&upstream.host).map(Arc::as_ref);
    let mut choice = balancer.map(|balancer| Choice { balancer, key: balancer.key(context, || worker.ids.uuid()) });
    let outgoing = Outgoing {
        http2,
        plan: plan.as_deref(),
        prefix,
        upstream_host: balancer.and_then(|balancer| balancer.host_header.as_deref()),
    };
    send(worker, &mut choice, context, &outgoing, flight.run.has(Phases::LOG)).await
}

/// Whether the request asks for an upgrade that can be passed on.
pub(crate) fn upgrades(version: Version, headers: &Headers) -> bool {
    version == Version::HTTP_11 && wants_websocket(headers)
}

struct Asking<'a>(&'a Headers);

impl HeaderLookup for Asking<'_> {
    fn any_value(&self, name: &str, accept: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.0.get_all(name).any(|value| accept(value.as_bytes()))
    }
}
