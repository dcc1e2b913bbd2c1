//! What is measured, and what is wanted of it.

use crate::proxies::Kind::{self, Gwctl, GwctlKeyAuth, GwctlKeyAuthRateLimiting, Haproxy, Nginx, NginxAsKong};

/// What the clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    Small { connections: u32 },
    Large,
    TlsKept,
    TlsHandshakes,
    Rate,
    Idle,
}

/// The most a figure may be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// Beside the figure it is compared with.
    Ratio(f64),
    /// In its own unit.
    Figure(f64),
}

impl Wanted {
    pub(crate) fn value(self) -> f64 {
        match self {
            Self::Ratio(limit) | Self::Figure(limit) => limit,
        }
    }

    /// The one of the two that is judged.
    pub(crate) fn figure(self, figure: f64, ratio: f64) -> f64 {
        match self {
            Self::Ratio(_) => ratio,
            Self::Figure(_) => figure,
        }
    }
}

pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) load: Load,
    pub(crate) wanted: Option<Wanted>,
    /// Another line of the part to compare with than nginx under the same load.
    pub(crate) beside: Option<usize>,
}

pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) lines: &'static [Line],
}

const fn told(kind: Kind, load: Load) -> Line {
    Line { kind, load, wanted: None, beside: None }
}

const fn judged(kind: Kind, load: Load, wanted: Wanted) -> Line {
    Line { kind, load, wanted: Some(wanted), beside: None }
}

const SMALL: Load = Load::Small { connections: 64 };
const BUSY: Load = Load::Small { connections: 512 };

pub(crate) const PARTS: [Part; 5] = [
    Part {
        name: "small",
        lines: &[
            told(Nginx, SMALL),
            told(Haproxy, SMALL),
            judged(Gwctl, SMALL, Wanted::Ratio(1.05)),
            told(GwctlKeyAuth, SMALL),
            judged(GwctlKeyAuthRateLimiting, SMALL, Wanted::Ratio(1.4)),
            // No slower for each request than with 64: a tenth is left to chance.
            Line { kind: Gwctl, load: BUSY, wanted: Some(Wanted::Ratio(1.1)), beside: Some(2) },
            told(NginxAsKong, SMALL),
        ],
    },
    Part {
        name: "large",
        lines: &[told(Nginx, Load::Large), told(Haproxy, Load::Large), judged(Gwctl, Load::Large, Wanted::Ratio(1.0))],
    },
    Part {
        name: "tls",
        lines: &[
            told(Nginx, Load::TlsKept),
            told(Haproxy, Load::TlsKept),
            judged(Gwctl, Load::TlsKept, Wanted::Ratio(1.0)),
            told(Nginx, Load::TlsHandshakes),
            told(Haproxy, Load::TlsHandshakes),
            judged(Gwctl, Load::TlsHandshakes, Wanted::Ratio(0.75)),
        ],
    },
    Part {
        name: "rate",
        lines: &[
            told(Nginx, Load::Rate),
            told(Haproxy, Load::Rate),
            judged(Gwctl, Load::Rate, Wanted::Ratio(1.0)),
            told(NginxAsKong, Load::Rate),
        ],
    },
    Part {
        name: "idle",
        lines: &[told(Nginx, Load::Idle), told(Haproxy, Load::Idle), judged(Gwctl, Load::Idle, Wanted::Figure(120.0))],
    },
];

impl Load {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Small { connections } => format!("{connections} connections"),
            Self::Large => "100 KB".to_owned(),
            Self::TlsKept => "TLS, kept".to_owned(),
            Self::TlsHandshakes => "TLS, a handshake each".to_owned(),
            Self::Rate => "p99 at 15,000 a second".to_owned(),
            Self::Idle => "10,000 idle connections".to_owned(),
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Rate => "ms ",
            Self::Idle => "MB ",
            _ => "us ",
        }
    }

    pub(crate) fn is_tls(self) -> bool {
        matches!(self, Self::TlsKept | Self::TlsHandshakes)
    }
}
