//! The data plane's disk, and its work on it.

use super::store::{Store, digest};
use super::{BAD, Held, Outcome, Pair, Row, Rows, Work, dp};

/// What the data plane has on its disk.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk {
    pub(super) rows: Rows,
    pub(super) held: Option<Held>,
    pub(super) incoming: Option<Rows>,
    /// It holds something else than what it was told to.
    pub(super) damaged: bool,
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

impl Pair {
    /// The data plane's work is done; what it is told follows from the disk alone.
    pub(super) fn worked(&mut self) {
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
        let now = self.now + self.dp_ahead;
        Outcome::Applied { held, stored: now, active: now }
    }

    /// What is held is exactly what the version it is called had.
    fn check_disk(&self) {
        let Some(held) = self.disk.held.as_ref().filter(|_| !self.disk.damaged) else { return };
        let named = |store: &&Store| store.name() == held.store_id;
        let known = self.stores.values().chain([&self.store]).filter(named);
        let right = known.filter_map(|store| store.history.get(usize::try_from(held.version).unwrap()));
        assert!(right.into_iter().any(|rows| *rows == self.disk.rows), "seed {}, {held:?}", self.seed);
    }
}
