//! Names of upstream hosts to addresses: the hosts file, then name servers; one cache for each thread.
//!
//! An answer is used for its lifetime. After that it goes on being used for `stale_ttl` while a new one is asked for
//! beside the request; names that do not exist and failures are remembered for times of their own.

pub(crate) mod client;
pub(crate) mod hosts;

use crate::options::ProxyOptions;
use client::Client;
use hosts::Hosts;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Type of the records that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    A,
    Aaaa,
    Srv,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Srv => "SRV",
        }
    }
}

/// One address of a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) ip: IpAddr,
    /// Of the service; None: whatever was asked for.
    pub(crate) port: Option<u16>,
    /// Of the service.
    pub(crate) weight: Option<u32>,
    /// Host of the service.
    pub(crate) name: Option<Arc<str>>,
}

/// What a name stands for; at least one address, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    pub(crate) endpoints: Arc<[Endpoint]>,
    /// It has no lifetime: it is good for one request.
    pub(crate) each_time: bool,
}

/// Why a name stands for nothing. The first two are worded as Kong words them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error("dns server error: 3 name error")]
    NotFound,
    #[error("dns client error: 101 empty record received")]
    Empty,
    #[error("{0}")]
    Failed(String),
}

/// What is known of a name.
pub(crate) type Found = Result<Answer, NameError>;

struct Known {
    found: Found,
    /// It is asked for again after this.
    until: Instant,
    /// An answer is not used after this.
    end: Instant,
}

#[derive(Default)]
struct Entry {
    known: RefCell<Option<Known>>,
    /// One question at a time.
    asking: Mutex<()>,
    refreshing: Cell<bool>,
    turn: Cell<usize>,
}

/// See the module.
pub(crate) struct Resolver {
    options: Arc<ProxyOptions>,
    hosts: Arc<Hosts>,
    /// Made on the thread that uses it.
    client: OnceCell<Client>,
    names: RefCell<HashMap<Box<str>, Rc<Entry>>>,
}

impl Resolver {
    pub(crate) fn new(options: Arc<ProxyOptions>, hosts: Arc<Hosts>) -> Rc<Resolver> {
        Rc::new(Resolver { options, hosts, client: OnceCell::new(), names: RefCell::default() })
    }

    /// An address of the host, the next one each time; None when the name cannot be resolved. The port is that of the
    /// service where the name is one, else the one given.
    pub(crate) async fn resolve(self: &Rc<Self>, host: &str, port: u16) -> Option<SocketAddr> {
        if let Ok(address) = host.parse() {
            return Some(SocketAddr::new(address, port));
        }
        let entry = self.entry(host);
        let answer = match self.find(host, &entry).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(host, %error, "name resolution failed");
                return None;
            }
        };
        entry.turn.set(entry.turn.get().wrapping_add(1));
        let endpoint = answer.endpoints.get(entry.turn.get() % answer.endpoints.len().max(1))?;
        Some(SocketAddr::new(endpoint.ip, endpoint.port.unwrap_or(port)))
    }

    /// Asks anew and gives what is known then, and when to ask again.
    pub(crate) async fn renew(&self, host: &str) -> (Found, Instant) {
        let entry = self.entry(host);
        let _turn = entry.asking.lock().await;
        self.ask(host, &entry).await;
        let known = entry.known.borrow();
        known.as_ref().map_or((Err(NameError::NotFound), Instant::now()), |known| (known.found.clone(), known.until))
    }

    async fn find(self: &Rc<Self>, host: &str, entry: &Rc<Entry>) -> Found {
        if let Some((found, fresh)) = entry.usable() {
            if !fresh && !entry.refreshing.replace(true) {
                let (resolver, host, entry) = (self.clone(), host.to_owned(), entry.clone());
                tokio::task::spawn_local(async move {
                    resolver.ask(&host, &entry).await;
                    entry.refreshing.set(false);
                });
            }
            return found;
        }
        let _turn = entry.asking.lock().await;
        // Whoever was first may have asked for all.
        if let Some((found, _)) = entry.usable() {
            return found;
        }
        self.ask(host, entry).await;
        let known = entry.known.borrow();
        known.as_ref().map_or(Err(NameError::NotFound), |known| known.found.clone())
    }

    async fn ask(&self, host: &str, entry: &Entry) {
        let client = self.client.get_or_init(|| Client::new(&self.options.dns, self.hosts.clone()));
        let last = entry.known.borrow().as_ref().and_then(|known| Some(known.found.as_ref().ok()?.kind));
        let asked = client.ask(host, last).await;
        let now = Instant::now();
        let mut known = entry.known.borrow_mut();
        let error = match asked {
            Ok((answer, ttl)) => {
                let until = now + ttl;
                *known = Some(Known { found: Ok(answer), until, end: until + self.options.dns.stale_ttl });
                return;
            }
            Err(error) => error,
        };
        let pause = match error {
            NameError::NotFound | NameError::Empty => self.options.dns.not_found_ttl,
            NameError::Failed(_) => self.options.dns.error_ttl,
        };
        match known.as_mut().filter(|known| known.found.is_ok() && known.end > now) {
            Some(old) => {
                tracing::warn!(host, %error, "name resolution failed, the answer before is used");
                old.until = now + pause;
            }
            None => *known = Some(Known { found: Err(error), until: now + pause, end: now + pause }),
        }
    }

    fn entry(&self, host: &str) -> Rc<Entry> {
        let mut names = self.names.borrow_mut();
        if let Some(entry) = names.get(host) {
            return entry.clone();
        }
        if names.len() >= self.options.dns.cache_size.max(1) {
            names.retain(|_, entry| entry.usable().is_some());
            if names.len() >= self.options.dns.cache_size.max(1) {
                names.clear();
            }
        }
        names.entry(host.into()).or_default().clone()
    }
}

impl Entry {
    /// What may be used, and whether it is within its lifetime.
    fn usable(&self) -> Option<(Found, bool)> {
        let known = self.known.borrow();
        let (known, now) = (known.as_ref()?, Instant::now());
        let fresh = known.until > now;
        (fresh || known.found.is_ok() && known.end > now).then(|| (known.found.clone(), fresh))
    }
}
