//! The cluster listener: accepts data planes, checks their certificates and requests, and hands them to a session.
//!
//! The checks come in Kong's order: client certificate (else the connection is dropped, or answered 400 where the TLS
//! layer would have refused it), path, arguments (400) or subprotocol, WebSocket headers (else dropped).

use crate::answers::Answers;
use crate::credentials::ClusterCredentials;
use crate::fleet::{Identity, Protocol, Seat};
use crate::publisher::Publisher;
use crate::revocation::Revocation;
use crate::session::{self, Shared};
use crate::{stream_session, sync_session};
use gwctl_certs::{Answer, Peers};
use gwctl_lifecycle::{Phase, Shutdown, Task, TaskSet, spawn};
use gwctl_link::{Accepted, LinkError, accept};
use gwctl_store::unix_millis;
use gwctl_wire::stream;
use gwctl_wire::v2::SUBPROTOCOL;
use rustls_pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections served at once; further ones wait in the listener's backlog.
const CONNECTION_LIMIT: usize = 20_000;

/// Bytes of the longest version of Kong that is shown.
const LONGEST_VERSION: usize = 64;

/// Wait after a failed accept (out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct ClusterListener {
    pub(crate) socket: TcpListener,
    pub(crate) credentials: ClusterCredentials,
    /// Whether authorities are asked for revoked certificates; None: not.
    pub(crate) revocation: Option<Revocation>,
    pub(crate) shared: Arc<Shared>,
}

/// Accepts until shutdown begins; sessions end with the phase `Stop`.
pub(crate) async fn run(listener: ClusterListener, shutdown: Shutdown) {
    let places = Arc::new(Semaphore::new(CONNECTION_LIMIT));
    let mut sessions = TaskSet::new();
    let listener = Arc::new(listener);
    loop {
        let accepted = shutdown.until(Phase::StopAccepting, async {
            let place = places.clone().acquire_owned().await;
            (place, listener.socket.accept().await)
        });
        match accepted.await {
            None => break,
            Some((Ok(place), Ok((tcp, address)))) => {
                let (listener, stop) = (listener.clone(), shutdown.clone());
                sessions.add(spawn("cluster session", Phase::Stop, async move {
                    serve(&listener, tcp, address, &stop).await;
                    drop(place);
                }));
            }
            Some((_, outcome)) => {
                let error = outcome.err().map(|error| error.to_string()).unwrap_or_default();
                tracing::error!(error, "cannot accept a data plane");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    shutdown.reached(Phase::Stop).await;
    sessions.shut_down(&shutdown, Duration::from_secs(2)).await;
}

/// Whether nothing is known against the certificate; what is, or that nothing could be learnt, goes to the log.
async fn not_revoked(
    listener: &ClusterListener,
    peers: &Peers,
    chain: &[CertificateDer<'_>],
    address: SocketAddr,
) -> bool {
    match &listener.revocation {
        Some(revocation) => revocation.stands(peers, chain, address).await,
        None => true,
    }
}

/// A connection that is still being opened is dropped when the node stops; one that is open is closed by its session.
async fn serve(listener: &ClusterListener, tcp: TcpStream, address: SocketAddr, stop: &Shutdown) {
    let credentials = listener.credentials.now();
    let accepted = match stop.until(Phase::Stop, accept(tcp, &credentials.acceptor)).await {
        None => return,
        Some(Ok(accepted)) => accepted,
        Some(Err(error)) => {
            match error {
                LinkError::Tls(error) if error.to_string().contains("alert") => tracing::warn!(
                    %address,
                    %error,
                    "data plane refused the control plane's certificate: both must use the same cluster_cert, or \
                     cluster_mtls = pki with certificates of one authority"
                ),
                error => tracing::info!(%address, %error, "connection to the cluster listener failed"),
            }
            return;
        }
    };
    let chain = accepted.peer_certificates();
    let presented = (!chain.is_empty()).then_some(chain.as_slice());
    match credentials.peers.peer_allowed(presented, unix_millis() / 1000) {
        Ok(_) if !not_revoked(listener, &credentials.peers, &chain, address).await => accepted.drop_silently().await,
        Ok(facts) => admit(listener, accepted, address, u64::try_from(facts.not_after).ok(), stop).await,
        Err(refusal) => {
            tracing::warn!(%address, error = %refusal, "data plane refused");
            match refusal.answer() {
                Answer::BadRequest => {
                    accepted.refuse(400, "Bad Request", "the client certificate is not accepted\n").await;
                }
                Answer::Close => accepted.drop_silently().await,
            }
        }
    }
}

async fn admit(
    listener: &ClusterListener,
    accepted: Accepted,
    address: SocketAddr,
    expires: Option<u64>,
    stop: &Shutdown,
) {
    if let (Some(publisher), Some(key)) = (&listener.shared.publisher, offered_key(&accepted)) {
        return serve_stream(listener, publisher, accepted, &key, (address, expires), stop).await;
    }
    let request = &accepted.request;
    match (request.path.as_str(), &listener.shared.answers) {
        ("/v1/outlet", _) => {}
        ("/v2/outlet", Some(answers)) => return admit_v2(listener, answers, accepted, address, expires, stop).await,
        ("/v2/outlet", None) => {
            return accepted.refuse(404, "Not Found", "protocol v2 needs cluster_rpc = on\n").await;
        }
        _ => return accepted.refuse(404, "Not Found", "the cluster listener serves /v1/outlet and /v2/outlet\n").await,
    }
    let (Some(id), Some(version)) = (request.argument("node_id"), request.argument("node_version")) else {
        tracing::warn!(%address, "data plane refused: node_id or node_version is missing in its request");
        return accepted.refuse(400, "Bad Request", "node_id and node_version are required\n").await;
    };
    let Some(key) = request.websocket_key().map(str::to_owned) else {
        tracing::warn!(%address, "data plane refused: its request is no WebSocket upgrade");
        return accepted.drop_silently().await;
    };
    let identity = Identity {
        id: id.to_owned(),
        hostname: request.argument("node_hostname").unwrap_or_default().to_owned(),
        ip: address.ip().to_string(),
        version: version.to_owned(),
        certificate_expires_at: expires,
        protocol: Protocol::V1,
        reason: without_stream(listener),
    };
    match accepted.upgrade(&key, None).await {
        Ok(upgraded) => {
            let presence = Presence::enter(&listener.shared, &identity);
            session::serve(&listener.shared, (&identity, &presence.seat), upgraded, stop).await;
        }
        Err(error) => tracing::info!(%address, %error, "data plane lost during the upgrade"),
    }
}

/// The client's key when it offers our own sync.
fn offered_key(accepted: &Accepted) -> Option<String> {
    let offered = matches!(accepted.request.path.as_str(), "/v1/outlet" | "/v2/outlet")
        && accepted.offers((stream::HEADER, stream::GENERATION));
    accepted.request.websocket_key().filter(|_| offered).map(str::to_owned)
}

async fn serve_stream(
    listener: &ClusterListener,
    publisher: &Arc<Publisher>,
    accepted: Accepted,
    key: &str,
    (address, certificate_expires_at): (SocketAddr, Option<u64>),
    stop: &Shutdown,
) {
    match accepted.upgrade(key, Some((stream::HEADER, stream::GENERATION))).await {
        Ok(upgraded) => {
            let peer = stream_session::Peer { ip: address.ip().to_string(), certificate_expires_at };
            stream_session::serve(&listener.shared, publisher, peer, upgraded, stop).await;
        }
        Err(error) => tracing::info!(%address, %error, "data plane lost during the upgrade"),
    }
}

/// Why a node is kept up to date by one of Kong's protocols.
fn without_stream(listener: &ClusterListener) -> &'static str {
    match &listener.shared.publisher {
        None => "cluster_gwctl_sync is off on this control plane",
        Some(_) => "the data plane does not offer gwctl's own sync (a Kong node, or cluster_gwctl_sync is off on it)",
    }
}

/// Kong answers 500 to a request without any subprotocol, and closes on one it does not know.
async fn admit_v2(
    listener: &ClusterListener,
    answers: &Arc<Answers>,
    accepted: Accepted,
    address: SocketAddr,
    expires: Option<u64>,
    stop: &Shutdown,
) {
    let Some(offered) = accepted.request.header("sec-websocket-protocol") else {
        tracing::warn!(%address, "data plane refused: its request for /v2/outlet names no subprotocol");
        return accepted
            .refuse(500, "Internal Server Error", "Sec-WebSocket-Protocol: kong.meta.v1 is required\n")
            .await;
    };
    if !offered.split(',').any(|name| name.trim() == SUBPROTOCOL) {
        tracing::warn!(%address, offered, "data plane refused: it does not offer the subprotocol {SUBPROTOCOL}");
        return accepted.drop_silently().await;
    }
    let Some(key) = accepted.request.websocket_key().map(str::to_owned) else {
        tracing::warn!(%address, "data plane refused: its request is no WebSocket upgrade");
        return accepted.drop_silently().await;
    };
    match accepted.upgrade(&key, None).await {
        Ok(upgraded) => {
            let reason = without_stream(listener);
            let peer = sync_session::Peer { ip: address.ip().to_string(), certificate_expires_at: expires, reason };
            sync_session::serve(&listener.shared, answers, peer, upgraded, stop).await;
        }
        Err(error) => tracing::info!(%address, %error, "data plane lost during the upgrade"),
    }
}

/// The node's place in the fleet table while its connection is open; also when the session is cut short.
pub(crate) struct Presence<'a> {
    shared: &'a Shared,
    id: Option<String>,
    protocol: Protocol,
    pub(crate) seat: Seat,
}

impl<'a> Presence<'a> {
    /// A node without a valid id, host name or version has no row, as in Kong.
    pub(crate) fn enter(shared: &'a Shared, identity: &Identity) -> Self {
        let shown = uuid::Uuid::try_parse(&identity.id).is_ok()
            && is_hostname(&identity.hostname)
            && identity.version.starts_with(|first: char| first.is_ascii_digit())
            && identity.version.len() <= LONGEST_VERSION;
        let seat = if shown { shared.fleet.connected(identity) } else { Seat::default() };
        Self { shared, id: shown.then(|| identity.id.clone()), protocol: identity.protocol, seat }
    }
}

impl Presence<'_> {
    /// Whether the node has a row.
    pub(crate) fn is_shown(&self) -> bool {
        self.id.is_some()
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.shared.fleet.disconnected(id, self.protocol);
        }
    }
}

fn is_hostname(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':'))
}

/// Starts the listener's task.
pub(crate) fn start(
    listener: ClusterListener,
    turn: impl Future<Output = ()> + Send + 'static,
    shutdown: &Shutdown,
) -> Task {
    let shutdown = shutdown.clone();
    spawn("cluster listener", Phase::Stop, async move {
        if shutdown.until(Phase::StopAccepting, turn).await.is_some() {
            run(listener, shutdown).await;
        }
    })
}
