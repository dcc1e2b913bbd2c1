//! The columns of the fleet: title, text of a cell, order.

use crate::format::{age, duration, plain, short_hash};
use crate::state::{State, certificate_days, note, same_hash, silence, slowest, versions_behind};
use crate::theme::Theme;
use gwctl_entities::fleet::{Fleet, FleetMember};
use std::cmp::Ordering;

/// A column of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    State,
    Name,
    Version,
    Seen,
    Config,
    Behind,
    Lag,
    Certificate,
    Address,
    Labels,
    Mode,
    Note,
    Slowest,
}

impl Column {
    /// In the order of the screen; the first two stay when the others are scrolled.
    pub(crate) const ALL: [Column; 13] = [
        Column::State,
        Column::Name,
        Column::Version,
        Column::Seen,
        Column::Config,
        Column::Behind,
        Column::Lag,
        Column::Certificate,
        Column::Address,
        Column::Labels,
        Column::Mode,
        Column::Note,
        Column::Slowest,
    ];
    pub(crate) const FIXED: usize = 2;

    pub(crate) fn title(self) -> &'static str {
        match self {
            Column::State => "STATE",
            Column::Name => "NAME",
            Column::Version => "VERSION",
            Column::Seen => "SEEN",
            Column::Config => "CONFIG",
            Column::Behind => "BEHIND",
            Column::Lag => "LAG",
            Column::Slowest => "P99",
            Column::Certificate => "CERT",
            Column::Mode => "MODE",
            Column::Address => "ADDRESS",
            Column::Labels => "LABELS",
            Column::Note => "NOTE",
        }
    }

    /// Widest the column gets.
    pub(crate) fn limit(self) -> usize {
        match self {
            Column::Name => 24,
            Column::Address => 21,
            Column::Labels => 32,
            Column::Note => 60,
            _ => 12,
        }
    }

    pub(crate) fn cell(self, member: &FleetMember, fleet: &Fleet, theme: Theme) -> String {
        let unknown = || "-".to_owned();
        match self {
            Column::State => State::of(member, fleet).label(theme.ascii),
            Column::Name => plain(&member.name),
            Column::Version => plain(&member.version),
            Column::Seen => age(silence(member, fleet)),
            Column::Config => match (&member.config_hash, same_hash(member, fleet)) {
                (Some(hash), Some(true)) => format!("{} =", plain(&short_hash(hash))),
                (Some(hash), Some(false)) => format!("{} {}", plain(&short_hash(hash)), theme.differs()),
                (Some(hash), None) => plain(&short_hash(hash)),
                (None, _) => unknown(),
            },
            Column::Behind => versions_behind(member, fleet).map_or_else(unknown, |versions| versions.to_string()),
            Column::Lag => match member.lag_millis {
                Some(0) => "0".to_owned(),
                Some(lag) => duration(lag),
                None => unknown(),
            },
            Column::Slowest => slowest(member).map_or_else(unknown, duration),
            Column::Mode => member.protocol.as_deref().map_or_else(unknown, plain),
            Column::Certificate => certificate_days(member, fleet).map_or_else(unknown, |days| format!("{days}d")),
            Column::Address => plain(&member.address),
            Column::Labels => {
                let labels = member.labels.iter().map(|(key, value)| format!("{key}={value}"));
                plain(&labels.collect::<Vec<_>>().join(","))
            }
            Column::Note => note(member).map(|note| plain(&note)).unwrap_or_default(),
        }
    }

    /// Order of two rows: what needs attention first, so the worst for numbers.
    pub(crate) fn compare(self, left: &FleetMember, right: &FleetMember, fleet: &Fleet) -> Ordering {
        let worst = |value: &dyn Fn(&FleetMember) -> Option<u64>| value(right).cmp(&value(left));
        let text = |value: &dyn Fn(&FleetMember) -> String| value(left).cmp(&value(right));
        match self {
            Column::State => State::of(left, fleet).cmp(&State::of(right, fleet)),
            Column::Name => left.name.cmp(&right.name),
            Column::Version => left.version.cmp(&right.version),
            Column::Seen => worst(&|member| Some(silence(member, fleet))),
            Column::Config => same_hash(left, fleet).cmp(&same_hash(right, fleet)),
            Column::Behind => worst(&|member| versions_behind(member, fleet)),
            Column::Lag => worst(&|member| member.lag_millis),
            Column::Slowest => worst(&slowest),
            Column::Mode => left.protocol.cmp(&right.protocol),
            Column::Certificate => {
                let days = |member| certificate_days(member, fleet).unwrap_or(i64::MAX);
                days(left).cmp(&days(right))
            }
            Column::Address => left.address.cmp(&right.address),
            Column::Labels => left.labels.cmp(&right.labels),
            Column::Note => text(&|member| note(member).unwrap_or_else(|| "\u{10ffff}".to_owned())),
        }
    }
}
