//! What to try when an address cannot be listened on.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;

/// What to try when the address of a setting cannot be listened on.
pub fn listen_hint(setting: &str, address: SocketAddr, error: &Error) -> String {
    let port = address.port();
    match error.kind() {
        ErrorKind::AddrInUse => format!(
            "another process listens on port {port}: find it with `ss -ltunp 'sport = :{port}'`, stop it, or set {setting} to another port"
        ),
        ErrorKind::PermissionDenied => format!(
            "ports below 1024 need the capability CAP_NET_BIND_SERVICE: set {setting} to a higher port, or grant the capability"
        ),
        ErrorKind::AddrNotAvailable => {
            format!("no interface of this machine has the address {}: correct {setting}", address.ip())
        }
        _ => format!("correct {setting}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_something_to_try_that_names_the_setting() {
        let address = "127.0.0.1:80".parse().unwrap();
        let cases = [
            (ErrorKind::AddrInUse, "sport = :80"),
            (ErrorKind::PermissionDenied, "CAP_NET_BIND_SERVICE"),
            (ErrorKind::AddrNotAvailable, "127.0.0.1"),
            (ErrorKind::Other, "correct"),
        ];
        for (kind, expected) in cases {
            let hint = listen_hint("proxy_listen", address, &kind.into());
            assert!(hint.contains(expected) && hint.contains("proxy_listen"), "{kind}: {hint}");
        }
    }
}
