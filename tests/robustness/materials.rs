//! Settings, certificates and keys that are missing, unreadable, or not what they should be.

use super::{GWCTL, assert_no_panic, assert_says};
use gwctl_testkit::{Cluster, Node, NodeOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The node ends by itself with exit code 1; gives its log.
fn refused(cluster: &Cluster, options: &NodeOptions) -> String {
    let mut node = Node::spawn(cluster.executable(), options);
    assert_eq!(node.ended().code(), Some(1), "{}", node.log());
    assert_no_panic(&node);
    let log = node.log();
    assert_says(&log, &["error: "]);
    assert!(!log.contains("PRIVATE KEY-----\n"), "a key is in the log:\n{log}");
    log
}

/// Runs the program as a user without rights; None where that is not possible.
fn as_nobody(arguments: &[&str], variables: &[(&str, &Path)]) -> Option<(Option<i32>, String)> {
    let nobody = |arguments: &[&str]| {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", GWCTL])
            .args(arguments)
            .env_clear()
            .envs(variables.iter().copied())
            .output()
    };
    let able = nobody(&["version"]).is_ok_and(|output| output.status.success());
    if !able {
        eprintln!("skipped: this user cannot run the program as another user (root and setpriv are needed)");
        return None;
    }
    let output = nobody(arguments).unwrap();
    Some((output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn wrong_certificates_and_keys_are_named_with_setting_place_and_reason() {
    let cluster = Cluster::new(GWCTL);
    let stranger = Cluster::new(GWCTL);
    let (cert, key) = (cluster.path("cluster.crt"), cluster.path("cluster.key"));
    let (garbage, missing) = (cluster.path("garbage.pem"), cluster.path("missing.pem"));
    std::fs::write(&garbage, [0_u8, 159, 146, 150].repeat(100)).unwrap();
    let hollow = cluster.path("hollow.pem");
    std::fs::write(&hollow, "-----BEGIN CERTIFICATE-----\nbm90aGluZw==\n-----END CERTIFICATE-----\n").unwrap();
    let text = |path: &Path| path.display().to_string();
    let other_key = stranger.path("cluster.key");
    let cases = [
        (&cert, &missing, vec!["cluster_cert_key", &text(&missing)]),
        (&missing, &key, vec!["cluster_cert", &text(&missing)]),
        (&garbage, &key, vec!["cluster_cert", &text(&garbage)]),
        (&hollow, &key, vec!["cluster_cert", &text(&hollow)]),
        (&key, &cert, vec!["cluster_cert", "private key", "expected a certificate"]),
        (&cert, &cert, vec!["cluster_cert_key", "holds a certificate, expected a private key"]),
        (&cert, &other_key, vec!["cluster_cert_key", &text(&other_key), "is not the key of the certificate"]),
    ]
    .map(|(cert, key, says)| (cert, key, says.into_iter().map(str::to_owned).collect::<Vec<_>>()));
    for role in ["control_plane", "data_plane"] {
        for (cert, key, says) in &cases {
            let options =
                cluster.options(role, role).set("cluster_cert", cert.display()).set("cluster_cert_key", key.display());
            let says: Vec<&str> = says.iter().map(String::as_str).collect();
            assert_says(&refused(&cluster, &options), &says);
        }
    }
}

#[test]
fn wrong_certificates_of_a_listener_are_refused_before_it_listens() {
    let cluster = Cluster::new(GWCTL);
    let stranger = Cluster::new(GWCTL);
    for (listener, prefix) in [("proxy_listen", ""), ("admin_listen", "admin_"), ("status_listen", "status_")] {
        let options = cluster.options(prefix, "traditional");
        let address = options.settings.iter().find(|(key, _)| key == listener).unwrap().1.clone();
        let options = NodeOptions { prefix: cluster.path("node"), ..options }
            .set(listener, format!("{address} ssl"))
            .set(&format!("{prefix}ssl_cert"), cluster.path("cluster.crt").display())
            .set(&format!("{prefix}ssl_cert_key"), stranger.path("cluster.key").display());
        assert_says(
            &refused(&cluster, &options),
            &[&format!("{prefix}ssl_cert_key"), "is not the key of the certificate in"],
        );
    }
}

#[test]
fn files_that_this_user_may_not_read_are_named() {
    let cluster = Cluster::new(GWCTL);
    let folder = cluster.path("");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let secret = cluster.path("secret.conf");
    std::fs::write(&secret, "log_level = info\n").unwrap();
    for file in [&secret, &cluster.path("cluster.key")] {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let conf = secret.display().to_string();
    let Some((code, log)) = as_nobody(&["start", "-c", &conf], &[]) else { return };
    assert_eq!(code, Some(1), "{log}");
    assert_says(&log, &["error: cannot read the settings file", &conf, "Permission denied", "hint: "]);

    let variables = [
        ("KONG_CLUSTER_CERT", cluster.path("cluster.crt")),
        ("KONG_CLUSTER_CERT_KEY", cluster.path("cluster.key")),
        ("KONG_PREFIX", cluster.path("nobody")),
    ];
    let variables: Vec<(&str, &Path)> = variables.iter().map(|(key, path)| (*key, path.as_path())).collect();
    let Some((code, log)) = as_nobody(&["cp", "start"], &variables) else { return };
    assert_eq!(code, Some(1), "{log}");
    assert_says(&log, &["cluster_cert_key", "cluster.key", "ermission denied"]);
}

#[test]
fn a_prefix_that_this_user_may_not_write_is_named_with_what_to_try() {
    let cluster = Cluster::new(GWCTL);
    std::fs::set_permissions(cluster.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let existing = cluster.path("existing");
    std::fs::create_dir(&existing).unwrap();
    for prefix in [cluster.path("new"), existing] {
        let Some((code, log)) = as_nobody(&["start"], &[("KONG_PREFIX", &prefix)]) else { return };
        assert_eq!(code, Some(1), "{log}");
        assert_says(&log, &["error: ", &prefix.display().to_string(), "Permission denied", "hint: "]);
        assert!(!log.contains("panicked"), "{log}");
    }
}
