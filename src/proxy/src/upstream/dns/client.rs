//! Asking name servers.

use crate::options::{DnsOptions, DnsOrder};
use crate::upstream::dns::hosts::Hosts;
use crate::upstream::dns::{Answer, Endpoint, Kind, NameError};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, NameServerConfigGroup, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::name_server::TokioConnectionProvider;
use hickory_resolver::proto::ProtoErrorKind;
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{RData, RecordType};
use hickory_resolver::proto::xfer::Protocol;
use hickory_resolver::{Name, ResolveError};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The hosts file does not run out.
const FOR_LONG: Duration = Duration::from_secs(86_400);
/// Aliases of aliases that are followed.
const MOST_ALIASES: usize = 8;
/// Port of name servers.
const PORT: u16 = 53;

/// See the module. Belongs to the thread that made it.
pub(crate) struct Client {
    resolver: TokioResolver,
    hosts: Arc<Hosts>,
    order: Vec<DnsOrder>,
    valid_ttl: Option<Duration>,
}

/// Records of one type and how long they may be used.
type Records = (Vec<RData>, Duration);

impl Client {
    pub(crate) fn new(options: &DnsOptions, hosts: Arc<Hosts>) -> Client {
        // Search domains and options come from the system also when the servers do not.
        let (system, mut opts) = hickory_resolver::system_conf::read_system_conf().unwrap_or_else(|error| {
            tracing::warn!(%error, "/etc/resolv.conf not read");
            (ResolverConfig::new(), ResolverOpts::default())
        });
        opts.use_hosts_file = ResolveHosts::Never;
        opts.cache_size = 0;
        let chosen = servers(options.servers.iter().copied());
        let own = NameServerConfigGroup::from(system.name_servers().to_vec());
        let servers = if !chosen.is_empty() {
            chosen
        } else if !own.is_empty() {
            own
        } else {
            servers([SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))])
        };
        let config = ResolverConfig::from_parts(system.domain().cloned(), system.search().to_vec(), servers);
        let builder = TokioResolver::builder_with_config(config, TokioConnectionProvider::default());
        let resolver = builder.with_options(opts).build();
        Client { resolver, hosts, order: options.order.clone(), valid_ttl: options.valid_ttl }
    }

    /// Asks for the types of `dns_order`, `last` first: the type that answered before.
    pub(crate) async fn ask(&self, name: &str, last: Option<Kind>) -> Result<(Answer, Duration), NameError> {
        let v4_first = self.order.iter().find(|kind| **kind != DnsOrder::Srv) != Some(&DnsOrder::Aaaa);
        if let Some(found) = self.hosts.find(name, v4_first) {
            return Ok((of_addresses(found), FOR_LONG));
        }
        let last = last.map(DnsOrder::from).filter(|last| self.order.contains(last));
        let others = self.order.iter().copied().filter(|kind| Some(*kind) != last);
        let mut fault = NameError::NotFound;
        for kind in last.into_iter().chain(others) {
            let answer = match kind {
                DnsOrder::Srv => self.services(name).await,
                DnsOrder::A => self.addresses(name, RecordType::A).await,
                DnsOrder::Aaaa => self.addresses(name, RecordType::AAAA).await,
            };
            match answer {
                Ok((answer, _)) if answer.endpoints.is_empty() => {}
                Ok(found) => return Ok(self.lasting(found)),
                Err(Silence::Negative(error)) => fault = error,
                Err(Silence::NoAnswer(error)) => return Err(NameError::Failed(error)),
            }
        }
        // Most names have an address or do not exist: nobody else pays for this.
        if fault == NameError::Empty && self.order.contains(&DnsOrder::Srv) {
            match self.services_of_alias(name).await {
                Ok((answer, _)) if answer.endpoints.is_empty() => {}
                Ok(found) => return Ok(self.lasting(found)),
                Err(Silence::Negative(_)) => {}
                Err(Silence::NoAnswer(error)) => return Err(NameError::Failed(error)),
            }
        }
        Err(fault)
    }

    /// For as long as the settings say.
    fn lasting(&self, (mut answer, ttl): (Answer, Duration)) -> (Answer, Duration) {
        let ttl = self.valid_ttl.unwrap_or(ttl);
        answer.each_time = ttl.is_zero();
        (answer, ttl)
    }

    /// Services of the name that this one is an alias of: where a server sends alias and services in one answer the library
    /// looks for services of their hosts.
    async fn services_of_alias(&self, name: &str) -> Result<(Answer, Duration), Silence> {
        let (mut name, mut lifetime) = (name.to_owned(), FOR_LONG);
        for _ in 0..MOST_ALIASES {
            let (records, ttl) = self.records(&name, RecordType::CNAME).await?;
            let Some(alias) = records.into_iter().find_map(|data| data.into_cname().ok()) else { break };
            (name, lifetime) = (alias.to_utf8(), lifetime.min(ttl));
            match self.services(&name).await {
                Ok((answer, ttl)) => return Ok((answer, ttl.min(lifetime))),
                Err(Silence::Negative(_)) => {}
                Err(silence) => return Err(silence),
            }
        }
        Err(Silence::Negative(NameError::Empty))
    }

    async fn addresses(&self, name: &str, kind: RecordType) -> Result<(Answer, Duration), Silence> {
        let (records, ttl) = self.records(name, kind).await?;
        let address = |data: RData| match data {
            RData::A(address) => Some(IpAddr::V4(address.0)),
            RData::AAAA(address) => Some(IpAddr::V6(address.0)),
            _ => None,
        };
        Ok((of_addresses(records.into_iter().filter_map(address).collect()), ttl))
    }

    /// The services of the best priority, each with the addresses of its host, among which its weight is divided.
    async fn services(&self, name: &str) -> Result<(Answer, Duration), Silence> {
        let (records, mut ttl) = self.records(name, RecordType::SRV).await?;
        let services: Vec<SRV> = records.into_iter().filter_map(|data| data.into_srv().ok()).collect();
        let best = services.iter().map(SRV::priority).min();
        let mut endpoints = Vec::new();
        for service in services.iter().filter(|service| Some(service.priority()) == best) {
            let host: Arc<str> = service.target().to_utf8().trim_end_matches('.').into();
            let found = match self.addresses(&service.target().to_utf8(), RecordType::A).await {
                Ok(found) if !found.0.endpoints.is_empty() => Ok(found),
                Err(Silence::NoAnswer(error)) => Err(Silence::NoAnswer(error)),
                _ => self.addresses(&service.target().to_utf8(), RecordType::AAAA).await,
            };
            let (addresses, lifetime) = match found {
                Ok(found) => found,
                Err(Silence::Negative(_)) => continue,
                Err(silence) => return Err(silence),
            };
            ttl = ttl.min(lifetime);
            let count = addresses.endpoints.len().max(1) as u32;
            endpoints.extend(addresses.endpoints.iter().map(|address| Endpoint {
                ip: address.ip,
                port: Some(service.port()).filter(|port| *port != 0),
                // A weight of 0 is to be asked least, not never.
                weight: Some((u32::from(service.weight()) / count).max(1)),
                name: Some(host.clone()),
            }));
        }
        endpoints.sort();
        Ok((Answer { kind: Kind::Srv, endpoints: endpoints.into(), each_time: false }, ttl))
    }

    async fn records(&self, name: &str, kind: RecordType) -> Result<Records, Silence> {
        let name = Name::from_utf8(name).map_err(|error| Silence::Negative(NameError::Failed(error.to_string())))?;
        let lookup = self.resolver.lookup(name, kind).await.map_err(|error| Silence::from(&error))?;
        // Aliases on the way have lifetimes, too.
        let ttl = lookup.record_iter().map(|record| record.ttl()).min().unwrap_or(0);
        let records = lookup.record_iter().filter(|record| record.record_type() == kind);
        Ok((records.map(|record| record.data().clone()).collect(), Duration::from_secs(ttl.into())))
    }
}

impl From<Kind> for DnsOrder {
    fn from(kind: Kind) -> DnsOrder {
        match kind {
            Kind::A => Self::A,
            Kind::Aaaa => Self::Aaaa,
            Kind::Srv => Self::Srv,
        }
    }
}

/// Why there are no records.
enum Silence {
    /// A server says so; another type may be there.
    Negative(NameError),
    /// No server answers, so that none needs to be asked again now.
    NoAnswer(String),
}

impl From<&ResolveError> for Silence {
    fn from(error: &ResolveError) -> Silence {
        match error.proto().map(|error| error.kind()) {
            Some(ProtoErrorKind::NoRecordsFound { response_code, .. }) => Self::Negative(match response_code {
                ResponseCode::NXDomain => NameError::NotFound,
                ResponseCode::NoError => NameError::Empty,
                other => NameError::Failed(format!("dns server error: {} {other}", u16::from(*other))),
            }),
            _ => Self::NoAnswer(error.to_string()),
        }
    }
}

fn servers(addresses: impl IntoIterator<Item = SocketAddr>) -> NameServerConfigGroup {
    let both = |address| [Protocol::Udp, Protocol::Tcp].map(|protocol| NameServerConfig::new(address, protocol));
    NameServerConfigGroup::from(addresses.into_iter().flat_map(both).collect::<Vec<_>>())
}

fn of_addresses(mut addresses: Vec<IpAddr>) -> Answer {
    addresses.sort_unstable();
    addresses.dedup();
    let kind = if addresses.iter().all(IpAddr::is_ipv4) { Kind::A } else { Kind::Aaaa };
    let endpoint = |ip| Endpoint { ip, port: None, weight: None, name: None };
    Answer { kind, endpoints: addresses.into_iter().map(endpoint).collect(), each_time: false }
}
