//! Both machines joined by a network that exists only in memory, on a clock that only moves when told to.

use super::cp_link::{self, CpLink};
use super::dp_link::{self, DpLink, Outcome, Report, Settings};
use super::reconfigure::{Examined, Limits, encode, examine};
use super::{BasicInfo, PluginVersion};
use crate::compat::{SyncStatus, Version};
use crate::network::{End, Network};
use crate::{ConfigHash, ConfigTable, Frame, Moment};
use bytes::Bytes;
use serde_json::Map;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

mod tests;

/// What happened, in numbers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    dials: u32,
    connects: u32,
    pings: u32,
    pongs: u32,
    pushes: u32,
    applies: u32,
}

/// A control plane and a data plane with a network between them.
struct Pair {
    seed: u64,
    network: Network,
    /// How long a payload takes to be applied.
    apply_time: Duration,
    dp: DpLink,
    cp: Option<CpLink>,
    control_plane_up: bool,
    dialing: Option<Moment>,
    applying: Option<(Moment, Bytes, ConfigHash)>,
    /// When the control plane's write under way is complete.
    writing: Option<Moment>,
    table: ConfigTable,
    /// What the control plane knows of the data plane.
    seen: Option<(SyncStatus, ConfigHash)>,
    tally: Tally,
}

/// What the network or one end does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    ToDp,
    ToCp,
    Written,
    Dialed,
    Applied,
    DpTimer,
    CpTimer,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let acl = PluginVersion { name: "acl".to_owned(), version: Some("3.9.1".to_owned()) };
        let info = BasicInfo { plugins: vec![acl], ..BasicInfo::default() };
        let settings =
            Settings { control_planes: 1, basic_info: info.encode(&Map::new()), hash: ConfigHash::zero(), seed };
        let mut pair = Self {
            seed,
            network: Network::default(),
            apply_time: Duration::from_millis(300),
            dp: DpLink::new(settings),
            cp: None,
            control_plane_up: true,
            dialing: None,
            applying: None,
            writing: None,
            table: ConfigTable::default(),
            seen: None,
            tally: Tally::default(),
        };
        pair.change(0);
        pair.dp.handle_command(pair.network.now, dp_link::Command::Start);
        pair.run_effects();
        pair
    }

    /// A change of the configuration: one service with this name.
    fn change(&mut self, name: u32) {
        let row = serde_json::json!({"id": "s", "name": format!("service-{name}")});
        self.table = [("services".to_owned(), vec![row.as_object().unwrap().clone()])].into_iter().collect();
        let profile = Arc::new(self.table.profile(|_| None, BTreeSet::new(), false));
        if let Some(cp) = &mut self.cp {
            cp.handle_command(self.network.now, cp_link::Command::Payload(profile));
        }
        self.run_effects();
    }

    /// Breaks the connection for both ends at once.
    fn cut(&mut self) {
        self.forget_connection();
        if let Some(mut cp) = self.cp.take() {
            cp.handle_lost(self.network.now, cp_link::Reason::PeerLost("cut".to_owned()));
            self.check(cp.broken_invariant());
        }
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
            self.happen(due);
            self.run_effects();
        }
        self.network.now = until;
    }

    fn next_due(&self) -> Option<(Moment, Due)> {
        [
            self.network.arrives_at(End::DataPlane).map(|at| (at, Due::ToDp)),
            self.network.arrives_at(End::ControlPlane).map(|at| (at, Due::ToCp)),
            self.writing.map(|at| (at, Due::Written)),
            self.dialing.map(|at| (at, Due::Dialed)),
            self.applying.as_ref().map(|(at, _, _)| (*at, Due::Applied)),
            self.dp.next_timeout().map(|at| (at, Due::DpTimer)),
            self.cp.as_ref().and_then(CpLink::next_timeout).map(|at| (at, Due::CpTimer)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::DpTimer => self.dp.handle_timeout(self.network.now),
            Due::CpTimer => {
                if let Some(cp) = &mut self.cp {
                    cp.handle_timeout(self.network.now);
                }
            }
            Due::ToDp => match self.network.receive(End::DataPlane) {
                Some(frame) => self.dp.handle_frame(self.network.now, frame),
                None => self.dp.handle_lost(self.network.now, dp_link::Reason::PeerLost("end".to_owned())),
            },
            Due::ToCp => {
                let frame = self.network.receive(End::ControlPlane);
                if let Some(cp) = &mut self.cp {
                    match frame {
                        Some(frame) => cp.handle_frame(self.network.now, frame),
                        None => cp.handle_lost(self.network.now, cp_link::Reason::PeerLost("end".to_owned())),
                    }
                }
            }
            Due::Written => {
                self.writing = None;
                if let Some(cp) = &mut self.cp {
                    cp.handle_command(self.network.now, cp_link::Command::Written);
                }
            }
            Due::Dialed => self.dialed(),
            Due::Applied => self.applied(),
        }
    }

    fn dialed(&mut self) {
        self.dialing = None;
        if self.control_plane_up {
            self.forget_connection();
            self.cp = Some(CpLink::new(self.network.now, "3.9.1", Version::new(3, 9, 1)));
            self.tally.connects += 1;
            self.dp.handle_opened(self.network.now);
        } else {
            self.dp.handle_lost(self.network.now, dp_link::Reason::PeerLost("refused".to_owned()));
        }
    }

    /// The real codec decides what a payload is.
    fn applied(&mut self) {
        let Some((_, payload, in_force)) = self.applying.take() else { return };
        let outcome = match examine(&payload, &in_force, &Limits::default()) {
            Ok(Examined::Change(change)) => Outcome::Applied(change.config_hash),
            Ok(Examined::Unchanged) => Outcome::Unchanged,
            Ok(Examined::OtherType) => Outcome::Skipped,
            Err(error) => error.into(),
        };
        self.dp.handle_command(self.network.now, dp_link::Command::Applied(outcome));
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
        self.check(self.dp.broken_invariant());
        self.check(self.cp.as_ref().and_then(CpLink::broken_invariant));
    }

    fn dp_effect(&mut self, effect: dp_link::Effect) {
        match effect {
            dp_link::Effect::Dial { .. } => {
                self.tally.dials += 1;
                self.dialing = Some(self.network.now + self.network.latency * 3);
            }
            dp_link::Effect::Send(frame) => {
                self.tally.pings += u32::from(matches!(frame, Frame::Ping(_)));
                self.network.send(End::ControlPlane, Some(frame));
            }
            dp_link::Effect::Apply { payload, in_force } => {
                assert!(self.applying.is_none(), "two payloads applied at once, seed {}", self.seed);
                self.tally.applies += 1;
                self.applying = Some((self.network.now + self.apply_time, payload, in_force));
            }
            dp_link::Effect::HangUp(_) => {
                self.dialing = None;
                self.network.deafen(End::DataPlane);
                self.network.send(End::ControlPlane, Some(Frame::Close));
            }
            dp_link::Effect::Report(Report::Refused { fault }) => panic!("refused: {fault}, seed {}", self.seed),
            dp_link::Effect::Report(_) => {}
        }
    }

    fn cp_effect(&mut self, effect: cp_link::Effect) {
        match effect {
            cp_link::Effect::WantPayload { .. } => {
                let profile = Arc::new(self.table.profile(|_| None, BTreeSet::new(), false));
                let cp = self.cp.as_mut().unwrap();
                cp.handle_command(self.network.now, cp_link::Command::Payload(profile));
            }
            cp_link::Effect::Send(frame) => {
                self.tally.pongs += 1;
                self.write(frame);
            }
            cp_link::Effect::Push => {
                self.tally.pushes += 1;
                let payload = encode(&self.table, &self.table.hashes(), 0.0, &Limits::default()).unwrap();
                self.write(Frame::Binary(payload));
            }
            cp_link::Effect::Record(record) => self.seen = Some((record.sync_status, record.config_hash)),
            cp_link::Effect::Withhold(verdict) => panic!("withheld: {verdict}, seed {}", self.seed),
            cp_link::Effect::HangUp(_) => {
                self.network.send(End::DataPlane, Some(Frame::Close));
                self.network.send(End::DataPlane, None);
                self.network.deafen(End::ControlPlane);
                self.cp = None;
                self.writing = None;
            }
        }
    }

    fn write(&mut self, frame: Frame) {
        assert!(self.writing.is_none(), "two writes at once, seed {}", self.seed);
        self.writing = Some(self.network.written_at());
        self.network.send(End::DataPlane, Some(frame));
    }

    fn forget_connection(&mut self) {
        self.network.connect();
        self.writing = None;
    }

    fn check(&self, broken: Option<&str>) {
        assert_eq!(broken, None, "seed {}, at {:?}", self.seed, self.network.now);
    }

    /// Both ends agree that the data plane serves the newest configuration.
    fn is_in_sync(&self) -> bool {
        let newest = self.table.hashes().config;
        *self.dp.hash() == newest && self.seen == Some((SyncStatus::Normal, newest))
    }
}
