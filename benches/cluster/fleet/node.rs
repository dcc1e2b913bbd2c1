//! A data plane that takes everything and serves nothing.

use gwctl_link::{DialOptions, Dialed, dial};
use gwctl_wire::stream::dp::{Command, Effect, Outcome, Reason, Report, Work};
use gwctl_wire::stream::{DpStream, Held, Hello};
use gwctl_wire::v1::dp_link::{self, Settings};
use gwctl_wire::v1::{DpLink, PluginVersion};
use gwctl_wire::{ConfigHash, Moment};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What all nodes have seen.
pub(crate) struct Seen {
    versions: Vec<AtomicU64>,
    /// When each confirmed the version it has.
    confirmed: Mutex<Vec<Instant>>,
    /// Attempts to reach the control plane.
    pub(crate) dials: Vec<AtomicU32>,
}

impl Seen {
    pub(crate) fn new(nodes: usize) -> Self {
        let (versions, dials) = (0..nodes).map(|_| Default::default()).unzip();
        Self { versions, confirmed: Mutex::new(vec![Instant::now(); nodes]), dials }
    }

    pub(crate) fn all_have(&self, version: u64) -> bool {
        self.versions.iter().all(|has| has.load(Ordering::Relaxed) >= version)
    }

    /// How long each took to confirm what it has.
    pub(crate) fn since(&self, began: Instant) -> Vec<Duration> {
        self.confirmed.lock().unwrap().iter().map(|at| at.saturating_duration_since(began)).collect()
    }

    fn confirm(&self, number: usize, version: u64) {
        self.confirmed.lock().unwrap()[number] = Instant::now();
        self.versions[number].store(version, Ordering::Relaxed);
    }
}

struct Node {
    number: usize,
    held: Option<Held>,
    seen: Arc<Seen>,
}

/// Dials as a data plane does, by the same machine, for ever.
pub(crate) async fn run(number: usize, options: DialOptions, seen: Arc<Seen>) {
    let id = format!("00000000-0000-4000-8000-{number:012}");
    let target = format!("/v1/outlet?node_id={id}&node_hostname=bench-{number}&node_version=3.9.1");
    let options = DialOptions { target, ..options };
    let settings =
        Settings { control_planes: 1, basic_info: bytes::Bytes::new(), hash: ConfigHash::zero(), seed: number as u64 };
    let (mut link, start) = (DpLink::new(settings), Instant::now());
    let mut node = Node { number, held: None, seen };
    link.handle_command(Duration::ZERO, dp_link::Command::Start);
    loop {
        while let Some(effect) = link.poll_effect() {
            if let dp_link::Effect::Dial { .. } = effect {
                node.seen.dials[number].fetch_add(1, Ordering::Relaxed);
                let reason = match dial(&options).await {
                    Ok(dialed) => {
                        assert!(dialed.extra, "the control plane speaks gwctl's own sync");
                        link.handle_diverted(start.elapsed());
                        node.serve(&id, dialed, || link.handle_served(start.elapsed())).await
                    }
                    Err(error) => dp_link::Reason::PeerLost(error.to_string()),
                };
                link.handle_lost(start.elapsed(), reason);
            }
        }
        if let Some(at) = link.next_timeout() {
            tokio::time::sleep_until((start + at).into()).await;
            link.handle_timeout(start.elapsed());
        }
    }
}

impl Node {
    async fn serve(&mut self, id: &str, mut dialed: Dialed, mut served: impl FnMut()) -> dp_link::Reason {
        let plugins = ["key-auth", "rate-limiting"].map(|name| PluginVersion { name: name.to_owned(), version: None });
        let hello = Hello {
            node_id: id.to_owned(),
            hostname: format!("bench-{}", self.number),
            kong_version: "3.9.1".to_owned(),
            plugins: plugins.to_vec(),
            held: self.held.clone(),
            ..Hello::default()
        };
        let (start, mut link) = (Instant::now(), DpStream::new(Moment::ZERO, hello));
        loop {
            while let Some(effect) = link.poll_effect() {
                match effect {
                    Effect::Send(frame) => {
                        if let Err(error) = dialed.writer.send(&frame).await {
                            link.handle_lost(error.to_string());
                        }
                    }
                    Effect::Work(work) => {
                        let outcome = self.work(work, start);
                        link.handle_command(Command::Done(outcome));
                    }
                    Effect::Report(Report::Welcomed { .. }) => served(),
                    Effect::Report(Report::Applied(applied)) => self.seen.confirm(self.number, applied.version),
                    Effect::Report(_) | Effect::LogLevel { .. } => {}
                    Effect::HangUp(Reason::PeerLeaves { reconnect_after }) => {
                        return dp_link::Reason::PeerLeft { reconnect_after };
                    }
                    Effect::HangUp(reason) => return dp_link::Reason::PeerLost(reason.to_string()),
                }
            }
            let due = link.next_timeout().unwrap_or(Duration::from_secs(60));
            tokio::select! {
                frame = dialed.reader.receive() => match frame {
                    Ok(Some(frame)) => link.handle_frame(start.elapsed(), &frame),
                    Ok(None) => link.handle_lost("closed".to_owned()),
                    Err(error) => link.handle_lost(error.to_string()),
                },
                () = tokio::time::sleep_until((start + due).into()) => link.handle_timeout(start.elapsed()),
            }
        }
    }

    /// Believes whatever it is told.
    fn work(&mut self, work: Work, start: Instant) -> Outcome {
        let held = match work {
            Work::Change(changes) => {
                let store_id = self.held.as_ref().map(|held| held.store_id.clone()).unwrap_or_default();
                Held { store_id, version: changes.to, digest: changes.digest }
            }
            Work::Adopt { held } | Work::Finish { held } => held,
            Work::Begin | Work::Rows(_) => return Outcome::Taken,
        };
        self.held = Some(held.clone());
        Outcome::Applied { held, stored: start.elapsed(), active: start.elapsed() }
    }
}
