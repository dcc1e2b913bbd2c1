//! Routes of what is passed on as bytes: TCP, TLS that ends here, TLS that is passed through, UDP.
//!
//! They are few, so they are tried one by one in their order. In the flavors with expressions that is the priority that
//! Kong computes of a route's fields; in `traditional` it is the number of kinds of fields, then whether an address is
//! named with its port, then age. A route takes only connections of its protocols, whatever the flavor: `tcp` those in
//! plain, `tls` and `tls_passthrough` those that begin with a TLS handshake, `udp` datagrams.
//!
//! Source: Kong 3.9.1 `kong/router/transform.lua`, `stream_get_priority`; `kong/router/traditional.lua`.

use crate::compile::Problems;
use crate::conditions::Target;
use crate::expression::{Network, Program};
use crate::expressions::expressed_priority;
use crate::path::RequestPath;
use crate::priority::stream_priority;
use crate::problem::{Flavor, RouteProblem};
use crate::request::{NoHeaders, Request};
use crate::router::{FiledRoute, RouteEntry};
use crate::transform;
use gwctl_entities::view::{Endpoint, Route, Service};
use imbl::{HashMap, OrdMap};
use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use uuid::Uuid;

/// What a client of a stream speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamProtocol {
    /// Bytes over TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// Datagrams.
    Udp,
}

impl StreamProtocol {
    /// As expressions name it.
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Udp => "udp",
        }
    }
}

/// What the router asks of a connection, or of a client that sends datagrams.
#[derive(Debug, Clone, Copy)]
pub struct StreamRequest<'q> {
    /// What the client speaks.
    pub protocol: StreamProtocol,
    /// The server name it asks for.
    pub sni: Option<&'q str>,
    /// Address and port of the client.
    pub source: SocketAddr,
    /// Address and port that the client reached.
    pub destination: SocketAddr,
}

/// The route of a connection.
#[derive(Debug, Clone, Copy)]
pub struct StreamMatch<'r> {
    /// The route.
    pub route: &'r Arc<Route>,
    /// Its service; None: there is nowhere to go.
    pub service: Option<&'r Arc<Service>>,
    pub(crate) leads_to: Option<&'r Arc<str>>,
}

/// The compiled routes of streams.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams {
    places: HashMap<Arc<str>, Place>,
    sorted: OrdMap<Place, Arc<StreamRoute>>,
}

/// Where a route stands; the smaller is tried first: rank, age, id.
type Place = (Reverse<(u64, u128)>, i64, Arc<str>);

#[derive(Debug)]
struct StreamRoute {
    filed: FiledRoute,
    plain: bool,
    tls: bool,
    udp: bool,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    Expression(Program),
    Fields(Fields),
}

/// A route in `traditional`; an empty list asks nothing.
#[derive(Debug)]
struct Fields {
    /// Those in use, as a set: routes with the same are chosen from together.
    kinds: u8,
    snis: Vec<Box<str>>,
    sources: Vec<Side>,
    destinations: Vec<Side>,
}

/// One end of a connection.
#[derive(Debug)]
struct Side {
    address: Address,
    port: Option<u16>,
}

#[derive(Debug)]
enum Address {
    Any,
    One(IpAddr),
    In(Network),
}

impl Side {
    fn parse(endpoint: &Endpoint) -> Result<Side, String> {
        let address = match endpoint.ip.as_deref() {
            None => Address::Any,
            Some(text) if text.contains('/') => Address::In(Network::covering(text)?),
            Some(text) => Address::One(text.parse().map_err(|_| format!("`{text}` is no IP address"))?),
        };
        Ok(Side { address, port: endpoint.port })
    }

    fn fits(&self, end: SocketAddr) -> bool {
        self.port.is_none_or(|port| port == end.port())
            && match self.address {
                Address::Any => true,
                Address::One(address) => address == end.ip(),
                Address::In(network) => network.contains(end.ip()),
            }
    }

    /// Whether it names the address or the port itself.
    fn names(&self, end: SocketAddr) -> bool {
        self.port == Some(end.port()) || matches!(self.address, Address::One(address) if address == end.ip())
    }

    fn is_full(&self) -> bool {
        self.port.is_some() && !matches!(self.address, Address::Any)
    }
}

impl Fields {
    fn new(route: &Route, problems: &mut Problems) -> Fields {
        let mut sides = |field: &str, endpoints: &[Endpoint]| {
            let read = |(index, endpoint)| problems.keep(&format!("{field}[{index}]"), Side::parse(endpoint));
            endpoints.iter().enumerate().filter_map(read).collect()
        };
        let (sources, destinations) = (sides("sources", &route.sources), sides("destinations", &route.destinations));
        let dotless = |sni: &String| sni.strip_suffix('.').filter(|name| !name.is_empty()).unwrap_or(sni).into();
        let uses = [!route.snis.is_empty(), !route.sources.is_empty(), !route.destinations.is_empty()];
        let kinds = uses.iter().fold(0, |kinds, used| kinds << 1 | u8::from(*used));
        if kinds == 0 {
            problems.add("snis", "must not be empty when sources and destinations are".to_owned());
        }
        Fields { kinds, snis: route.snis.iter().map(dotless).collect(), sources, destinations }
    }

    fn rank(&self) -> (u64, u128) {
        let full = self.sources.iter().chain(&self.destinations).any(Side::is_full);
        (u64::from(self.kinds.count_ones()) << 8 | u64::from(self.kinds), u128::from(full))
    }

    fn fits(&self, asked: &StreamRequest<'_>) -> bool {
        let fits = |sides: &[Side], end| sides.is_empty() || sides.iter().any(|side| side.fits(end));
        (self.snis.is_empty() || self.snis.iter().any(|sni| Some(&**sni) == asked.sni))
            && fits(&self.sources, asked.source)
            && fits(&self.destinations, asked.destination)
    }

    /// Whether it names what the connection is, rather than a network around it.
    fn names(&self, asked: &StreamRequest<'_>) -> bool {
        !self.snis.is_empty()
            || self.sources.iter().any(|side| side.names(asked.source))
            || self.destinations.iter().any(|side| side.names(asked.destination))
    }
}

impl StreamRoute {
    fn new(entry: &RouteEntry, flavor: Flavor) -> Result<(Self, Place), Vec<RouteProblem>> {
        let route = &*entry.route;
        let mut problems = Problems::of(&entry.route);
        let id = problems.keep("id", Uuid::parse_str(&route.id).map_err(|_| "is no UUID".to_owned()));
        let id = id.unwrap_or_default().as_u128();
        if route.expression.is_some() && flavor != Flavor::Expressions {
            problems.add("expression", "needs router flavor 'expressions'".to_owned());
        }
        let (rank, age, rule) = if flavor == Flavor::Traditional {
            let fields = Fields::new(route, &mut problems);
            (fields.rank(), route.created_at.unwrap_or(i64::MAX), Some(Rule::Fields(fields)))
        } else {
            let (text, order) = match &route.expression {
                Some(text) => (transform::amended(text).into_owned(), expressed_priority(route)),
                None => (transform::of_fields(route, &[]), stream_priority(route)),
            };
            let field = if route.expression.is_some() { "expression" } else { "sources" };
            let program = Program::compile(&text, &route.protocols)
                .map_err(|fault| format!("amounts to no valid expression: {}", fault.trim_start()));
            ((order, id), 0, problems.keep(field, program).map(Rule::Expression))
        };
        let has = |names: &[&str]| route.protocols.iter().any(|protocol| names.contains(&protocol.as_str()));
        match rule {
            Some(rule) if problems.list.is_empty() => Ok((
                StreamRoute {
                    filed: FiledRoute::of(entry),
                    plain: has(&["tcp"]),
                    tls: has(&["tls", "tls_passthrough"]),
                    udp: has(&["udp"]),
                    rule,
                },
                (Reverse(rank), age, route.id.clone()),
            )),
            _ => Err(problems.list),
        }
    }
}

impl Streams {
    /// Compiles a route and puts it in the place of the one with its id, which is gone even if it cannot be compiled.
    pub(crate) fn put(&mut self, entry: &RouteEntry, flavor: Flavor) -> Result<(), Vec<RouteProblem>> {
        self.remove(&entry.route.id);
        let (route, place) = StreamRoute::new(entry, flavor)?;
        self.places.insert(entry.route.id.clone(), place.clone());
        self.sorted.insert(place, Arc::new(route));
        Ok(())
    }

    /// Takes a route out, if it is there.
    pub(crate) fn remove(&mut self, id: &str) {
        if let Some(place) = self.places.remove(id) {
            self.sorted.remove(&place);
        }
    }

    /// The number of routes.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The route of a connection.
    pub(crate) fn find(&self, asked: &StreamRequest<'_>) -> Option<StreamMatch<'_>> {
        let path = RequestPath::normalise(b"/");
        let request = Request {
            https: asked.protocol == StreamProtocol::Tls,
            // Streams have none; expressions find their protocol here.
            method: asked.protocol.name(),
            host: "",
            port: asked.destination.port(),
            path: &path,
            headers: &NoHeaders,
            sni: asked.sni,
            source: Some(asked.source),
            destination_ip: Some(asked.destination.ip()),
        };
        let target = Target::of(&request);
        // The first route that fits without naming anything, and the kinds of fields it uses.
        let mut vague: Option<(&StreamRoute, u8)> = None;
        for route in self.sorted.values().map(|route| &**route) {
            let takes = match asked.protocol {
                StreamProtocol::Tcp => route.plain,
                StreamProtocol::Tls => route.tls,
                StreamProtocol::Udp => route.udp,
            };
            if !takes {
                continue;
            }
            match &route.rule {
                Rule::Expression(program) if program.holds(&request, target) => return Some(matched(route)),
                Rule::Expression(_) => {}
                Rule::Fields(fields) => {
                    if let Some((first, _)) = vague.filter(|(_, kinds)| *kinds != fields.kinds) {
                        return Some(matched(first));
                    }
                    if fields.fits(asked) {
                        if fields.names(asked) {
                            return Some(matched(route));
                        }
                        vague = vague.or(Some((route, fields.kinds)));
                    }
                }
            }
        }
        vague.map(|(route, _)| matched(route))
    }
}

fn matched(route: &StreamRoute) -> StreamMatch<'_> {
    StreamMatch { route: &route.filed.route, service: None, leads_to: route.filed.service.as_ref() }
}

#[cfg(test)]
mod tests;
