//! Entities by the names people type.

use clap::builder::{PossibleValue, PossibleValuesParser};

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

/// Accepts the names, completes them, and suggests near ones.
pub fn parser() -> PossibleValuesParser {
    PossibleValuesParser::new(
        NAMES.iter().map(|(_, name, aliases)| PossibleValue::new(*name).aliases(aliases.iter().copied())),
    )
}

/// Schema name of what was typed.
pub fn schema_name(typed: &str) -> Option<&'static str> {
    let found = NAMES.iter().find(|(_, name, aliases)| *name == typed || aliases.contains(&typed))?;
    Some(found.0)
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
