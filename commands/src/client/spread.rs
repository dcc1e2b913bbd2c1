//! What a change meets at the data planes: plugins they lack, and when they have it.

use super::connect::failure;
use crate::failure::{Failure, NOT_EVERYWHERE};
use gwctl_admin_client::Client;
use gwctl_declarative::Plan;
use gwctl_entities::Value;
use gwctl_entities::fleet::{Fleet, FleetMember};
use gwctl_tui::format::plain;
use gwctl_tui::state::note;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time between two looks at the fleet.
const LOOK: Duration = Duration::from_millis(200);
/// Time between two lines of progress.
const LINE: Duration = Duration::from_secs(1);

/// Plugins that the plan configures and connected data planes lack, in words.
pub fn warnings(plan: &Plan, fleet: &Fleet) -> Vec<String> {
    let plugins = plan.operations.iter().filter(|operation| operation.entity == "plugins");
    let used = plugins.filter_map(|operation| {
        let after = operation.after.as_ref()?;
        after.get("name").and_then(Value::as_str).filter(|_| after.get("enabled") != Some(&Value::Bool(false)))
    });
    let used: BTreeSet<&str> = used.collect();
    let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for member in fleet.items.iter().filter(|member| member.connected) {
        let Some(has) = &member.plugins else { continue };
        for name in used.iter().filter(|name| !has.iter().any(|plugin| plugin == *name)) {
            lacking.entry(name).or_default().push(plain(&member.name));
        }
    }
    let told = lacking.into_iter().map(|(plugin, nodes)| {
        let (who, keep) = if nodes.len() == 1 { ("data plane", "it keeps") } else { ("data planes", "they keep") };
        let few = nodes.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
        let more = if nodes.len() > 5 { format!(" and {} more", nodes.len() - 5) } else { String::new() };
        format!("plugin {plugin} is missing at {who} {few}{more}: {keep} the configuration of before")
    });
    told.collect()
}

/// Waits until every connected data plane reports this version.
pub async fn wait(client: &Client, version: u64, limit: Duration) -> Result<(), Failure> {
    let started = Instant::now();
    let mut told: Option<Instant> = None;
    loop {
        let fleet = client.fleet().await.map_err(|error| failure(&error))?;
        let connected = fleet.items.iter().filter(|member| member.connected).count();
        let lacking = lacking(&fleet, version);
        if lacking.is_empty() {
            let seconds = started.elapsed().as_secs_f64();
            match connected {
                0 => eprintln!("no data plane is connected"),
                count => eprintln!("{count} of {count} data planes have version {version} after {seconds:.1} s"),
            }
            return Ok(());
        }
        if started.elapsed() >= limit {
            return Err(late(&lacking, connected, version, limit));
        }
        if told.is_none_or(|told| told.elapsed() >= LINE) {
            eprintln!("{} of {connected} data planes have version {version}", connected - lacking.len());
            told = Some(Instant::now());
        }
        tokio::time::sleep(LOOK.min(limit.saturating_sub(started.elapsed()))).await;
    }
}

fn lacking(fleet: &Fleet, version: u64) -> Vec<&FleetMember> {
    let connected = fleet.items.iter().filter(|member| member.connected);
    connected.filter(|member| member.applied_version.is_none_or(|applied| applied < version)).collect()
}

fn late(lacking: &[&FleetMember], connected: usize, version: u64, limit: Duration) -> Failure {
    let mut text = format!(
        "{} of {connected} data planes do not have version {version} after {} s",
        lacking.len(),
        limit.as_secs_f64()
    );
    for member in lacking {
        let has = match member.applied_version {
            Some(applied) => format!("has version {applied}"),
            None => "reported no version yet".to_owned(),
        };
        let why = note(member).unwrap_or(has);
        text += &format!("\n  {}: {}", plain(&member.name), plain(&why));
    }
    Failure::new(text).hint("the change is kept; `gwctl dp list` shows how far they are").code(NOT_EVERYWHERE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gwctl_declarative::{Action, Operation};
    use serde_json::json;

    fn node(name: &str, plugins: Option<&[&str]>, applied: u64) -> FleetMember {
        FleetMember {
            name: name.into(),
            connected: true,
            plugins: plugins.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            applied_version: Some(applied),
            ..FleetMember::default()
        }
    }

    #[test]
    fn data_planes_that_lack_a_plugin_of_the_plan_are_named() {
        let plugin = |name: &str, enabled: bool| Operation {
            action: Action::Create,
            entity: "plugins".into(),
            id: name.into(),
            name: name.into(),
            parent: None,
            before: None,
            after: json!({"name": name, "enabled": enabled}).as_object().cloned(),
            changes: Vec::new(),
            path: String::new(),
            post_path: None,
            body_for_put: None,
        };
        let operations = vec![plugin("cors", true), plugin("acl", true), plugin("jwt", false)];
        let plan = Plan { operations, ..Plan::default() };
        let items = vec![
            node("a", Some(&["acl"]), 1),
            node("unknown", None, 1),
            FleetMember { connected: false, ..node("gone", Some(&[]), 1) },
        ];
        let told = warnings(&plan, &Fleet { items, ..Fleet::default() });
        assert_eq!(told, ["plugin cors is missing at data plane a: it keeps the configuration of before"]);
    }

    #[test]
    fn who_is_late_is_named_with_the_reason() {
        let refused = FleetMember {
            sync_status: "plugin_set_incompatible".into(),
            sync_detail: Some("lacks cors".into()),
            ..node("b", None, 1)
        };
        let fleet = Fleet { items: vec![node("a", None, 5), refused, node("c", None, 4)], ..Fleet::default() };
        let text = late(&lacking(&fleet, 5), 3, 5, Duration::from_secs(2)).text();
        assert!(text.starts_with("error: 2 of 3 data planes do not have version 5 after 2 s"), "{text}");
        assert!(text.contains("b: plugin_set_incompatible: lacks cors\n  c: has version 4"), "{text}");
    }
}
