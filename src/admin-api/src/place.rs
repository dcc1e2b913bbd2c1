//! Which endpoint a path names, and which methods it has.
//!
//! Entity endpoints follow from the registry: whatever entity it holds gets its collection, its items, the parents
//! it refers to and the collections nested below it.

use crate::Face;
use gwctl_entities::{EntitySchema, NodeKind, Registry};

/// An endpoint with the variable parts of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Root,
    Status,
    StatusReady,
    StatusDns,
    Endpoints,
    Timers,
    Robots,
    EntitySchema {
        entity: String,
    },
    PluginSchema {
        name: String,
    },
    PluginConfigSchema {
        name: String,
    },
    VaultSchema {
        name: String,
    },
    FilterSchema {
        name: String,
    },
    ValidateEntity {
        entity: String,
    },
    EnabledPlugins,
    Cache,
    CacheEntry,
    Config,
    LogLevel,
    SetLogLevel {
        cluster: bool,
        level: String,
    },
    DataPlanes,
    /// `/clustering/data-planes/{}/log-level`.
    DataPlaneLogLevel {
        id: String,
    },
    ClusteringStatus,
    Fleet,
    OpenApi,
    Changes,
    Events,
    History,
    Rollback,
    /// `4`, or `4..7`.
    Versions {
        text: String,
    },
    Tokens,
    Token {
        key: String,
    },
    Tags,
    Tag {
        tag: String,
    },
    Metrics,
    ProxyCache,
    ProxyCacheEntry,
    Acme,
    AcmeCertificates,
    /// Paths that exist and answer 404 to everything (`/targets`, `/snis/{}/certificate`).
    Switched,
    /// Filter chains without WebAssembly.
    NoWasm,
    AllTargets {
        upstream: String,
    },
    UpstreamHealth {
        upstream: String,
    },
    TargetHealth {
        upstream: String,
        target: String,
        address: Option<String>,
        healthy: bool,
    },
    Collection {
        entity: String,
    },
    Item {
        entity: String,
        key: String,
    },
    /// The entity that field `field` of `entity` refers to.
    Parent {
        entity: String,
        key: String,
        field: String,
    },
    Nested {
        parent: String,
        parent_key: String,
        entity: String,
        field: String,
    },
    NestedItem {
        parent: String,
        parent_key: String,
        entity: String,
        field: String,
        key: String,
    },
}

const READ: &[&str] = &["GET", "HEAD", "OPTIONS"];
const READ_CREATE: &[&str] = &["GET", "HEAD", "OPTIONS", "POST"];
const ALL_OF_ITEM: &[&str] = &["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "PUT"];

impl Place {
    /// Methods in the order of `Allow`.
    pub(crate) fn methods(&self) -> &'static [&'static str] {
        match self {
            Self::ValidateEntity { .. } | Self::Changes | Self::Rollback => &["OPTIONS", "POST"],
            Self::Cache | Self::ProxyCache => &["DELETE", "OPTIONS"],
            Self::CacheEntry | Self::ProxyCacheEntry => &["DELETE", "GET", "HEAD", "OPTIONS"],
            Self::SetLogLevel { .. } | Self::TargetHealth { .. } => &["OPTIONS", "PUT"],
            Self::Acme => &["OPTIONS", "PATCH", "POST"],
            Self::Config | Self::Tags | Self::StatusReady | Self::Collection { .. } | Self::Nested { .. } => {
                READ_CREATE
            }
            Self::Tokens => READ_CREATE,
            Self::Token { .. } => &["DELETE", "GET", "HEAD", "OPTIONS"],
            Self::DataPlaneLogLevel { .. } => &["DELETE", "GET", "HEAD", "OPTIONS", "PUT"],
            Self::Tag { .. } => READ,
            Self::Item { .. } | Self::Parent { .. } | Self::NestedItem { .. } => ALL_OF_ITEM,
            _ => READ,
        }
    }

    /// Whether a write here changes nothing but the configuration, so that `?dry_run=1` can take it back.
    pub(crate) fn has_dry_run(&self) -> bool {
        matches!(
            self,
            Self::Collection { .. }
                | Self::Item { .. }
                | Self::Parent { .. }
                | Self::Nested { .. }
                | Self::NestedItem { .. }
                | Self::Changes
                | Self::Rollback
                | Self::Config
        )
    }
}

/// The endpoint of a path on the Admin API.
pub(crate) fn resolve(registry: &Registry, kind: NodeKind, path: &[String]) -> Option<Place> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    fixed(kind, &path).or_else(|| upstream_extra(kind, &path)).or_else(|| entity(registry, &path))
}

/// The endpoint of a path on the face given. The Status API has few, and reads of upstreams on nodes without a store.
pub(crate) fn resolve_on(face: Face, registry: &Registry, kind: NodeKind, path: &[String]) -> Option<Place> {
    if face == Face::Admin {
        return resolve(registry, kind, path);
    }
    let storeless = matches!(kind, NodeKind::DbLess | NodeKind::DataPlane);
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["status"] => Some(Place::Status),
        ["status", "ready"] => Some(Place::StatusReady),
        ["status", "dns"] => Some(Place::StatusDns),
        ["metrics"] => Some(Place::Metrics),
        ["upstreams", _, "health"] | ["upstreams", _, "targets", ..] if storeless => resolve(registry, kind, path),
        _ => None,
    }
}

fn fixed(kind: NodeKind, path: &[&str]) -> Option<Place> {
    let own = |text: &&str| (*text).to_owned();
    let control_plane = kind == NodeKind::ControlPlane;
    Some(match path {
        [] => Place::Root,
        ["status"] => Place::Status,
        ["status", "dns"] => Place::StatusDns,
        ["endpoints"] => Place::Endpoints,
        ["timers"] => Place::Timers,
        ["robots.txt"] => Place::Robots,
        ["schemas", "plugins" | "vaults" | "filters", "validate"] => Place::ValidateEntity { entity: own(&path[1]) },
        ["schemas", "plugins", name] => Place::PluginSchema { name: own(name) },
        ["schemas", "vaults", name] => Place::VaultSchema { name: own(name) },
        ["schemas", "filters", name] => Place::FilterSchema { name: own(name) },
        ["schemas", entity, "validate"] => Place::ValidateEntity { entity: own(entity) },
        ["schemas", entity] => Place::EntitySchema { entity: own(entity) },
        ["plugins", "enabled"] => Place::EnabledPlugins,
        ["plugins", "schema", name] => Place::PluginConfigSchema { name: own(name) },
        ["cache"] => Place::Cache,
        ["cache", _] => Place::CacheEntry,
        ["config"] => Place::Config,
        ["debug", "node", "log-level"] => Place::LogLevel,
        ["debug", "node", "log-level", level] => Place::SetLogLevel { cluster: false, level: own(level) },
        ["debug", "cluster", "log-level", level] if !control_plane => {
            Place::SetLogLevel { cluster: true, level: own(level) }
        }
        ["debug", "cluster", "control-planes-nodes", "log-level", level] if control_plane => {
            Place::SetLogLevel { cluster: true, level: own(level) }
        }
        ["clustering", "data-planes"] => Place::DataPlanes,
        ["clustering", "data-planes", id, "log-level"] if control_plane => Place::DataPlaneLogLevel { id: own(id) },
        ["clustering", "status"] => Place::ClusteringStatus,
        ["gwctl", "fleet" | "data-planes"] => Place::Fleet,
        ["gwctl", "openapi.json"] => Place::OpenApi,
        ["gwctl", "changes"] => Place::Changes,
        ["gwctl", "events"] => Place::Events,
        ["gwctl", "history"] => Place::History,
        ["gwctl", "rollback"] => Place::Rollback,
        ["gwctl", "versions", text] => Place::Versions { text: own(text) },
        ["gwctl", "tokens"] => Place::Tokens,
        ["gwctl", "tokens", key] => Place::Token { key: own(key) },
        ["tags"] => Place::Tags,
        ["tags", tag] => Place::Tag { tag: own(tag) },
        ["metrics"] => Place::Metrics,
        ["proxy-cache"] => Place::ProxyCache,
        ["proxy-cache", _] | ["proxy-cache", _, "caches", _] => Place::ProxyCacheEntry,
        ["acme"] => Place::Acme,
        ["acme", "certificates"] | ["acme", "certificates", _] => Place::AcmeCertificates,
        ["targets"] | ["targets", _] | ["targets", _, "upstream"] | ["snis", _, "certificate"] => Place::Switched,
        ["filter-chains"] | ["filter-chains", _] | ["filter-chains", _, "route" | "service"] => Place::NoWasm,
        ["routes" | "services", _, "filter-chains"] | ["routes" | "services", _, "filter-chains", _] => Place::NoWasm,
        ["routes", _, "filters", "all" | "enabled" | "disabled"] => Place::NoWasm,
        _ => return None,
    })
}

fn upstream_extra(kind: NodeKind, path: &[&str]) -> Option<Place> {
    let (upstream, rest) = match path {
        ["upstreams", upstream, rest @ ..] => ((*upstream).to_owned(), rest),
        _ => return None,
    };
    let verdict = |word: &str| match word {
        "healthy" => Some(true),
        "unhealthy" => Some(false),
        _ => None,
    };
    match rest {
        ["health"] => Some(Place::UpstreamHealth { upstream }),
        ["targets", "all"] => Some(Place::AllTargets { upstream }),
        ["targets", target, word] if kind != NodeKind::ControlPlane => {
            let target = (*target).to_owned();
            verdict(word).map(|healthy| Place::TargetHealth { upstream, target, address: None, healthy })
        }
        ["targets", target, address, word] if kind != NodeKind::ControlPlane => {
            let (target, address) = ((*target).to_owned(), Some((*address).to_owned()));
            verdict(word).map(|healthy| Place::TargetHealth { upstream, target, address, healthy })
        }
        _ => None,
    }
}

fn entity(registry: &Registry, path: &[&str]) -> Option<Place> {
    let schema = registry.by_endpoint(path.first()?).filter(|schema| schema.generate_admin_api)?;
    let entity = schema.name.clone();
    match path {
        [_] => Some(Place::Collection { entity }),
        [_, key] => Some(Place::Item { entity, key: (*key).to_owned() }),
        [_, key, word] => {
            if schema.foreign_keys.iter().any(|foreign| foreign.field == *word) {
                return Some(Place::Parent { entity, key: (*key).to_owned(), field: (*word).to_owned() });
            }
            let (child, field) = child(registry, schema, word)?;
            Some(Place::Nested { parent: entity, parent_key: (*key).to_owned(), entity: child, field })
        }
        [_, key, word, item] => {
            let (child, field) = child(registry, schema, word)?;
            let (parent_key, key) = ((*key).to_owned(), (*item).to_owned());
            Some(Place::NestedItem { parent: entity, parent_key, entity: child, field, key })
        }
        _ => None,
    }
}

/// The entity nested below `parent` under this name, and its field that refers to the parent.
fn child(registry: &Registry, parent: &EntitySchema, nested_name: &str) -> Option<(String, String)> {
    registry.referenced_by(&parent.name).iter().find_map(|(name, foreign)| {
        let schema = registry.entity(name)?;
        (schema.generate_admin_api && schema.nested_name == nested_name).then(|| (name.clone(), foreign.field.clone()))
    })
}

/// Every path pattern, as `GET /endpoints` lists them.
pub(crate) fn patterns(registry: &Registry, kind: NodeKind) -> Vec<String> {
    let mut found: Vec<String> = FIXED_PATTERNS.iter().map(|text| (*text).to_owned()).collect();
    if kind == NodeKind::ControlPlane {
        found.push("/debug/cluster/control-planes-nodes/log-level/{log_level}".to_owned());
    } else {
        found.push("/debug/cluster/log-level/{log_level}".to_owned());
        for verdict in ["healthy", "unhealthy"] {
            found.push(format!("/upstreams/{{upstreams}}/targets/{{targets}}/{verdict}"));
            found.push(format!("/upstreams/{{upstreams}}/targets/{{targets}}/{{address}}/{verdict}"));
        }
    }
    for schema in registry.entities().filter(|schema| schema.generate_admin_api) {
        // Switched-off collections (`/targets`) are listed too: their paths exist.
        let endpoint = schema.endpoint.as_deref().unwrap_or(&schema.name);
        let item = format!("/{endpoint}/{{{}}}", schema.name);
        found.extend(schema.foreign_keys.iter().filter_map(|foreign| {
            // Nested names win where both would be the same path.
            registry.entity(&foreign.references).filter(|parent| parent.generate_admin_api)?;
            Some(format!("{item}/{}", foreign.field))
        }));
        for foreign in &schema.foreign_keys {
            let parent = registry.entity(&foreign.references).filter(|parent| parent.generate_admin_api);
            if let Some(parent_endpoint) = parent.and_then(|parent| parent.endpoint.as_deref()) {
                let nested = format!("/{parent_endpoint}/{{{}}}/{}", foreign.references, schema.nested_name);
                found.push(format!("{nested}/{{{}}}", schema.name));
                found.push(nested);
            }
        }
        found.push(item);
        found.push(format!("/{endpoint}"));
    }
    found.sort_by(|a, b| a.split('/').cmp(b.split('/')));
    found.dedup();
    found
}

/// Patterns that follow from no entity.
const FIXED_PATTERNS: &[&str] = &[
    "/",
    "/acme",
    "/acme/certificates",
    "/acme/certificates/{certificates}",
    "/cache",
    "/cache/{key}",
    "/clustering/data-planes",
    "/clustering/status",
    "/config",
    "/debug/node/log-level",
    "/debug/node/log-level/{log_level}",
    "/endpoints",
    "/metrics",
    "/plugins/enabled",
    "/plugins/schema/{name}",
    "/proxy-cache",
    "/proxy-cache/{cache_key}",
    "/proxy-cache/{plugin_id}/caches/{cache_key}",
    "/routes/{routes}/filters/all",
    "/routes/{routes}/filters/disabled",
    "/routes/{routes}/filters/enabled",
    "/schemas/filters/{name}",
    "/schemas/plugins/validate",
    "/schemas/plugins/{name}",
    "/schemas/vaults/validate",
    "/schemas/vaults/{name}",
    "/schemas/{db_entity_name}/validate",
    "/schemas/{name}",
    "/status",
    "/status/dns",
    "/tags",
    "/tags/{tags}",
    "/timers",
    "/upstreams/{upstreams}/health",
    "/upstreams/{upstreams}/targets/all",
];
