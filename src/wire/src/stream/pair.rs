//! Both ends joined by a network that exists only in memory, on a clock that only moves when told to, with a store, a
//! disk and everything that can go wrong between them.

use super::cp::{self, Copied, CpStream, Cursor, Fetched, Settings, Start, Withheld};
use super::dp::{self, DpStream, Outcome, Work};
use super::message::{Applied, FromCp, Held, Hello, Row};
use super::{COPY_PAUSE, HEARTBEAT};
use crate::backoff::Random;
use crate::{Frame, Moment};
use disk::Disk;
use past::Past;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use store::{Store, digest};

mod disk;
mod past;
mod random;
mod store;
mod tests;

/// One direction of a connection: frames with the moment of their arrival; None is the end of the connection.
type Pipe = VecDeque<(Moment, Option<Frame>)>;

/// A configuration: values by row.
type Rows = BTreeMap<u64, u64>;

/// A moment and what happens then.
type Due = (Moment, fn(&mut Pair));

/// Rows with this value are refused by the data plane.
const BAD: u64 = 13;

/// Rows in a piece of a copy, and changes in a piece of its end.
const PIECE: usize = 2;

/// A control plane and a data plane with a network between them.
struct Pair {
    seed: u64,
    random: Random,
    now: Moment,
    /// How far the clocks of the ends are ahead.
    dp_ahead: Duration,
    cp_ahead: Duration,
    latency: Duration,
    work_time: Duration,
    dp: Option<DpStream>,
    cp: Option<CpStream>,
    to_dp: Pipe,
    to_cp: Pipe,
    past: Vec<Past>,
    control_plane_up: bool,
    data_plane_up: bool,
    vanished: bool,
    stalled_until: Moment,
    redial_at: Option<Moment>,
    working: Option<(Moment, Work)>,
    /// What the store is asked, and when it answers.
    asked: VecDeque<(Moment, cp::Effect)>,
    store: Store,
    /// Every store there was, by its id.
    stores: BTreeMap<u64, Store>,
    disk: Disk,
    disk_full: bool,
    withheld: Option<Withheld>,
    /// Version and digest the control plane knows the data plane has.
    seen: Option<(u64, String)>,
    refusals: u32,
    copies: u32,
    applies: u32,
    farewell: Option<Duration>,
    /// Reports that came by a connection after a newer one had begun.
    late_reports: u32,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut pair = Self {
            seed,
            random: Random(seed),
            now: Duration::ZERO,
            dp_ahead: Duration::ZERO,
            cp_ahead: Duration::ZERO,
            latency: Duration::from_millis(20),
            work_time: Duration::from_millis(30),
            dp: None,
            cp: None,
            to_dp: Pipe::new(),
            to_cp: Pipe::new(),
            past: Vec::new(),
            control_plane_up: true,
            data_plane_up: true,
            vanished: false,
            stalled_until: Duration::ZERO,
            redial_at: Some(Duration::ZERO),
            working: None,
            asked: VecDeque::new(),
            store: Store::new(1),
            stores: BTreeMap::new(),
            disk: Disk::default(),
            disk_full: false,
            withheld: None,
            seen: None,
            refusals: 0,
            copies: 0,
            applies: 0,
            farewell: None,
            late_reports: 0,
        };
        pair.store.change(0, Some(0));
        pair
    }

    fn pick(&mut self, below: u64) -> u64 {
        self.random.between(Duration::ZERO, Duration::from_millis(below - 1)).as_millis() as u64
    }

    fn change(&mut self, row: u64, value: Option<u64>) {
        self.store.change(row, value);
        let newest = self.store.version();
        self.tell_cp(cp::Command::Newest(newest));
    }

    fn tell_cp(&mut self, command: cp::Command) {
        let now = self.now + self.cp_ahead;
        for mut past in std::mem::take(&mut self.past) {
            past.cp.handle_command(now, command.clone());
            self.settle_past(&mut past);
            if !past.cp.is_closed() {
                self.past.push(past);
            }
        }
        if let Some(cp) = &mut self.cp {
            cp.handle_command(now, command);
        }
        self.run_effects();
    }

    /// The clock of one end is suddenly ahead.
    fn jump(&mut self, of_data_plane: bool, time: Duration) {
        match of_data_plane {
            true => self.dp_ahead += time,
            false => self.cp_ahead += time,
        }
    }

    /// Breaks the connection for the data plane; the control plane hears of it when what is on its way has arrived.
    fn cut_for_data_plane(&mut self) {
        if let Some(dp) = &mut self.dp {
            dp.handle_lost("cut".to_owned());
        }
        self.run_effects();
    }

    /// Breaks the connection for both ends at once.
    fn cut(&mut self) {
        self.forget_connection();
        self.cp = None;
        if let Some(dp) = &mut self.dp {
            dp.handle_lost("cut".to_owned());
        }
        self.run_effects();
    }

    fn forget_connection(&mut self) {
        self.to_dp.clear();
        self.to_cp.clear();
        self.asked.clear();
        self.vanished = false;
    }

    /// Nothing arrives any more and nobody is told.
    fn vanish(&mut self) {
        self.to_dp.clear();
        self.to_cp.clear();
        self.vanished = true;
    }

    fn stall(&mut self, time: Duration) {
        self.stalled_until = self.now + time;
        for (at, _) in self.to_dp.iter_mut().chain(&mut self.to_cp) {
            *at = (*at).max(self.stalled_until);
        }
    }

    /// The data plane ends where it stands, and begins anew later.
    fn kill_data_plane(&mut self, keeps_disk: bool) {
        self.dp = None;
        self.working = None;
        if !keeps_disk {
            self.disk = Disk::default();
        }
        // Its peer hears of it, as the kernel says so.
        self.to_dp.clear();
        self.send_to_cp(None);
        self.redial_at = Some(self.now + Duration::from_secs(1));
    }

    /// The control plane ends where it stands.
    fn kill_control_plane(&mut self) {
        self.cut();
        self.past.clear();
    }

    fn stop_control_plane(&mut self, reconnect_after: Duration) {
        self.tell_cp(cp::Command::Stop { reconnect_after });
    }

    /// Another store, or an older state of the same, takes the place of the one there was.
    fn restore(&mut self, store: Store) {
        self.kill_control_plane();
        self.stores.insert(self.store.id, self.store.clone());
        self.store = store;
    }

    fn judge(&mut self, withheld: Option<Withheld>) {
        self.withheld.clone_from(&withheld);
        self.tell_cp(cp::Command::Verdict(withheld));
    }

    /// Lets time pass.
    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some((at, due)) = self.next_due().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            due(self);
            self.run_effects();
        }
        self.now = until;
    }

    fn next_due(&self) -> Option<Due> {
        let dues: [Option<Due>; 8] = [
            self.to_dp.front().map(|(at, _)| (*at, Self::arrive_at_dp as fn(&mut Pair))),
            self.to_cp.front().map(|(at, _)| (*at, Self::arrive_at_cp as fn(&mut Pair))),
            self.redial_at.map(|at| (at, Self::dial as fn(&mut Pair))),
            self.working.as_ref().map(|(at, _)| (*at, Self::worked as fn(&mut Pair))),
            self.asked.front().map(|(at, _)| (*at, Self::answered as fn(&mut Pair))),
            self.past_due().map(|at| (at, Self::past_happens as fn(&mut Pair))),
            self.dp
                .as_ref()
                .and_then(DpStream::next_timeout)
                .map(|at| (at.saturating_sub(self.dp_ahead), Self::dp_timeout as fn(&mut Pair))),
            self.cp
                .as_ref()
                .and_then(CpStream::next_timeout)
                .map(|at| (at.saturating_sub(self.cp_ahead), Self::cp_timeout as fn(&mut Pair))),
        ];
        dues.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn dp_timeout(&mut self) {
        if let Some(dp) = &mut self.dp {
            dp.handle_timeout(self.now + self.dp_ahead);
        }
    }

    fn cp_timeout(&mut self) {
        if let Some(cp) = &mut self.cp {
            cp.handle_timeout(self.now + self.cp_ahead);
        }
    }

    fn arrive_at_dp(&mut self) {
        let frame = self.to_dp.pop_front().and_then(|(_, frame)| frame);
        let Some(dp) = &mut self.dp else { return };
        match frame {
            Some(frame) => dp.handle_frame(self.now + self.dp_ahead, &frame),
            None => dp.handle_lost("end".to_owned()),
        }
    }

    fn arrive_at_cp(&mut self) {
        let frame = self.to_cp.pop_front().and_then(|(_, frame)| frame);
        let Some(cp) = &mut self.cp else { return };
        match frame {
            Some(frame) => cp.handle_frame(self.now + self.cp_ahead, &frame),
            None => cp.handle_lost("end".to_owned()),
        }
    }

    fn dial(&mut self) {
        self.redial_at = None;
        if !self.control_plane_up || !self.data_plane_up || self.working.is_some() {
            // An apply of the connection before comes to its end first.
            self.redial_at = Some(self.now + Duration::from_secs(1));
            return;
        }
        self.leave_behind();
        self.forget_connection();
        let hello = Hello { node_id: "n".to_owned(), held: self.disk.held.clone(), ..Hello::default() };
        self.dp = Some(DpStream::new(self.now + self.dp_ahead, hello));
        self.cp = Some(CpStream::new(self.now + self.cp_ahead, Settings { heartbeat: HEARTBEAT }));
    }

    fn answered(&mut self) {
        let Some((_, asked)) = self.asked.pop_front() else { return };
        let command = self.answer(asked, true);
        if let Some(cp) = &mut self.cp {
            cp.handle_command(self.now + self.cp_ahead, command);
        }
    }

    /// What the store says; `newest`: it is asked by the newest connection of the data plane.
    fn answer(&mut self, asked: cp::Effect, newest: bool) -> cp::Command {
        match asked {
            cp::Effect::Judge(hello) => {
                let start = self.store.start(hello.held.as_ref());
                if let (Start::From(version), Some(held), true) = (&start, &hello.held, newest) {
                    self.seen = Some((*version, held.digest.clone()));
                }
                let (store_id, newest) = (self.store.name(), self.store.version());
                cp::Command::Admit { store_id, newest, start, withheld: self.withheld.clone() }
            }
            cp::Effect::Fetch { from } => cp::Command::Fetched { from, outcome: self.store.fetch(from) },
            cp::Effect::Begin => cp::Command::Begun(Ok(self.store.version())),
            cp::Effect::Copy(cursor) => cp::Command::Copied(self.store.copy(cursor)),
            other => panic!("{other:?} asks nothing"),
        }
    }

    fn run_effects(&mut self) {
        loop {
            if let Some(effect) = self.dp.as_mut().and_then(DpStream::poll_effect) {
                self.dp_effect(effect);
            } else if let Some(effect) = self.cp.as_mut().and_then(CpStream::poll_effect) {
                self.cp_effect(effect);
            } else {
                break;
            }
        }
        let broken = self.dp.as_ref().and_then(DpStream::broken_invariant);
        let broken = broken.or(self.cp.as_ref().and_then(CpStream::broken_invariant));
        assert_eq!(broken, None, "seed {}, at {:?}", self.seed, self.now);
    }

    fn dp_effect(&mut self, effect: dp::Effect) {
        match effect {
            dp::Effect::Send(frame) => self.send_to_cp(Some(frame)),
            dp::Effect::Work(work) => {
                assert!(self.working.is_none(), "two works at once, seed {}", self.seed);
                self.working = Some((self.now + self.work_time, work));
            }
            dp::Effect::Report(_) | dp::Effect::LogLevel { .. } => {}
            dp::Effect::HangUp(reason) => {
                assert_ne!(reason, dp::Reason::PeerFlood, "seed {}", self.seed);
                self.dp = None;
                self.to_dp.clear();
                self.send_to_cp(None);
                let farewell = match reason {
                    dp::Reason::PeerLeaves { reconnect_after } => Some(reconnect_after),
                    _ => None,
                };
                self.farewell = farewell.or(self.farewell);
                self.redial_at = Some(self.now + farewell.unwrap_or_default().max(Duration::from_secs(1)));
            }
        }
    }

    fn cp_effect(&mut self, effect: cp::Effect) {
        match effect {
            cp::Effect::Send(frame) => self.send_to_dp(Some(frame)),
            cp::Effect::Judge(_) | cp::Effect::Fetch { .. } | cp::Effect::Begin | cp::Effect::Copy(_) => {
                self.asked.push_back((self.now + Duration::from_millis(2), effect));
            }
            cp::Effect::Applied(applied) => {
                self.check_report(&applied);
                self.seen = Some((applied.version, applied.digest));
            }
            cp::Effect::Refused(_) => self.refusals += 1,
            cp::Effect::HangUp(reason) => {
                assert_ne!(reason, cp::Reason::Overtaken, "seed {}", self.seed);
                self.send_to_dp(None);
                self.to_cp.clear();
                self.asked.clear();
                self.cp = None;
            }
            cp::Effect::Alive | cp::Effect::Report(_) | cp::Effect::Left | cp::Effect::Asked { .. } => {}
        }
    }

    /// A version that is reported was made, and by no other name.
    fn check_report(&self, applied: &Applied) {
        let right = self.store.digest_at(applied.version);
        assert_eq!(right.as_ref(), Some(&applied.digest), "seed {}", self.seed);
    }

    fn send_to_dp(&mut self, frame: Option<Frame>) {
        let at = self.arrival(self.to_dp.back());
        if !self.vanished {
            self.to_dp.push_back((at, frame));
        }
    }

    fn send_to_cp(&mut self, frame: Option<Frame>) {
        let at = self.arrival(self.to_cp.back());
        if !self.vanished {
            self.to_cp.push_back((at, frame));
        }
    }

    /// In order, so nothing arrives before what was sent earlier.
    fn arrival(&self, last: Option<&(Moment, Option<Frame>)>) -> Moment {
        let at = self.stalled_until.max(self.now + self.latency);
        last.map_or(at, |(last, _)| at.max(*last))
    }

    /// The data plane has what the store has, and the control plane knows it.
    fn is_in_sync(&self) -> bool {
        let (version, digest) = (self.store.version(), digest(&self.store.rows));
        let held = Held { store_id: self.store.name(), version, digest: digest.clone() };
        let known = self.disk.held.as_ref() == Some(&held) && self.disk.rows == self.store.rows;
        known && self.seen == Some((version, digest))
    }
}
