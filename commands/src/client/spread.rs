//! What a change meets at the data planes: plugins they lack, and when they have it.

use super::args::{ConnectArgs, duration};
use super::connect::failure;
use crate::failure::{Failure, NOT_EVERYWHERE};
use clap::Args;
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
/// Longest time without a line while nothing changes.
const SILENCE: Duration = Duration::from_secs(10);
/// How long to wait where no flag says it.
const LIMIT: Duration = Duration::from_secs(60);

/// The name of a node, with the beginning of its id where several have that name.
fn called(member: &FleetMember, fleet: &Fleet) -> String {
    let twice = fleet.items.iter().filter(|other| other.name == member.name).count() > 1;
    let id: String = member.id.chars().take(8).collect();
    plain(&if twice { format!("{} ({id})", member.name) } else { member.name.clone() })
}

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
            lacking.entry(name).or_default().push(called(member, fleet));
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

/// Whether and how long to wait for data planes.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Wait until all connected data planes have it, or so many of a hundred (80%); up to --timeout, 60s when not given.
    #[arg(
        long,
        value_name = "all|N%",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
        value_parser = awaited
    )]
    pub wait: Option<Awaited>,
}

/// What `--wait` names. A time is understood too: all data planes, and the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    percent: u8,
    limit: Option<Duration>,
}

fn awaited(text: &str) -> Result<Awaited, String> {
    let wrong = "expected all, or a share like 80%";
    match text.strip_suffix('%') {
        _ if text == "all" => Ok(Awaited { percent: 100, limit: None }),
        Some(digits) => match digits.parse() {
            Ok(percent) if (1..=100).contains(&percent) => Ok(Awaited { percent, limit: None }),
            _ => Err(format!("{wrong}, from 1% to 100%")),
        },
        None => match duration(text) {
            Ok(limit) => Ok(Awaited { percent: 100, limit: Some(limit) }),
            Err(_) => Err(wrong.to_owned()),
        },
    }
}

impl WaitArgs {
    /// Percent of the connected data planes to wait for; None: do not wait.
    pub fn share(&self) -> Option<u8> {
        self.wait.map(|awaited| awaited.percent)
    }

    /// How long to wait.
    pub fn limit(&self, connect: &ConnectArgs) -> Duration {
        self.wait.and_then(|awaited| awaited.limit).or(connect.timeout).unwrap_or(LIMIT)
    }
}

/// Waits until so many percent of the connected data planes report this version.
pub async fn wait(client: &Client, version: u64, percent: u8, limit: Duration) -> Result<(), Failure> {
    let started = Instant::now();
    let mut told: Option<(Instant, String)> = None;
    loop {
        let fleet = client.fleet().await.map_err(|error| failure(&error))?;
        let standing = Standing::of(&fleet, version, percent);
        let elapsed = started.elapsed();
        if standing.reached() {
            tell!("{} after {:.1} s", standing.line(), elapsed.as_secs_f64());
            return Ok(());
        }
        if elapsed >= limit {
            return Err(standing.late(limit));
        }
        let line = standing.line();
        if told.as_ref().is_none_or(|(at, before)| *before != line && at.elapsed() >= LINE || at.elapsed() >= SILENCE) {
            tell!("{line}");
            told = Some((Instant::now(), line));
        }
        tokio::time::sleep(LOOK.min(limit.saturating_sub(elapsed))).await;
    }
}

/// How far a fleet is with a version.
struct Standing<'f> {
    version: u64,
    percent: u8,
    connected: usize,
    offline: usize,
    /// Those that are offline without having said goodbye.
    lost: Vec<&'f FleetMember>,
    lacking: Vec<&'f FleetMember>,
    fleet: &'f Fleet,
}

impl<'f> Standing<'f> {
    fn of(fleet: &'f Fleet, version: u64, percent: u8) -> Standing<'f> {
        let connected: Vec<&FleetMember> = fleet.items.iter().filter(|member| member.connected).collect();
        let offline = fleet.items.len() - connected.len();
        // Of two nodes with one id only one is known to have it.
        let lacks =
            |member: &&&FleetMember| member.shared_id || member.applied_version.is_none_or(|applied| applied < version);
        let lacking = connected.iter().filter(lacks).copied().collect();
        let lost = fleet.items.iter().filter(|member| member.state.as_deref() == Some("offline")).collect();
        Standing { version, percent, connected: connected.len(), offline, lost, lacking, fleet }
    }

    fn have(&self) -> usize {
        self.connected - self.lacking.len()
    }

    fn needed(&self) -> usize {
        (self.connected * usize::from(self.percent)).div_ceil(100)
    }

    /// Where all are lost nobody has it: a control plane that was restarted meets its data planes again.
    fn reached(&self) -> bool {
        self.have() >= self.needed() && (self.connected > 0 || self.lost.is_empty())
    }

    /// `DP 12/50 have version 7, 1 refused (dp-7: lacks cors), 2 offline`.
    fn line(&self) -> String {
        if self.connected == 0 {
            let offline = if self.offline > 0 { format!(", {} offline", self.offline) } else { String::new() };
            return format!("no data plane is connected{offline}");
        }
        let mut line = format!("DP {}/{} have version {}", self.have(), self.connected, self.version);
        let refused: Vec<String> = self
            .lacking
            .iter()
            .filter_map(|member| Some(format!("{}: {}", called(member, self.fleet), plain(&note(member)?))))
            .collect();
        if let Some(first) = refused.first() {
            let more = if refused.len() > 1 { ", ..." } else { "" };
            line += &format!(", {} refused ({first}{more})", refused.len());
        }
        if self.offline > 0 {
            line += &format!(", {} offline", self.offline);
        }
        line
    }

    fn late(&self, limit: Duration) -> Failure {
        let (lacking, connected, version) = (self.lacking.len(), self.connected, self.version);
        let after = format!("after {} s", limit.as_secs_f64());
        let mut text = match connected {
            0 => format!("no data plane is connected {after} to confirm version {version}; these are offline:"),
            _ => format!("{lacking} of {connected} data planes do not have version {version} {after}"),
        };
        if connected > 0 && self.percent < 100 {
            text += &format!(", {} were to have it ({}%)", self.needed(), self.percent);
        }
        for member in if connected > 0 { &self.lacking } else { &self.lost } {
            let has = match member.applied_version {
                Some(applied) => format!("has version {applied}"),
                None => "reported no version yet".to_owned(),
            };
            let why = note(member).unwrap_or(has);
            text += &format!("\n  {}: {}", called(member, self.fleet), plain(&why));
        }
        Failure::new(text).hint("the change is kept; `gwctl dp list` shows how far they are").code(NOT_EVERYWHERE)
    }
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
            stored: false,
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
        let standing = Standing::of(&fleet, 5, 100);
        assert!(!standing.reached());
        assert_eq!(standing.line(), "DP 1/3 have version 5, 1 refused (b: plugin_set_incompatible: lacks cors)");
        let twin = FleetMember { shared_id: true, sync_detail: Some("two".into()), ..node("d", None, 5) };
        let fleet_with_twin = Fleet { items: vec![twin], ..Fleet::default() };
        let shared = Standing::of(&fleet_with_twin, 5, 100);
        assert!(!shared.reached() && shared.late(Duration::from_secs(2)).text().contains("d: two"));
        let text = standing.late(Duration::from_secs(2)).text();
        assert!(text.starts_with("error: 2 of 3 data planes do not have version 5 after 2 s"), "{text}");
        assert!(text.contains("b: plugin_set_incompatible: lacks cors\n  c: has version 4"), "{text}");
    }

    #[test]
    fn a_share_of_the_fleet_is_rounded_up_and_leaves_out_who_is_offline() {
        let gone = FleetMember { connected: false, ..node("gone", None, 1) };
        let items = vec![node("a", None, 5), node("b", None, 5), node("c", None, 4), gone];
        let fleet = Fleet { items, ..Fleet::default() };
        let reached = |percent: u8| Standing::of(&fleet, 5, percent).reached();
        assert_eq!((reached(100), reached(67), reached(66), reached(1)), (false, false, true, true));
        assert_eq!(Standing::of(&fleet, 5, 66).line(), "DP 2/3 have version 5, 1 offline");
        assert!(Standing::of(&Fleet::default(), 5, 100).reached(), "nobody to wait for");
    }

    #[test]
    fn a_fleet_that_is_lost_as_a_whole_has_not_confirmed_anything() {
        let away =
            |state: &str| FleetMember { connected: false, state: Some(state.to_owned()), ..node(state, None, 4) };
        let fleet = Fleet { items: vec![away("offline"), away("left")], ..Fleet::default() };
        let standing = Standing::of(&fleet, 5, 50);
        assert!(!standing.reached());
        assert_eq!(standing.line(), "no data plane is connected, 2 offline");
        let text = standing.late(Duration::from_secs(2)).text();
        let expected = "error: no data plane is connected after 2 s to confirm version 5; these are offline:\n  offline: has version 4\n";
        assert!(text.starts_with(expected), "{text}");
        let gone = Fleet { items: vec![away("left")], ..Fleet::default() };
        assert!(Standing::of(&gone, 5, 100).reached(), "they said goodbye");
        let back = Fleet { items: vec![away("offline"), node("a", None, 5)], ..Fleet::default() };
        assert!(Standing::of(&back, 5, 100).reached(), "somebody confirmed, and who is offline is left out");
    }

    #[test]
    fn what_to_wait_for_is_all_a_share_or_a_time() {
        let all = Awaited { percent: 100, limit: None };
        assert_eq!(awaited("all"), Ok(all));
        assert_eq!(awaited("80%"), Ok(Awaited { percent: 80, limit: None }));
        assert_eq!(awaited("30s"), Ok(Awaited { percent: 100, limit: Some(Duration::from_secs(30)) }));
        for wrong in ["0%", "101%", "%", "some", ""] {
            assert!(awaited(wrong).is_err(), "{wrong}");
        }
    }
}
