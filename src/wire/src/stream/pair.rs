//! Both ends joined by a network that exists only in memory, on a clock that only moves when told to, with a store, a
//! disk and everything that can go wrong between them.

use super::cp::{self, Copied, CpStream, Cursor, Fetched, Settings, Start, Withheld};
use super::dp::{self, DpStream, Outcome, Work};
use super::message::{Changes, FromCp, Held, Hello, Row};
use super::{COPY_PAUSE, HEARTBEAT};
use crate::backoff::Random;
use crate::{Frame, Moment};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

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

fn digest(rows: &Rows) -> String {
    let sum = rows.iter().fold(0_u128, |sum, (id, value)| {
        let mut random = Random(id.wrapping_mul(1_000_003) ^ (value << 32));
        sum.wrapping_add(random.between(Duration::ZERO, Duration::from_secs(1 << 40)).as_millis())
    });
    format!("{sum:032x}")
}

/// The control plane's store: every version changes one row.
#[derive(Debug, Clone)]
struct Store {
    id: u64,
    rows: Rows,
    /// What each version left, from version 0 on.
    history: Vec<Rows>,
    /// Row and value of each version, from version 1 on; None is a deletion.
    log: Vec<(u64, Option<u64>)>,
    oldest: u64,
}

impl Store {
    fn new(id: u64) -> Self {
        Self { id, rows: Rows::new(), history: vec![Rows::new()], log: Vec::new(), oldest: 0 }
    }

    fn name(&self) -> String {
        format!("store {}", self.id)
    }

    fn version(&self) -> u64 {
        self.log.len() as u64
    }

    fn change(&mut self, row: u64, value: Option<u64>) {
        match value {
            Some(value) => _ = self.rows.insert(row, value),
            None => _ = self.rows.remove(&row),
        }
        self.log.push((row, value));
        self.history.push(self.rows.clone());
    }

    fn digest_at(&self, version: u64) -> Option<String> {
        self.history.get(usize::try_from(version).unwrap()).map(digest)
    }

    /// The changes from one version to another.
    fn between(&self, from: u64, to: u64) -> Vec<Row> {
        let (from, to) = (usize::try_from(from).unwrap(), usize::try_from(to).unwrap());
        self.log[from..to].iter().map(|(id, value)| row(*id, *value)).collect()
    }

    fn start(&self, held: Option<&Held>) -> Start {
        let Some(held) = held else { return Start::Snapshot { why: "nothing held".to_owned() } };
        if held.store_id == self.name() && self.digest_at(held.version).as_ref() == Some(&held.digest) {
            return Start::From(held.version);
        }
        if held.digest == digest(&self.rows) {
            return Start::Same { version: self.version(), digest: held.digest.clone() };
        }
        Start::Snapshot { why: "another configuration is held".to_owned() }
    }

    fn fetch(&self, from: u64) -> Fetched {
        let to = self.version();
        if from < self.oldest || from > to {
            return Fetched::Snapshot { why: "the log does not reach".to_owned() };
        }
        let last: BTreeMap<String, Row> = self.between(from, to).into_iter().map(|row| (row.id.clone(), row)).collect();
        let rows = last.into_values().collect();
        let digest = self.digest_at(to).unwrap();
        let frame = FromCp::Changes(Changes { from, to, digest, committed_millis: 0, rows }).encode();
        Fetched::Changes { to, frame }
    }

    fn copy(&self, cursor: Cursor) -> Copied {
        let (rows, next) = match cursor {
            Cursor::Rows { begun, after } => {
                let after = after.map(|(_, id)| id.parse::<u64>().unwrap());
                let behind = self.rows.iter().filter(|(id, _)| after.is_none_or(|after| **id > after));
                let rows: Vec<Row> = behind.take(PIECE).map(|(id, value)| row(*id, Some(*value))).collect();
                let next = match rows.last().filter(|_| rows.len() == PIECE) {
                    Some(last) => Cursor::Rows { begun, after: Some(("rows".to_owned(), last.id.clone())) },
                    None => Cursor::Log { version: begun, sent: 0, until: self.version() },
                };
                (rows, next)
            }
            Cursor::Log { version, until, .. } if version == until => {
                return Copied::End { version, digest: self.digest_at(version).unwrap() };
            }
            Cursor::Log { version, .. } if version < self.oldest => return Copied::Overtaken,
            Cursor::Log { version, until, .. } => {
                let to = until.min(version + PIECE as u64);
                (self.between(version, to), Cursor::Log { version: to, sent: 0, until })
            }
        };
        Copied::Piece { frame: FromCp::SnapshotRows { rows }.encode(), next }
    }
}

fn row(id: u64, value: Option<u64>) -> Row {
    let new = value.and_then(|value| json!({"id": id, "value": value}).as_object().cloned());
    Row { entity: "rows".to_owned(), id: id.to_string(), new }
}

/// What the data plane has on its disk.
#[derive(Debug, Clone, Default)]
struct Disk {
    rows: Rows,
    held: Option<Held>,
    incoming: Option<Rows>,
    /// It holds something else than what it was told to.
    damaged: bool,
}

fn put(rows: &mut Rows, changes: &[Row]) {
    for row in changes {
        let id = row.id.parse().unwrap();
        match &row.new {
            Some(new) => _ = rows.insert(id, new["value"].as_u64().unwrap()),
            None => _ = rows.remove(&id),
        }
    }
}

/// A control plane and a data plane with a network between them.
struct Pair {
    seed: u64,
    random: Random,
    now: Moment,
    latency: Duration,
    work_time: Duration,
    dp: Option<DpStream>,
    cp: Option<CpStream>,
    to_dp: Pipe,
    to_cp: Pipe,
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
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut pair = Self {
            seed,
            random: Random(seed),
            now: Duration::ZERO,
            latency: Duration::from_millis(20),
            work_time: Duration::from_millis(30),
            dp: None,
            cp: None,
            to_dp: Pipe::new(),
            to_cp: Pipe::new(),
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
        if let Some(cp) = &mut self.cp {
            cp.handle_command(self.now, command);
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
        let dues: [Option<Due>; 7] = [
            self.to_dp.front().map(|(at, _)| (*at, Self::arrive_at_dp as fn(&mut Pair))),
            self.to_cp.front().map(|(at, _)| (*at, Self::arrive_at_cp as fn(&mut Pair))),
            self.redial_at.map(|at| (at, Self::dial as fn(&mut Pair))),
            self.working.as_ref().map(|(at, _)| (*at, Self::worked as fn(&mut Pair))),
            self.asked.front().map(|(at, _)| (*at, Self::answered as fn(&mut Pair))),
            self.dp.as_ref().and_then(DpStream::next_timeout).map(|at| (at, Self::dp_timeout as fn(&mut Pair))),
            self.cp.as_ref().and_then(CpStream::next_timeout).map(|at| (at, Self::cp_timeout as fn(&mut Pair))),
        ];
        dues.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn dp_timeout(&mut self) {
        if let Some(dp) = &mut self.dp {
            dp.handle_timeout(self.now);
        }
    }

    fn cp_timeout(&mut self) {
        if let Some(cp) = &mut self.cp {
            cp.handle_timeout(self.now);
        }
    }

    fn arrive_at_dp(&mut self) {
        let frame = self.to_dp.pop_front().and_then(|(_, frame)| frame);
        let Some(dp) = &mut self.dp else { return };
        match frame {
            Some(frame) => dp.handle_frame(self.now, &frame),
            None => dp.handle_lost("end".to_owned()),
        }
    }

    fn arrive_at_cp(&mut self) {
        let frame = self.to_cp.pop_front().and_then(|(_, frame)| frame);
        let Some(cp) = &mut self.cp else { return };
        match frame {
            Some(frame) => cp.handle_frame(self.now, &frame),
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
        self.forget_connection();
        let hello = Hello { node_id: "n".to_owned(), held: self.disk.held.clone(), ..Hello::default() };
        self.dp = Some(DpStream::new(self.now, hello));
        self.cp = Some(CpStream::new(self.now, Settings { heartbeat: HEARTBEAT }));
    }

    fn answered(&mut self) {
        let Some((_, asked)) = self.asked.pop_front() else { return };
        let command = match asked {
            cp::Effect::Judge(hello) => {
                let start = self.store.start(hello.held.as_ref());
                if let (Start::From(version), Some(held)) = (&start, &hello.held) {
                    self.seen = Some((*version, held.digest.clone()));
                }
                let (store_id, newest) = (self.store.name(), self.store.version());
                cp::Command::Admit { store_id, newest, start, withheld: self.withheld.clone() }
            }
            cp::Effect::Fetch { from } => cp::Command::Fetched { from, outcome: self.store.fetch(from) },
            cp::Effect::Begin => cp::Command::Begun(Ok(self.store.version())),
            cp::Effect::Copy(cursor) => cp::Command::Copied(self.store.copy(cursor)),
            other => panic!("{other:?} asks nothing"),
        };
        if let Some(cp) = &mut self.cp {
            cp.handle_command(self.now, command);
        }
    }

    /// The data plane's work is done; what it is told follows from the disk alone.
    fn worked(&mut self) {
        let Some((_, work)) = self.working.take() else { return };
        let outcome = self.work(work);
        if let Some(dp) = &mut self.dp {
            dp.handle_command(dp::Command::Done(outcome));
        }
    }

    fn work(&mut self, work: Work) -> Outcome {
        let bad = |rows: &[Row]| {
            let bad = rows.iter().find(|row| row.new.as_ref().is_some_and(|new| new["value"] == BAD));
            bad.map(|row| (row.entity.clone(), row.id.clone()))
        };
        if self.disk_full {
            return Outcome::NotStored { fault: "disk full".to_owned() };
        }
        let (rows, held) = match work {
            Work::Begin => {
                self.copies += 1;
                self.disk.incoming = Some(Rows::new());
                return Outcome::Taken;
            }
            Work::Rows(rows) => {
                if let Some(row) = bad(&rows) {
                    return Outcome::Refused { row: Some(row), fault: "bad".to_owned() };
                }
                put(self.disk.incoming.as_mut().unwrap(), &rows);
                return Outcome::Taken;
            }
            Work::Change(changes) => {
                if let Some(row) = bad(&changes.rows) {
                    return Outcome::Refused { row: Some(row), fault: "bad".to_owned() };
                }
                let held = self.disk.held.clone().unwrap();
                assert_eq!(held.version, changes.from, "seed {}", self.seed);
                let mut rows = self.disk.rows.clone();
                put(&mut rows, &changes.rows);
                (rows, Held { version: changes.to, digest: changes.digest, ..held })
            }
            Work::Adopt { held } => (self.disk.rows.clone(), held),
            Work::Finish { held } => (self.disk.incoming.clone().unwrap(), held),
        };
        if digest(&rows) != held.digest {
            return Outcome::Diverged { found: digest(&rows) };
        }
        self.applies += 1;
        self.disk = Disk { rows, held: Some(held.clone()), incoming: None, damaged: false };
        self.check_disk();
        Outcome::Applied { held, stored: self.now, active: self.now }
    }

    /// What is held is exactly what the version it is called had.
    fn check_disk(&self) {
        let Some(held) = self.disk.held.as_ref().filter(|_| !self.disk.damaged) else { return };
        let named = |store: &&Store| store.name() == held.store_id;
        let known = self.stores.values().chain([&self.store]).filter(named);
        let right = known.filter_map(|store| store.history.get(usize::try_from(held.version).unwrap()));
        assert!(right.into_iter().any(|rows| *rows == self.disk.rows), "seed {}, {held:?}", self.seed);
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
                let right = self.store.digest_at(applied.version);
                assert_eq!(right.as_ref(), Some(&applied.digest), "seed {}", self.seed);
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
