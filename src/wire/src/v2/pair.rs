//! Both machines joined by a network that exists only in memory, on a clock that only moves when told to.

use super::cp_link::{self, CpLink};
use super::dp_link::{self, DpLink, Outcome, Settings, Standing};
use super::{Deltas, Dialect, Hello, sync};
use crate::network::{End, Network};
use crate::{Frame, Moment};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

mod tests;

const LIMIT: usize = 1 << 20;

/// A moment and what happens then.
type Due = (Moment, fn(&mut Pair));

/// A configuration: rows by id.
type Rows = BTreeMap<u64, u64>;

/// What happened, in numbers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    dials: u32,
    connects: u32,
    pulls: u32,
    notifications: u32,
    fulls: u32,
    applies: u32,
}

/// The control plane's store: every version changes one row.
#[derive(Debug, Default)]
struct Store {
    rows: Rows,
    /// Row and value of each version since `oldest`; None is a deletion.
    log: Vec<(u64, Option<u64>)>,
    oldest: u64,
}

impl Store {
    fn version(&self) -> u64 {
        self.oldest + self.log.len() as u64
    }

    fn change(&mut self, row: u64, value: Option<u64>) {
        match value {
            Some(value) => _ = self.rows.insert(row, value),
            None => _ = self.rows.remove(&row),
        }
        self.log.push((row, value));
    }

    /// The log no longer leads on from before.
    fn forget(&mut self) {
        self.oldest = self.version();
        self.log.clear();
    }

    /// The changes since a version; everything where they do not lead on, or as often as Kong 3.10 sends it.
    fn answer(&self, version: u64, dialect: Dialect) -> String {
        let latest = self.version();
        let row = |row: u64, value: Option<u64>, version: u64| {
            let entity = value.map(|value| json!({"id": row, "value": value}));
            let version = dialect.value(version);
            json!({"type": "rows", "pk": {"id": row}, "entity": entity, "version": version, "ws_id": "w"})
        };
        let leads_on = match dialect {
            Dialect::Integers => version > 0 && (self.oldest..=latest).contains(&version),
            Dialect::Texts => version == latest,
        };
        let deltas: Vec<Value> = match leads_on {
            true => {
                let missing = self.log.iter().zip(self.oldest + 1..).filter(|(_, made)| *made > version);
                missing.map(|((id, value), version)| row(*id, *value, version)).collect()
            }
            false => self.rows.iter().map(|(id, value)| row(*id, Some(*value), latest)).collect(),
        };
        let mut answer = json!({"default": {"deltas": deltas}});
        answer["default"][dialect.flag()] = (!leads_on).into();
        answer.to_string()
    }
}

/// A control plane and a data plane with a network between them.
struct Pair {
    seed: u64,
    network: Network,
    apply_time: Duration,
    dp: DpLink,
    cp: Option<CpLink>,
    control_plane_up: bool,
    dialing: Option<Moment>,
    applying: Option<(Moment, Deltas, u64)>,
    store: Store,
    /// What the data plane has.
    rows: Rows,
    /// The version the control plane knows the data plane has.
    seen: Option<u64>,
    tally: Tally,
}

impl Pair {
    /// `kong` is the version the data plane stands for.
    fn new(seed: u64, kong: &str) -> Self {
        let hello =
            Hello { capabilities: vec![sync::CAPABILITY.to_owned()], version: kong.to_owned(), ..Hello::default() };
        let mut pair = Self {
            seed,
            network: Network::default(),
            apply_time: Duration::from_millis(300),
            dp: DpLink::new(Settings { control_planes: 1, hello, version: 0, limit: LIMIT, sync: true, seed }),
            cp: None,
            control_plane_up: true,
            dialing: None,
            applying: None,
            store: Store::default(),
            rows: Rows::new(),
            seen: None,
            tally: Tally::default(),
        };
        pair.store.change(0, Some(0));
        pair.dp.handle_command(pair.network.now, dp_link::Command::Start);
        pair.run_effects();
        pair
    }

    fn change(&mut self, row: u64, value: Option<u64>) {
        self.store.change(row, value);
        if let Some(cp) = &mut self.cp {
            cp.handle_command(self.network.now, cp_link::Command::NewVersion(self.store.version()));
        }
        self.run_effects();
    }

    /// Breaks the connection for both ends at once.
    fn cut(&mut self) {
        self.network.connect();
        self.cp = None;
        self.dp.handle_lost(self.network.now, dp_link::Reason::PeerLost("cut".to_owned()));
        self.run_effects();
    }

    fn set_control_plane(&mut self, up: bool) {
        self.control_plane_up = up;
        if !up {
            self.cut();
        }
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let until = self.network.now + time;
        while let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= until) {
            self.network.now = self.network.now.max(at);
            due(self);
            self.run_effects();
        }
        self.network.now = until;
    }

    /// What the network or one end does next.
    fn next_due(&self) -> Option<Due> {
        let dues: [Option<Due>; 6] = [
            self.network.arrives_at(End::DataPlane).map(|at| (at, Self::arrive_at_dp as fn(&mut Pair))),
            self.network.arrives_at(End::ControlPlane).map(|at| (at, Self::arrive_at_cp as fn(&mut Pair))),
            self.dialing.map(|at| (at, Self::dialed as fn(&mut Pair))),
            self.applying.as_ref().map(|(at, _, _)| (*at, Self::applied as fn(&mut Pair))),
            self.dp.next_timeout().map(|at| (at, (|pair| pair.dp.handle_timeout(pair.network.now)) as fn(&mut Pair))),
            self.cp.as_ref().and_then(CpLink::next_timeout).map(|at| (at, Self::cp_timeout as fn(&mut Pair))),
        ];
        dues.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn cp_timeout(&mut self) {
        if let Some(cp) = &mut self.cp {
            cp.handle_timeout(self.network.now);
        }
    }

    fn arrive_at_dp(&mut self) {
        match self.network.receive(End::DataPlane) {
            Some(frame) => self.dp.handle_frame(self.network.now, frame),
            None => self.dp.handle_lost(self.network.now, dp_link::Reason::PeerLost("end".to_owned())),
        }
    }

    fn arrive_at_cp(&mut self) {
        let frame = self.network.receive(End::ControlPlane);
        let Some(cp) = &mut self.cp else { return };
        match frame {
            Some(frame) => cp.handle_frame(self.network.now, frame),
            None => cp.handle_lost(cp_link::Reason::PeerLost("end".to_owned())),
        }
    }

    fn dialed(&mut self) {
        self.dialing = None;
        if self.control_plane_up {
            self.network.connect();
            let settings = cp_link::Settings {
                version: self.store.version(),
                sync: true,
                limit: LIMIT,
                frame_limit: LIMIT,
                cluster_id: None,
            };
            self.cp = Some(CpLink::new(self.network.now, settings));
            self.tally.connects += 1;
            let standing = Standing { version: self.dp.version(), cluster_id: None };
            self.dp.handle_opened(self.network.now, standing);
        } else {
            self.dp.handle_lost(self.network.now, dp_link::Reason::PeerLost("refused".to_owned()));
        }
    }

    fn applied(&mut self) {
        let Some((_, deltas, base)) = self.applying.take() else { return };
        assert_eq!(base, self.dp.version(), "seed {}", self.seed);
        let version = deltas.version().unwrap();
        if deltas.wipe {
            self.rows.clear();
            self.tally.fulls += 1;
        }
        for delta in deltas.deltas {
            let id = delta.pk["id"].as_u64().unwrap();
            match delta.entity {
                Some(row) => _ = self.rows.insert(id, row["value"].as_u64().unwrap()),
                None => _ = self.rows.remove(&id),
            }
        }
        self.dp.handle_command(self.network.now, dp_link::Command::Applied(Outcome::Applied(version)));
    }

    fn run_effects(&mut self) {
        loop {
            if let Some(effect) = self.dp.poll_effect() {
                self.dp_effect(effect);
            } else if let Some(effect) = self.cp.as_mut().and_then(CpLink::poll_effect) {
                self.cp_effect(effect);
            } else {
                break;
            }
        }
        let broken = self.dp.broken_invariant().or(self.cp.as_ref().and_then(CpLink::broken_invariant));
        assert_eq!(broken, None, "seed {}, at {:?}", self.seed, self.network.now);
    }

    fn dp_effect(&mut self, effect: dp_link::Effect) {
        match effect {
            dp_link::Effect::Dial { .. } => {
                self.tally.dials += 1;
                self.dialing = Some(self.network.now + self.network.latency * 3);
            }
            dp_link::Effect::Send(frame) => self.network.send(End::ControlPlane, Some(frame)),
            dp_link::Effect::Apply { deltas, base } => {
                assert!(self.applying.is_none(), "two applies at once, seed {}", self.seed);
                self.tally.applies += 1;
                self.applying = Some((self.network.now + self.apply_time, deltas, base));
            }
            dp_link::Effect::HangUp(_) => {
                self.dialing = None;
                self.network.deafen(End::DataPlane);
                self.network.send(End::ControlPlane, Some(Frame::Close));
            }
            dp_link::Effect::Report(dp_link::Report::Refused { fault }) => panic!("{fault}, seed {}", self.seed),
            dp_link::Effect::Report(_) | dp_link::Effect::Fallback(_) | dp_link::Effect::LogLevel { .. } => {}
        }
    }

    fn cp_effect(&mut self, effect: cp_link::Effect) {
        match effect {
            cp_link::Effect::Send(frame) => {
                self.tally.notifications += u32::from(notifies(&frame));
                self.network.send(End::DataPlane, Some(frame));
            }
            cp_link::Effect::Pull { id, version, dialect } => {
                self.tally.pulls += 1;
                let outcome = Ok(self.store.answer(version, dialect).into());
                if let Some(cp) = &mut self.cp {
                    cp.handle_command(self.network.now, cp_link::Command::Answer { id, outcome });
                }
            }
            cp_link::Effect::Record(held) => self.seen = Some(held.version),
            cp_link::Effect::HangUp(_) => {
                self.network.send(End::DataPlane, Some(Frame::Close));
                self.network.send(End::DataPlane, None);
                self.network.deafen(End::ControlPlane);
                self.cp = None;
            }
            cp_link::Effect::Joined(_)
            | cp_link::Effect::Report(_)
            | cp_link::Effect::Refused(_)
            | cp_link::Effect::Asked { .. } => {}
        }
    }

    /// The data plane has what the store has, and the control plane knows it.
    fn is_in_sync(&self) -> bool {
        let newest = self.store.version();
        self.rows == self.store.rows && self.dp.version() == newest && self.seen == Some(newest)
    }
}

fn notifies(frame: &Frame) -> bool {
    matches!(super::Message::decode(frame, LIMIT), Ok(super::Message::Call { method, .. }) if method == sync::NOTIFY)
}
