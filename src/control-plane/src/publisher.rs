//! What data planes of our own sync are sent: the frame of each version is made once and kept for a while, versions that a
//! node is behind are joined, and a copy of everything is made piece by piece.

use gwctl_entities::{EntityError, PageQuery, Record, Registry, Value};
use gwctl_lifecycle::{Phase, Shutdown};
use gwctl_store::{Change, Delta, Part, Place, Store};
use gwctl_wire::Frame;
use gwctl_wire::compat::{PayloadProfile, Verdict, Version, check_version, vet};
use gwctl_wire::stream::cp::{Copied, Cursor, Fetched, Start, Withheld};
use gwctl_wire::stream::message::{self, FromCp, Hello, Row};
use gwctl_wire::stream::{JOINED_BYTES, LARGEST_CHANGE, PIECE_BYTES};
use gwctl_wire::v1::BasicInfo;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::sync::watch;

/// Frames of single versions kept, and their bytes.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// Joined frames kept for the newest version. A fleet is behind by a handful of versions.
const KEPT_JOINED: usize = 64;

/// Versions joined into one frame at most.
const JOINED_VERSIONS: u64 = 1000;

/// Versions behind which a copy is cheaper than to read through the log.
const FAR_BEHIND: u64 = 20_000;

/// Bytes of the log that are read of one version at most. With a record before and one after each change, a version that
/// has more comes to more than [`LARGEST_CHANGE`] or close to it, and is not sent as changes anyway.
const READ_AT_MOST: usize = 3 * LARGEST_CHANGE;

/// The same where no data plane is there to be sent anything.
const READ_UNASKED: usize = 64 * 1024;

/// A frame that leads from one version to a later one.
#[derive(Debug, Clone)]
struct Made {
    to: u64,
    frame: Frame,
}

#[derive(Default)]
struct Kept {
    /// The newest versions by the version they build on, without gaps.
    ring: VecDeque<(u64, Made)>,
    bytes: usize,
    /// Joined frames that lead to `joined_to`, by the version they build on.
    joined: BTreeMap<u64, Made>,
    joined_to: u64,
}

/// Hears of a version, the Unix millisecond of its commit and its digest.
type Committed = dyn Fn(u64, u64, Option<String>) + Send + Sync;

/// Maker and keeper of frames.
pub(crate) struct Publisher {
    store: Arc<dyn Store>,
    own_version: Version,
    kept: Mutex<Kept>,
    /// Plugins in use, by which nodes are judged.
    profile: RwLock<Arc<PayloadProfile>>,
    /// The profile is to be read again before the next node is judged.
    stale: AtomicBool,
    newest: watch::Sender<u64>,
    /// Told of each version, when it was committed and its digest, before any node is.
    committed: Box<Committed>,
    /// Taken by sessions that read the store.
    turns: tokio::sync::Semaphore,
}

/// Sessions that read the store at the same time. More would only wait for each other, each on a thread that the node
/// keeps for a while: a fleet that comes at once made hundreds.
const TURNS: usize = 4;

impl Publisher {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        own_version: Version,
        committed: impl Fn(u64, u64, Option<String>) + Send + Sync + 'static,
    ) -> Result<Self, EntityError> {
        let profile = profile(&*store)?;
        let newest = watch::Sender::new(store.version());
        let (kept, profile) = (Mutex::default(), RwLock::new(Arc::new(profile)));
        let turns = tokio::sync::Semaphore::new(TURNS);
        let (stale, committed) = (AtomicBool::new(false), Box::new(committed));
        Ok(Self { store, own_version, kept, profile, stale, newest, committed, turns })
    }

    /// Makes the frame of each version until the node stops.
    pub(crate) async fn run(self: Arc<Self>, shutdown: Shutdown) {
        let mut versions = self.store.watch();
        loop {
            let newest = *versions.borrow_and_update();
            let before = *self.newest.borrow();
            if newest > before {
                let publisher = self.clone();
                let made = tokio::task::spawn_blocking(move || publisher.take(before, newest)).await;
                if let Ok(Err(error)) = made {
                    tracing::error!(%error, "cannot read the newest versions; data planes wait for them");
                }
                self.newest.send_replace(newest);
            }
            if shutdown.until(Phase::Stop, versions.changed()).await.is_none_or(|changed| changed.is_err()) {
                return;
            }
        }
    }

    /// Tells of new versions once their frames are made.
    pub(crate) fn versions(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Id of the store.
    pub(crate) fn store_id(&self) -> &str {
        self.store.id()
    }

    /// Takes the versions after `before` in: their frames, and what they change of the profile.
    fn take(&self, before: u64, newest: u64) -> Result<(), EntityError> {
        let from = before.max(newest.saturating_sub(KEPT as u64));
        // Versions that are passed over may have changed anything.
        let mut stale = from > before;
        for version in from + 1..=newest {
            // A fleet that is not there needs no frames.
            let wanted = self.is_heard();
            let limit = if wanted { READ_AT_MOST } else { READ_UNASKED };
            let read = self.store.part_of_change(version, 0, limit);
            let read = read.inspect_err(|_| self.stale.store(true, Ordering::SeqCst))?;
            let Some(Part { change, last, .. }) = read else {
                stale = true;
                continue;
            };
            stale = stale || !last || self.changes_profile(&change.deltas);
            (self.committed)(change.version, change.time_millis, change.digest.map(|digest| digest.to_string()));
            if wanted && last {
                self.keep(&change);
            }
        }
        if stale {
            self.stale.store(true, Ordering::SeqCst);
        }
        // Noted first and looked second, while a session listens first and looks for the note second: one sees the other.
        if self.is_heard() { self.refresh() } else { Ok(()) }
    }

    fn is_heard(&self) -> bool {
        self.newest.receiver_count() > 0
    }

    /// Whether a plugin may have come into use, or gone out of it.
    fn changes_profile(&self, deltas: &[Delta]) -> bool {
        let profile = self.profile.read().unwrap_or_else(PoisonError::into_inner).clone();
        deltas.iter().filter(|delta| delta.entity == "plugins").any(|delta| {
            let (old, new) = (delta.old.as_ref().and_then(in_use), delta.new.as_ref().and_then(in_use));
            let known = |name: &str| profile.plugins.contains_key(name);
            old != new && (old.is_some() || !new.is_none_or(known))
        })
    }

    /// Reads the profile again if it may have changed.
    fn refresh(&self) -> Result<(), EntityError> {
        if !self.stale.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        let profile = profile(&*self.store).inspect_err(|_| self.stale.store(true, Ordering::SeqCst))?;
        *self.profile.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(profile);
        Ok(())
    }

    fn keep(&self, change: &Change) {
        let rows = rows(self.store.registry(), &change.deltas);
        let (from, to) = (change.version - 1, change.version);
        let Some(digest) = change.digest.filter(|_| json_bytes(&rows) <= LARGEST_CHANGE) else { return };
        let changes =
            message::Changes { from, to, digest: digest.to_string(), committed_millis: change.time_millis, rows };
        let frame = FromCp::Changes(changes).encode();
        let mut kept = self.kept();
        if kept.ring.back().is_some_and(|(_, newest)| newest.to != from) {
            (kept.ring, kept.bytes) = (VecDeque::new(), 0);
        }
        kept.bytes += frame.payload_len();
        kept.ring.push_back((from, Made { to, frame }));
        while kept.ring.len() > KEPT || kept.bytes > KEPT_BYTES {
            let Some((_, oldest)) = kept.ring.pop_front() else { break };
            kept.bytes -= oldest.frame.payload_len();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Frames are put in whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The changes behind a version if they are at hand; does not block.
    pub(crate) fn ready(&self, from: u64) -> Option<Fetched> {
        let newest = *self.newest.borrow();
        let kept = self.kept();
        let single = kept.ring.back().filter(|(since, _)| *since == from).map(|(_, made)| made);
        let joined = kept.joined.get(&from).filter(|_| kept.joined_to == newest);
        let made = single.or(joined)?.clone();
        Some(Fetched::Changes { to: made.to, frame: made.frame })
    }

    /// The changes behind a version. Blocks.
    pub(crate) fn fetch(&self, from: u64) -> Fetched {
        self.ready(from).unwrap_or_else(|| {
            self.join(from).unwrap_or_else(|error| {
                tracing::error!(%error, from, "cannot read the changes for a data plane");
                Fetched::Failed(error.to_string())
            })
        })
    }

    /// Joins versions until there are none left or the frame is large.
    fn join(&self, from: u64) -> Result<Fetched, EntityError> {
        let newest = self.store.version();
        let behind = newest.saturating_sub(from);
        let copy = |why: String| Ok(Fetched::Snapshot { why });
        if behind > FAR_BEHIND {
            return copy(format!("the node is {behind} versions behind"));
        }
        let (mut last, mut bytes, mut leads_to) = (BTreeMap::new(), 0, None);
        for version in from + 1..=newest.min(from.saturating_add(JOINED_VERSIONS)) {
            let Some(Part { change, total, last: whole }) = self.store.part_of_change(version, 0, READ_AT_MOST)? else {
                return copy(format!("the log no longer holds version {version}"));
            };
            if !whole {
                return copy(format!("version {version} changed {total} rows at once"));
            }
            let rows = rows(self.store.registry(), &change.deltas);
            bytes += json_bytes(&rows);
            if bytes > JOINED_BYTES && leads_to.is_some() {
                break;
            }
            if bytes > LARGEST_CHANGE {
                return copy(format!("version {version} changed {} rows at once", rows.len()));
            }
            last.extend(rows.into_iter().map(|row| ((row.entity.clone(), row.id.clone()), row)));
            leads_to = Some((version, change.time_millis, change.digest));
        }
        let Some((to, committed_millis, digest)) = leads_to else {
            return copy(format!("version {from} is none of this store"));
        };
        let Some(digest) = digest.or(self.store.digest_at(to)?) else {
            return copy(format!("version {to} is from before digests were kept"));
        };
        let (digest, rows) = (digest.to_string(), last.into_values().collect());
        let frame = FromCp::Changes(message::Changes { from, to, digest, committed_millis, rows }).encode();
        let made = Made { to, frame };
        let mut kept = self.kept();
        if kept.joined_to != newest {
            (kept.joined, kept.joined_to) = (BTreeMap::new(), newest);
        }
        if kept.joined.len() < KEPT_JOINED {
            kept.joined.insert(from, made.clone());
        }
        Ok(Fetched::Changes { to: made.to, frame: made.frame })
    }

    /// The version a copy begins with.
    pub(crate) fn begin(&self) -> u64 {
        self.store.version()
    }

    /// The next piece of a copy.
    pub(crate) async fn copy(self: Arc<Self>, cursor: Cursor) -> Copied {
        match self.in_turn(move |publisher| publisher.piece(cursor)).await {
            Ok(Ok(copied)) => copied,
            Ok(Err(error)) => Copied::Failed(error.to_string()),
            Err(fault) => Copied::Failed(fault),
        }
    }

    /// Does what blocks on a thread where it may, a few at a time.
    pub(crate) async fn in_turn<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Publisher) -> T + Send + 'static,
    ) -> Result<T, String> {
        let publisher = self.clone();
        let Ok(_turn) = self.turns.acquire().await else { return Err("this node stops".to_owned()) };
        tokio::task::spawn_blocking(move || work(&publisher)).await.map_err(|error| error.to_string())
    }

    fn piece(&self, cursor: Cursor) -> Result<Copied, EntityError> {
        match cursor {
            Cursor::Rows { begun, after } => self.rows_piece(begun, after),
            Cursor::Log { version, until, .. } if version >= until => {
                let digest = self.store.digest_at(until)?;
                Ok(digest
                    .map_or(Copied::Overtaken, |digest| Copied::End { version: until, digest: digest.to_string() }))
            }
            Cursor::Log { version, sent, until } => self.log_piece(version, sent, until),
        }
    }

    fn rows_piece(&self, begun: u64, after: Option<(String, String)>) -> Result<Copied, EntityError> {
        let place = after.map(|(entity, id)| Place { entity, id });
        let piece = self.store.rows_after(place.as_ref(), PIECE_BYTES)?;
        let last = piece.rows.last().map(|(place, _)| (place.entity.clone(), place.id.clone()));
        let next = match last.filter(|_| !piece.last) {
            Some(last) => Cursor::Rows { begun, after: Some(last) },
            // Everything that was read shows this version or an earlier one.
            None => Cursor::Log { version: begun, sent: 0, until: self.store.version() },
        };
        let rows = piece.rows.into_iter();
        let rows = rows.map(|(Place { entity, id }, record)| Row { entity, id, new: Some(record) }).collect();
        Ok(Copied::Piece { frame: FromCp::SnapshotRows { rows }.encode(), next })
    }

    /// Changes since the copy began; a large version goes in several pieces, small ones share one.
    fn log_piece(&self, version: u64, sent: usize, until: u64) -> Result<Copied, EntityError> {
        let (mut piece, mut bytes, mut at, mut skip) = (Vec::new(), 0, version, sent);
        while at < until {
            if bytes >= PIECE_BYTES {
                let next = Cursor::Log { version: at, sent: skip, until };
                return Ok(Copied::Piece { frame: FromCp::SnapshotRows { rows: piece }.encode(), next });
            }
            let Some(part) = self.store.part_of_change(at + 1, skip, PIECE_BYTES - bytes)? else {
                return Ok(Copied::Overtaken);
            };
            let rows = rows(self.store.registry(), &part.change.deltas);
            bytes += json_bytes(&rows);
            piece.extend(rows);
            (at, skip) = if part.last { (at + 1, 0) } else { (at, skip + part.change.deltas.len()) };
        }
        let next = Cursor::Log { version: at, sent: 0, until };
        Ok(Copied::Piece { frame: FromCp::SnapshotRows { rows: piece }.encode(), next })
    }

    /// Where a node begins, as a session that listens to [`Publisher::versions`] already asks it. Blocks.
    pub(crate) fn start(&self, hello: &Hello) -> Result<(u64, Start), EntityError> {
        self.refresh()?;
        let newest = self.store.position()?;
        let Some(held) = &hello.held else {
            return Ok((
                newest.version,
                Start::Snapshot { why: "the node holds no configuration of this kind".to_owned() },
            ));
        };
        if held.store_id == self.store.id()
            && self.store.digest_at(held.version)?.is_some_and(|digest| digest.to_string() == held.digest)
        {
            return Ok((newest.version, Start::From(held.version)));
        }
        if held.digest == newest.digest.to_string() {
            return Ok((newest.version, Start::Same { version: newest.version, digest: held.digest.clone() }));
        }
        let why = if held.store_id == self.store.id() {
            format!("the node holds another version {} than this store had, or one its log forgot", held.version)
        } else {
            format!("the node holds version {} of another store", held.version)
        };
        Ok((newest.version, Start::Snapshot { why }))
    }

    /// Whether a node may be sent the configuration, as for protocol v1.
    pub(crate) fn judge(&self, hello: &Hello) -> Option<Withheld> {
        if let Err(error) = check_version(&hello.kong_version, &self.own_version) {
            return Some(Withheld { status: "kong_version_incompatible".to_owned(), words: error.to_string() });
        }
        let profile = self.profile.read().unwrap_or_else(PoisonError::into_inner).clone();
        let info = BasicInfo { plugins: hello.plugins.clone(), labels: hello.labels.clone(), ..BasicInfo::default() };
        let verdict: Verdict = vet(&profile, &info, &hello.kong_version);
        let withheld =
            |verdict: Verdict| Withheld { status: verdict.status().as_str().to_owned(), words: verdict.to_string() };
        (!verdict.allows_push()).then(|| withheld(verdict))
    }
}

/// The plugins in use.
fn profile(store: &dyn Store) -> Result<PayloadProfile, EntityError> {
    let (registry, read) = (store.registry(), store.read()?);
    let version = |name: &str| registry.plugin_facts(name).map(|(version, _)| version.to_owned());
    let mut profile = PayloadProfile::default();
    let mut query = PageQuery { size: 1000, ..PageQuery::default() };
    loop {
        let page = read.page("plugins", &query)?;
        for name in page.rows.iter().filter_map(in_use) {
            if !profile.plugins.contains_key(name) {
                profile.plugins.insert(name.to_owned(), version(name));
            }
        }
        match page.next {
            Some(next) => query.from = Some(next),
            None => return Ok(profile),
        }
    }
}

/// The name of a plugin that is enabled.
fn in_use(plugin: &Record) -> Option<&str> {
    let enabled = plugin.get("enabled").and_then(Value::as_bool) != Some(false);
    plugin.get("name").and_then(Value::as_str).filter(|_| enabled)
}

/// The rows of a version that data planes get.
fn rows(registry: &Registry, deltas: &[Delta]) -> Vec<Row> {
    let exported = |delta: &&Delta| registry.entity(&delta.entity).is_some_and(|schema| schema.db_export);
    let row = |delta: &Delta| Row { entity: delta.entity.clone(), id: delta.id.clone(), new: delta.new.clone() };
    deltas.iter().filter(exported).map(row).collect()
}

/// Length of the rows as JSON.
fn json_bytes(rows: &[Row]) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = serde_json::to_writer(&mut count, rows);
    count.0
}

#[cfg(test)]
mod tests;
