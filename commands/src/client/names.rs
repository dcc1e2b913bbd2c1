//! Entities by the names people type.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command};
use std::ffi::OsStr;

/// Schema name, name on the command line, and what else is understood.
const NAMES: &[(&str, &str, &[&str])] = &[
    ("services", "services", &["service", "svc"]),
    ("routes", "routes", &["route", "rt"]),
    ("consumers", "consumers", &["consumer"]),
    ("plugins", "plugins", &["plugin"]),
    ("upstreams", "upstreams", &["upstream"]),
    ("targets", "targets", &["target"]),
    ("certificates", "certificates", &["certificate", "cert", "certs"]),
    ("ca_certificates", "ca-certificates", &["ca-certificate", "ca_certificates", "ca_certificate", "ca"]),
    ("snis", "snis", &["sni"]),
    ("vaults", "vaults", &["vault"]),
    ("keys", "keys", &["key"]),
    ("key_sets", "key-sets", &["key-set", "key_sets", "key_set"]),
    ("filter_chains", "filter-chains", &["filter-chain", "filter_chains", "filter_chain"]),
    ("acls", "acls", &["acl"]),
    ("basicauth_credentials", "basic-auths", &["basic-auth", "basicauth_credentials"]),
    ("hmacauth_credentials", "hmac-auths", &["hmac-auth", "hmacauth_credentials"]),
    ("jwt_secrets", "jwts", &["jwt", "jwt_secrets"]),
    ("keyauth_credentials", "key-auths", &["key-auth", "keyauth_credentials"]),
    ("oauth2_credentials", "oauth2", &["oauth2-credentials", "oauth2_credentials"]),
    ("oauth2_tokens", "oauth2-tokens", &["oauth2-token", "oauth2_tokens"]),
    ("sessions", "sessions", &["session"]),
    ("acme_storage", "acme-storage", &["acme_storage"]),
    ("tags", "tags", &["tag"]),
];

/// What people call data planes, which are no entity.
const DATA_PLANES: [&str; 6] = ["dp", "dps", "data-plane", "data-planes", "node", "nodes"];

/// Accepts the names in any case, alone or as `route/orders`; completes them and suggests near ones.
#[derive(Debug, Clone)]
pub struct EntityParser(PossibleValuesParser);

pub fn parser() -> EntityParser {
    EntityParser(PossibleValuesParser::new(
        NAMES.iter().map(|(_, name, aliases)| PossibleValue::new(*name).aliases(aliases.iter().copied())),
    ))
}

impl TypedValueParser for EntityParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, typed: &OsStr) -> Result<String, clap::Error> {
        let text = typed.to_string_lossy();
        let (entity, name) = match text.split_once('/') {
            Some((entity, name)) => (entity, Some(name)),
            None => (text.as_ref(), None),
        };
        let entity = entity.to_lowercase();
        if DATA_PLANES.contains(&entity.as_str()) {
            let text = "data planes are no part of the configuration; `gwctl dp list` shows them\n";
            return Err(clap::Error::raw(ErrorKind::InvalidValue, text).with_cmd(command));
        }
        let entity = self.0.parse_ref(command, argument, OsStr::new(&entity))?;
        Ok(name.map_or_else(|| entity.clone(), |name| format!("{entity}/{name}")))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Schema name of what was typed.
pub fn schema_name(typed: &str) -> Option<&'static str> {
    let typed = typed.to_lowercase();
    let found = NAMES.iter().find(|(_, name, aliases)| *name == typed || aliases.contains(&typed.as_str()))?;
    Some(found.0)
}

/// Name on the command line of a schema, as in `gwctl get NAME`.
pub fn plural(schema: &str) -> &str {
    NAMES.iter().find(|(known, ..)| *known == schema).map_or(schema, |(_, name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_entities::{NodeKind, Registry, RegistryOptions};
    use std::collections::BTreeSet;

    #[test]
    fn every_entity_of_the_admin_api_has_a_name() {
        let router_flavor = "traditional_compatible".to_owned();
        let options = RegistryOptions { kind: NodeKind::Traditional, router_flavor, plugins: None };
        for entity in Registry::bundled(&options).entities() {
            let listed = entity.endpoint.is_some() || entity.name == "targets";
            let internal = entity.name == "clustering_data_planes";
            assert_eq!(schema_name(&entity.name).is_some(), listed && !internal, "{}", entity.name);
        }
    }

    #[test]
    fn no_name_means_two_things() {
        let names: Vec<&str> =
            NAMES.iter().flat_map(|(_, name, aliases)| std::iter::once(name).chain(aliases.iter())).copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
