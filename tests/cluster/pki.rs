//! `cluster_mtls = pki`: an authority issues a certificate to each side.

use super::GWCTL;
use gwctl_testkit::{Cluster, NodeOptions, get, post, wait_until};
use serde_json::json;
use std::process::Command;

fn authority(cluster: &Cluster, name: &str) {
    let made = Command::new(GWCTL)
        .args(["certs", "init", "--pki", "--name", "cp.test", "--dir"])
        .arg(cluster.path(name))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A node whose certificate comes from `own` and who trusts `trusted`.
fn options(cluster: &Cluster, role: &str, own: &str, trusted: &str) -> NodeOptions {
    let file = if role == "control_plane" { "cp" } else { "dp" };
    let path = |folder: &str, name: &str| cluster.path(folder).join(name).display().to_string();
    cluster
        .options(&format!("{role}-{own}-{trusted}"), role)
        .set("cluster_mtls", "pki")
        .set("cluster_ca_cert", path(trusted, "ca.crt"))
        .set("cluster_cert", path(own, &format!("{file}.crt")))
        .set("cluster_cert_key", path(own, &format!("{file}.key")))
        .set("cluster_server_name", "cp.test")
}

#[test]
fn nodes_with_certificates_of_one_authority_form_a_cluster() {
    let cluster = Cluster::new(GWCTL);
    authority(&cluster, "ca");
    let cp = cluster.start(&options(&cluster, "control_plane", "ca", "ca"));
    let dp = cluster.start(&options(&cluster, "data_plane", "ca", "ca"));
    let service = json!({"name": "s", "host": "127.0.0.1", "port": 9});
    assert_eq!(post(cp.admin(), "/services", &service).status, 201);
    wait_until("the data plane to be ready", || get(dp.status(), "/status/ready").status == 200);
}

#[test]
fn a_certificate_of_another_authority_is_refused_by_either_side() {
    let cluster = Cluster::new(GWCTL);
    authority(&cluster, "ca");
    authority(&cluster, "other");
    let cp = cluster.start(&options(&cluster, "control_plane", "ca", "ca"));
    let stranger = cluster.start(&options(&cluster, "data_plane", "other", "ca"));
    wait_until("the control plane to refuse the stranger", || cp.log().contains("data plane refused"));
    wait_until("the stranger to log why", || stranger.log().contains("400"));
    let wary = cluster.start(&options(&cluster, "data_plane", "ca", "other"));
    wait_until("the data plane to refuse the control plane", || wary.log().contains("TLS handshake failed"));
    assert_eq!(get(cp.admin(), "/clustering/data-planes").json()["data"], json!([]));
}

#[test]
fn revocation_that_cannot_be_checked_lets_a_data_plane_in_only_where_it_is_optional() {
    // The certificates of this authority name nobody to ask.
    for (setting, let_in) in [("on", false), ("optional", true)] {
        let cluster = Cluster::new(GWCTL);
        authority(&cluster, "ca");
        let cp = cluster.start(&options(&cluster, "control_plane", "ca", "ca").set("cluster_ocsp", setting));
        let dp = cluster.start(&options(&cluster, "data_plane", "ca", "ca"));
        wait_until("the control plane to say why", || cp.log().contains("it names no OCSP responder"));
        if let_in {
            wait_until("the data plane to be ready", || get(dp.status(), "/status/ready").status == 200);
        } else {
            wait_until("the data plane to be refused", || dp.log().contains("no connection to control plane"));
            assert_eq!(get(dp.status(), "/status/ready").status, 503);
        }
    }
}
