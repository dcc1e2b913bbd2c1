//! Certificates that are replaced on disk while the node runs.

use crate::{GWCTL, figure, wait_for_log};
use gwctl_testkit::{Cluster, Node, get, post, wait_until};
use serde_json::json;
use std::process::Command;

fn write_pair(cluster: &Cluster, name: &str, pair: &gwctl_certs::PemPair) {
    // Beside and renamed, as tools do.
    for (end, text) in [("crt", &pair.certificate), ("key", &pair.key)] {
        let beside = cluster.path("new.pem");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(&beside, cluster.path(&format!("{name}.{end}"))).unwrap();
    }
}

pub(crate) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// The certificate that a listener presents.
fn presented(port: u16) -> String {
    let address = format!("127.0.0.1:{port}");
    let arguments = ["s_client", "-connect", &address, "-servername", "a.test"];
    let output = Command::new("openssl").args(arguments).stdin(std::process::Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn body(pem: &str) -> &str {
    pem.lines().nth(3).unwrap()
}

#[test]
fn the_certificate_of_a_listener_is_replaced_live_and_a_wrong_pair_is_refused() {
    let cluster = Cluster::new(GWCTL);
    let pair = |name: &str| gwctl_certs::self_signed(&[name.to_owned()], now()).unwrap();
    let (first, second, third) = (pair("a.test"), pair("b.test"), pair("c.test"));
    write_pair(&cluster, "proxy", &first);
    let options = cluster.options("node", "traditional");
    let [tls] = gwctl_testkit::free_ports();
    let listen =
        format!("{}, 127.0.0.1:{tls} ssl", options.settings.iter().find(|(key, _)| key == "proxy_listen").unwrap().1);
    let options = options
        .set("proxy_listen", listen)
        .set("ssl_cert", cluster.path("proxy.crt").display())
        .set("ssl_cert_key", cluster.path("proxy.key").display());
    let node = cluster.start(&options);
    assert!(presented(tls).contains(body(&first.certificate)));
    assert!(
        figure(&node, "gwctl_certificate_expiry_timestamp_seconds{setting=\"ssl_cert\",subject=\"CN=a.test\"}") > now()
    );
    write_pair(&cluster, "proxy", &second);
    wait_until("the new certificate", || presented(tls).contains(body(&second.certificate)));
    // A certificate without its key.
    std::fs::write(cluster.path("proxy.crt"), &third.certificate).unwrap();
    wait_for_log(&node, "certificates refused, those before stay in force");
    assert!(presented(tls).contains(body(&second.certificate)));
    std::fs::write(cluster.path("proxy.key"), &third.key).unwrap();
    wait_until("the pair to fit again", || presented(tls).contains(body(&third.certificate)));
}

fn connected(cp: &Node) -> bool {
    let fleet = get(cp.admin(), "/gwctl/fleet").json();
    fleet["items"].as_array().is_some_and(|rows| rows.iter().any(|row| row["connected"] == true))
}

#[test]
fn the_pair_of_the_cluster_is_replaced_without_cutting_the_link_and_used_by_the_next() {
    let cluster = Cluster::new(GWCTL);
    let mut cp = cluster.start(&cluster.options("cp", "control_plane"));
    let dp = cluster.start(&cluster.options("dp", "data_plane"));
    wait_until("the data plane to connect", || connected(&cp));
    let pair = gwctl_certs::cluster_pair(now(), 10).unwrap();
    write_pair(&cluster, "cluster", &pair);
    for node in [&cp, &dp] {
        wait_for_log(node, "certificates have changed: new connections use them, open ones stay");
        wait_for_log(node, "certificate expires soon");
    }
    let before = dp.log().matches("no connection to control plane").count();
    assert!(connected(&cp));
    let route = json!({"name": "none", "paths": ["/none"]});
    assert_eq!(post(cp.admin(), "/routes", &route).status, 201);
    assert_eq!(dp.log().matches("no connection to control plane").count(), before, "the link stays up");
    // The next connection: both ends have the new pair in force.
    cp.kill();
    cp.restart();
    wait_until("the data plane to connect again", || connected(&cp));
}

#[test]
fn new_certificates_and_refused_settings_leave_the_declarative_configuration_alone() {
    let cluster = Cluster::new(GWCTL);
    let pair = |name: &str| gwctl_certs::self_signed(&[name.to_owned()], now()).unwrap();
    let (first, second, third) = (pair("a.test"), pair("b.test"), pair("c.test"));
    write_pair(&cluster, "admin", &first);
    let file = cluster.path("kong.yml");
    let services = |name: &str| json!({"_format_version": "3.0", "services": [{"name": name, "host": "a.test"}]});
    std::fs::write(&file, services("from-file").to_string()).unwrap();
    let [tls] = gwctl_testkit::free_ports();
    let options = cluster.options("node", "traditional");
    let plain = options.settings.iter().find(|(key, _)| key == "admin_listen").unwrap().1.clone();
    let options = options
        .set("admin_listen", format!("{plain}, 127.0.0.1:{tls} ssl"))
        .set("database", "off")
        .set("declarative_config", file.display())
        .set("admin_ssl_cert", cluster.path("admin.crt").display())
        .set("admin_ssl_cert_key", cluster.path("admin.key").display());
    let node = cluster.start(&options);
    let served = || get(node.admin(), "/services").json()["data"][0]["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(served(), "from-file");
    assert_eq!(post(node.admin(), "/config", &services("posted")).status, 201);
    write_pair(&cluster, "admin", &second);
    wait_until("the new certificate", || presented(tls).contains(body(&second.certificate)));
    assert_eq!(served(), "posted", "what was posted later than the file stays");
    std::fs::write(&file, services("edited").to_string()).unwrap();
    std::fs::write(cluster.path("admin.crt"), &third.certificate).unwrap();
    crate::signal(node.id(), "HUP");
    wait_for_log(&node, "settings refused, those before stay in force");
    assert_eq!(served(), "posted", "a refused reload changes nothing");
    std::fs::write(cluster.path("admin.key"), &third.key).unwrap();
    crate::signal(node.id(), "HUP");
    wait_until("the file to be read again", || served() == "edited");
}
