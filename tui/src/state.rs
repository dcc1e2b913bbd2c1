//! What a data plane is up to, judged from a fleet document alone.

use gwctl_entities::fleet::{Fleet, FleetMember};

/// Longest silence of an online node, milliseconds: one and a half ping intervals of 30 s.
pub const ONLINE_MILLIS: u64 = 45_000;
/// Longest silence before a connected node counts as gone, milliseconds: three ping intervals.
pub const LATE_MILLIS: u64 = 90_000;
/// A node that lacks a change for longer is late even when it answers, milliseconds: a v1 node reports its hash with
/// its next ping, up to 30 s after it applied.
pub const BEHIND_MILLIS: u64 = 45_000;

/// State of a data plane, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No connection, or silent for more than [`LATE_MILLIS`].
    Offline,
    /// It said goodbye: somebody stopped it on purpose.
    Left,
    /// Connected, but the control plane sends it no configuration, or it refused the last one.
    Refused,
    /// Connected, but silent for more than [`ONLINE_MILLIS`] or behind for more than [`BEHIND_MILLIS`].
    Late,
    /// Connected and answering.
    Online,
}

impl State {
    /// Every state, the best first.
    pub const ALL: [State; 5] = [State::Online, State::Late, State::Refused, State::Left, State::Offline];

    /// Judges a member by the control plane's own clock, and by what it says of nodes with a lease.
    pub fn of(member: &FleetMember, fleet: &Fleet) -> State {
        let silent = silence(member, fleet);
        let told = member.state.as_deref();
        if !member.connected && told == Some("left") {
            State::Left
        } else if !member.connected || silent > LATE_MILLIS {
            State::Offline
        } else if member.last_error.is_some() || !compatible(member) {
            State::Refused
        } else if told == Some("late")
            || silent > ONLINE_MILLIS
            || member.lag_millis.is_some_and(|lag| lag > BEHIND_MILLIS)
        {
            State::Late
        } else {
            State::Online
        }
    }

    /// The word for it; never shown without its sign, and the sign never without the word.
    pub fn word(self) -> &'static str {
        match self {
            State::Online => "online",
            State::Late => "late",
            State::Refused => "refused",
            State::Left => "left",
            State::Offline => "offline",
        }
    }

    /// The sign before the word, so that it can be told without colour.
    pub fn sign(self, ascii: bool) -> &'static str {
        match (self, ascii) {
            (State::Online, false) => "●",
            (State::Late, false) => "▲",
            (State::Refused, false) => "✕",
            (State::Left, false) => "◌",
            (State::Offline, false) => "○",
            (State::Online, true) => "+",
            (State::Late, true) => "!",
            (State::Refused, true) => "x",
            (State::Left, true) => "-",
            (State::Offline, true) => "o",
        }
    }

    /// Sign and word.
    pub fn label(self, ascii: bool) -> String {
        format!("{} {}", self.sign(ascii), self.word())
    }
}

/// Whether the control plane serves it: `normal`, or `unknown` before the first ping told.
fn compatible(member: &FleetMember) -> bool {
    matches!(member.sync_status.as_str(), "normal" | "unknown" | "")
}

/// Milliseconds since the last sign of life; 0 when clocks disagree.
pub fn silence(member: &FleetMember, fleet: &Fleet) -> u64 {
    fleet.now_millis.saturating_sub(member.last_seen_millis)
}

/// Whether it has the configuration in force; None while one of the two hashes is unknown. A node with protocol v2
/// reports its version in place of a hash, one with gwctl's own sync the digest of its version.
pub fn same_hash(member: &FleetMember, fleet: &Fleet) -> Option<bool> {
    if matches!(member.protocol.as_deref(), Some("v2" | "gwctl")) {
        return versions_behind(member, fleet).map(|behind| behind == 0);
    }
    Some(member.config_hash.as_ref()? == fleet.config_hash.as_ref()?)
}

/// Changes it lacks; None when it never reported a version.
pub fn versions_behind(member: &FleetMember, fleet: &Fleet) -> Option<u64> {
    let target = member.target_version.unwrap_or(fleet.version);
    member.applied_version.map(|applied| target.saturating_sub(applied))
}

/// Milliseconds that all but one in a hundred of its recent changes took at most; None when none was measured.
pub fn slowest(member: &FleetMember) -> Option<u64> {
    member.lags.map(|lags| lags.p99_millis)
}

/// Whole days until its certificate ends, negative once it has; None when the control plane does not know.
pub fn certificate_days(member: &FleetMember, fleet: &Fleet) -> Option<i64> {
    let end = i64::try_from(member.certificate_expires_at?).ok()?;
    let now = i64::try_from(fleet.now_millis / 1000).ok()?;
    Some((end - now).div_euclid(86_400))
}

/// What is wrong with it in words: the refusal of a configuration, a sync status other than `normal`.
pub fn note(member: &FleetMember) -> Option<String> {
    if let Some(error) = &member.last_error {
        return Some(format!("refused: {error}"));
    }
    match (member.sync_status.as_str(), &member.sync_detail) {
        ("normal" | "", None) => None,
        ("normal" | "", Some(detail)) => Some(detail.clone()),
        (status, Some(detail)) => Some(format!("{status}: {detail}")),
        (status, None) => Some(status.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(member: FleetMember) -> State {
        State::of(&member, &Fleet { now_millis: 1_000_000, ..Fleet::default() })
    }

    fn seen(seconds_ago: u64) -> FleetMember {
        FleetMember {
            connected: true,
            sync_status: "normal".into(),
            last_seen_millis: 1_000_000 - seconds_ago * 1000,
            ..FleetMember::default()
        }
    }

    #[test]
    fn a_node_that_reports_versions_is_judged_by_them() {
        let fleet = Fleet { version: 7, config_hash: Some("f".into()), ..Fleet::default() };
        let member = |applied| FleetMember {
            protocol: Some("v2".into()),
            config_hash: Some("00000000000000000000000000000007".into()),
            applied_version: Some(applied),
            ..FleetMember::default()
        };
        assert_eq!(same_hash(&member(7), &fleet), Some(true));
        assert_eq!(same_hash(&member(6), &fleet), Some(false));
    }

    #[test]
    fn silence_turns_online_into_late_and_late_into_offline() {
        assert_eq!(judged(seen(45)), State::Online);
        assert_eq!(judged(seen(46)), State::Late);
        assert_eq!(judged(seen(90)), State::Late);
        assert_eq!(judged(seen(91)), State::Offline);
    }

    #[test]
    fn a_node_without_connection_is_offline_whatever_its_status_says() {
        assert_eq!(judged(FleetMember { connected: false, ..seen(1) }), State::Offline);
    }

    #[test]
    fn a_node_that_said_goodbye_has_left_and_one_that_came_back_has_not() {
        let told = |state: &str, connected| FleetMember { state: Some(state.into()), connected, ..seen(1) };
        assert_eq!(judged(told("left", false)), State::Left);
        assert_eq!(judged(told("online", true)), State::Online);
        assert_eq!(judged(told("late", true)), State::Late, "the control plane knows the lease");
        assert_eq!(judged(told("offline", false)), State::Offline);
    }

    #[test]
    fn a_node_that_gets_or_takes_no_configuration_is_refused() {
        let status = FleetMember { sync_status: "plugin_set_incompatible".into(), ..seen(1) };
        assert_eq!(judged(status), State::Refused);
        assert_eq!(judged(FleetMember { last_error: Some("bad route".into()), ..seen(1) }), State::Refused);
    }

    #[test]
    fn a_node_behind_for_long_is_late() {
        assert_eq!(judged(FleetMember { lag_millis: Some(45_001), ..seen(1) }), State::Late);
        assert_eq!(judged(FleetMember { lag_millis: Some(2_000), ..seen(1) }), State::Online);
    }

    #[test]
    fn an_expired_certificate_has_negative_days() {
        let fleet = Fleet { now_millis: 86_400_000 * 10, ..Fleet::default() };
        let ends = |end| certificate_days(&FleetMember { certificate_expires_at: Some(end), ..seen(0) }, &fleet);
        assert_eq!(ends(86_400 * 12 + 1), Some(2));
        assert_eq!(ends(86_400 * 10 - 1), Some(-1));
    }
}
