//! Files: declarative ones and certificates.

use super::{Ran, command, gwctl, gwctl_with_input, nobody, path};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn files_that_cannot_be_read_are_named_with_the_reason() {
    let ran = gwctl(&["diff", "-f", "/nowhere/kong.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("/nowhere/kong.yaml") && ran.err.contains("No such file"), "{}", ran.err);
    let ran = gwctl(&["config", "show", "-c", "/nowhere/kong.conf"]);
    assert!(ran.code == 1 && ran.err.contains("/nowhere/kong.conf"), "{}", ran.err);
}

#[test]
fn broken_yaml_is_told_with_file_line_and_column_without_a_control_plane() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (path(folder.path(), "a.yaml"), path(folder.path(), "b.json"));
    fs::write(&one, "_format_version: \"3.0\"\nservices:\n- name: [a\n  host: b\n").unwrap();
    fs::write(&two, "{\"_format_version\": }").unwrap();
    let ran = gwctl(&["apply", "-f", &folder.path().display().to_string(), "--addr", &nobody()]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("2 mistakes"), "{}", ran.err);
    assert!(ran.err.contains(&format!("{one}:4:")) && ran.err.contains(&format!("{two}:1:")), "{}", ran.err);
}

#[test]
fn all_mistakes_of_a_file_are_told_at_once_with_the_names_around_them() {
    let file = "_format_version: \"3.0\"\nservices:\n- {name: a, port: 99999999, routes: [{name: r, paths: [nope]}]}\n";
    let ran = gwctl_with_input(&["diff", "-f", "-", "--addr", &nobody()], file);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for part in [
        "services[0] \"a\" host: required field missing\n  --> <stdin>:3:3\n",
        "services[0] \"a\" port: ",
        "  --> <stdin>:3:19\n",
        "services[0] \"a\" routes[0] \"r\" paths[0]: ",
    ] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
}

#[test]
fn validate_points_at_the_line_and_needs_no_control_plane() {
    let good = "_format_version: \"3.0\"\nservices:\n- {name: a, host: h}\n";
    let ran = gwctl_with_input(&["validate", "-f", "-"], good);
    assert_eq!((ran.code, ran.out.as_str()), (0, "valid: 1 entity\n"), "{}", ran.err);
    let bad = "_format_version: \"3.0\"\nroutes:\n- name: r\n  paths:\n  - nope\n  service: gone\n";
    let ran = gwctl_with_input(&["validate", "-f", "-"], bad);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(
        ran.err.contains("2 mistakes") && ran.err.contains("<stdin>:5:5\n   |\n 5 |   - nope\n   |     ^^^^"),
        "{}",
        ran.err
    );
    let ran = gwctl_with_input(&["validate", "-f", "-", "--partial", "-o", "json"], bad);
    let document: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, document["valid"].as_bool(), document["items"].as_array().unwrap().len()),
        (1, Some(false), 1)
    );
    assert_eq!(
        (&document["items"][0]["line"], &document["items"][0]["pointer"]),
        (&5.into(), &"/routes/0/paths/0".into())
    );
}

#[test]
fn the_files_shown_in_the_documents_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let mut count = 0;
    for document in fs::read_dir(documents).unwrap() {
        let text = fs::read_to_string(document.unwrap().path()).unwrap();
        for block in text.split("```yaml\n").skip(1).filter(|block| block.starts_with("_format_version")) {
            count += 1;
            let file = path(folder.path(), "kong.yaml");
            fs::write(&file, block.split("```").next().unwrap()).unwrap();
            let ran = Ran::of(command(&["validate", "-f", &file]).env("DECK_APP_KEY", "secret").output().unwrap());
            assert_eq!(ran.code, 0, "{block}\n{}", ran.err);
        }
    }
    assert!(count > 0, "no file is shown");
}

#[test]
fn files_of_deck_are_understood_and_what_enterprise_has_is_refused() {
    let file = "_format_version: \"3.0\"\n_workspace: default\n_info: {defaults: {service: {port: 81}}}\nservices:\n\
        - {name: a, host: \"${{ env \"DECK_HOST\" }}\", plugins: [{name: rate-limiting, _config: slow}]}\n\
        _plugin_configs: {slow: {minute: 5, policy: local}}\n";
    let folder = tempfile::tempdir().unwrap();
    let name = path(folder.path(), "deck.yaml");
    fs::write(&name, file).unwrap();
    let unset = gwctl(&["convert", "-f", &name, "--to", "kong"]);
    assert!(unset.code == 1 && unset.err.contains("DECK_HOST is not set"), "{}", unset.err);
    let mut command = super::command(&["convert", "-f", &name, "--to", "kong"]);
    let ran = super::Ran::of(command.env("DECK_HOST", "h.example").output().unwrap());
    let expected = "_format_version: '3.0'\nservices:\n- host: h.example\n  name: a\n  plugins:\n  - config:\n      minute: 5\n      \
        policy: local\n    name: rate-limiting\n  port: 81\n";
    assert_eq!((ran.code, ran.out.as_str()), (0, expected), "{}", ran.err);
    let ran =
        gwctl_with_input(&["validate", "-f", "-"], "_format_version: \"3.0\"\nconsumer_groups:\n- {name: gold}\n");
    assert!(ran.code == 1 && ran.err.contains("Enterprise") && ran.err.contains("<stdin>:2:1"), "{}", ran.err);
}

#[test]
fn a_written_file_is_private_and_not_replaced_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (path(folder.path(), "a.yaml"), path(folder.path(), "b.yaml"));
    fs::write(&from, "_format_version: \"2.1\"\nconsumers:\n- {username: u, keyauth_credentials: [{key: k}]}\n")
        .unwrap();
    let arguments = ["convert", "-f", &from, "--to", "deck", "-w", &to];
    let ran = gwctl(&arguments);
    assert!(ran.code == 0 && ran.err.contains("1 secret in clear text"), "{}", ran.err);
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(gwctl(&["validate", "-f", &to]).code, 0);
    let again = gwctl(&arguments);
    assert!(again.code == 1 && again.err.contains("--force"), "{}", again.err);
    assert_eq!(gwctl(&[&arguments[..], &["--force"]].concat()).code, 0);
}

#[test]
fn new_keys_are_private_and_old_ones_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = path(folder.path(), "new");
    let ran = gwctl(&["certs", "init", "--dir", &dir]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("next: gwctl cp start"), "{}", ran.err);
    let key = folder.path().join("new/cluster.key");
    let mode = |name: &str| fs::metadata(folder.path().join("new").join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("cluster.crt"), mode("cluster.key")), (0o644, 0o600));
    let before = fs::read(&key).unwrap();
    let again = gwctl(&["certs", "init", "--dir", &dir]);
    assert!(again.code == 1 && again.err.contains("--force"), "{}", again.err);
    assert_eq!(fs::read(&key).unwrap(), before);
    assert_eq!(gwctl(&["certs", "init", "--dir", &dir, "--force"]).code, 0);
    assert_ne!(fs::read(&key).unwrap(), before);
}

#[test]
fn an_authority_makes_a_pair_for_each_role() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().display().to_string();
    assert_eq!(gwctl(&["certs", "init", "--dir", &dir, "--pki", "--name", "cp.example"]).code, 0);
    let shown = gwctl(&["certs", "show", &path(folder.path(), "cp.crt"), "-o", "json"]);
    let document: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
    assert_eq!(document["items"][0]["names"], serde_json::json!(["cp.example"]));
    assert_eq!(document["items"][0]["issuer"], "CN=gwctl cluster authority");
    let key = gwctl(&["certs", "show", &path(folder.path(), "cp.key")]);
    assert!(key.code == 1 && !key.err.contains("PRIVATE KEY-----"), "{}", key.err);
}
