//! The hosts file.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Addresses by name, lower case.
#[derive(Debug)]
pub(crate) struct Hosts(HashMap<String, Vec<IpAddr>>);

impl Hosts {
    /// Reads the file once; without it only `localhost` is known.
    pub(crate) fn read(path: &Path) -> Hosts {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "hosts file not read");
            String::new()
        });
        Hosts::parse(&text)
    }

    fn parse(text: &str) -> Hosts {
        let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(address) = words.next().and_then(|word| word.parse().ok()) else { continue };
            for name in words {
                let addresses = hosts.entry(name.to_ascii_lowercase()).or_default();
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        let own = || vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        hosts.entry("localhost".to_owned()).or_insert_with(own);
        Hosts(hosts)
    }

    /// Addresses of one family, the family asked for first.
    pub(crate) fn find(&self, name: &str, v4_first: bool) -> Option<Vec<IpAddr>> {
        let all = match self.0.get(name) {
            Some(all) => all,
            None => self.0.get(&name.to_ascii_lowercase())?,
        };
        let family = |v4: bool| all.iter().copied().filter(|address| address.is_ipv4() == v4).collect::<Vec<_>>();
        Some(family(v4_first)).filter(|found| !found.is_empty()).or_else(|| Some(family(!v4_first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_file_are_found_in_any_case() {
        let hosts =
            Hosts::parse("# all\n10.0.0.1 One one.test # first\n10.0.0.2\tone\n\nfe80::1 one six\nnonsense x\n");
        assert_eq!(
            hosts.find("ONE", true).unwrap(),
            ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap())
        );
        assert_eq!(hosts.find("one", false).unwrap(), ["fe80::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(hosts.find("six", true).unwrap(), ["fe80::1".parse::<IpAddr>().unwrap()], "all there is");
        assert_eq!(hosts.find("x", true), None);
    }

    #[test]
    fn localhost_is_known_without_a_file() {
        assert_eq!(Hosts::parse("").find("localhost", true).unwrap(), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
    }
}
