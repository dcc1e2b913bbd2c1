//! Help and wrong usage.

use super::gwctl;

/// Commands that do something.
const COMMANDS: &[&[&str]] = &[
    &["start"],
    &["cp", "start"],
    &["dp", "join"],
    &["dp", "list"],
    &["dp", "describe"],
    &["certs", "init"],
    &["certs", "show"],
    &["apply"],
    &["diff"],
    &["history"],
    &["explain"],
    &["rollback"],
    &["validate"],
    &["dump"],
    &["convert"],
    &["get"],
    &["top"],
    &["config", "show"],
    &["completions"],
    &["man"],
    &["version"],
    &["quickstart"],
];

#[test]
fn every_command_has_help_with_examples_that_name_it() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let ran = gwctl(&[command, &[flag][..]].concat());
            assert_eq!(ran.code, 0, "{command:?}");
            let example = format!("gwctl {}", command.join(" "));
            let (_, examples) = ran.out.split_once("Examples:").unwrap_or_else(|| panic!("{command:?} has none"));
            assert!(examples.contains(&example), "{command:?}: {examples}");
        }
    }
}

#[test]
fn the_overview_lists_the_commands_and_the_exit_codes() {
    let ran = gwctl(&["--help"]);
    assert_eq!(ran.code, 0);
    for word in ["apply", "diff", "top", "Exit codes:"] {
        assert!(ran.out.contains(word), "{word}");
    }
}

#[test]
fn the_exit_codes_are_a_topic_of_the_help() {
    for arguments in [&["help", "exit-codes"][..], &["exit-codes"]] {
        let ran = gwctl(arguments);
        assert!(ran.code == 0 && ran.out.contains("    5  refused by a guard"), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn wrong_usage_exits_with_64_on_stderr() {
    let cases: &[&[&str]] = &[
        &[],
        &["frobnicate"],
        &["dp"],
        &["dp", "join"],
        &["dp", "describe"],
        &["apply"],
        &["get"],
        &["validate"],
        &["rollback"],
        &["rollback", "last"],
        &["history", "--limit", "0"],
        &["explain"],
        &["explain", "orders"],
        &["explain", "GET", "ftp://x/"],
        &["explain", "/x", "-H", "nothing"],
        &["explain", "/../x", "-f", "x"],
        &["explain", "/x", "--flavor", "traditional"],
        &["apply", "-f", "x", "--wait=101%"],
        &["convert", "-f", "x"],
        &["dump", "--force"],
        &["top", "--interval", "soon"],
        &["certs", "init", "--name", "cp.example"],
        &["certs", "init", "--days", "0"],
        &["dp", "list", "-o", "xml"],
        &["config", "show", "--set", "nothing"],
    ];
    for arguments in cases {
        let ran = gwctl(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (64, ""), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn slips_of_the_finger_get_a_suggestion() {
    for (arguments, suggestion) in [
        (&["aply"][..], "'apply'"),
        (&["get", "servces"], "'services'"),
        (&["get", "dp"], "`gwctl dp list`"),
        (&["diff", "--file", "x", "--prun"], "'--prune'"),
        (&["validate", "kong.yaml"], "-f kong.yaml"),
        (&["apply", "kong.yaml"], "-f kong.yaml"),
        (&["convert", "kong.yaml", "--to", "deck"], "-f kong.yaml"),
        (&["apply", "-f", "x", "--wait", "80%"], "--wait=80%"),
        (&["apply", "--wait", "all", "-f", "x"], "--wait=all"),
        (&["dp", "start"], "gwctl dp join HOST:8005"),
        (&["top", "-o", "json"], "`gwctl dp list -o json`"),
    ] {
        let ran = gwctl(arguments);
        assert!(ran.code == 64 && ran.err.contains(suggestion), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn a_flag_is_no_file_and_only_commands_that_wait_have_a_share() {
    let said = |arguments: &[&str]| gwctl(arguments).err;
    assert!(!said(&["apply", "-x"]).contains("-f -x"), "{}", said(&["apply", "-x"]));
    assert!(!said(&["validate", "80%"]).contains("--wait"), "{}", said(&["validate", "80%"]));
}

#[test]
fn what_hangs_below_what_is_told_when_guessed_wrongly() {
    let ran = gwctl(&["get", "plugins", "--of", "orders"]);
    assert_eq!(ran.code, 64);
    assert!(ran.err.contains("services/NAME"), "{}", ran.err);
}
