//! The life of a node's process: start, reloads, a change of the binary, the end.

use super::certificates::{Expiries, FileWatch};
use super::handover::{Predecessor, Program, Successor};
use super::reload::Reloader;
use super::signals::{self, Wish};
use super::sockets::Holdings;
use super::{Node, notify, serving, standalone, stdin_ended};
use crate::failure::Failure;
use gwctl_conf::{NodeConf, Role};
use gwctl_lifecycle::{Phase, Shutdown, TaskSet};
use gwctl_proxy::{Drain, Proxy, ProxyControl};
use gwctl_store::FolderLock;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// File in the prefix with the number of the process.
pub const PROCESS_FILE: &str = "gwctl.pid";
/// File in the prefix with what came of the last reload or upgrade: `done` or `failed`, and words.
pub const OUTCOME_FILE: &str = "gwctl.outcome";
/// How often certificate files are looked at; what has changed is read at the second look that finds it the same.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Looks between warnings of certificates that end soon: a day.
const WARN_LOOKS: u64 = 86_400;

/// What a process needs beside its role.
pub(crate) struct Life {
    pub(crate) program: Program,
    pub(crate) reloader: Reloader,
    /// That of the prefix: its id, number and files are for one node.
    pub(crate) lock: FolderLock,
    pub(crate) until_stdin_ends: bool,
}

/// What lives beside the tasks and ends with the node.
pub(crate) struct Running {
    proxy: Option<Proxy>,
    close: Box<dyn FnOnce() + Send>,
}

impl Running {
    /// `close` waits for the write that is under way and lets none begin after it; it may block.
    pub(crate) fn new(proxy: Option<Proxy>, close: impl FnOnce() + Send + 'static) -> Self {
        Self { proxy, close: Box::new(close) }
    }
}

/// How the process ends.
enum End {
    /// By this wish.
    Wished(Wish),
    /// Another process serves from now on.
    Succeeded(Successor),
}

/// Looks at certificates: at their files, which may be replaced, and at the days they have left.
struct Looks {
    files: FileWatch,
    expiries: Expiries,
    count: u64,
}

impl Looks {
    fn new(conf: &NodeConf, node: &Node) -> Self {
        let expiries = node.expiries.clone();
        expiries.set(&node.materials);
        expiries.warn(unix_seconds());
        let kept = expiries.clone();
        node.parts.add(move |_, materials| {
            let (expiries, materials) = (kept.clone(), materials.clone());
            Ok(Box::new(move || {
                expiries.set(&materials);
                expiries.warn(unix_seconds());
            }))
        });
        Self { files: FileWatch::new(conf), expiries, count: 0 }
    }

    /// Whether files have changed, and are whole again.
    fn take(&mut self, conf: &NodeConf) -> bool {
        self.count += 1;
        if self.count.is_multiple_of(WARN_LOOKS) {
            self.expiries.warn(unix_seconds());
        }
        self.files.settled(conf)
    }
}

impl Life {
    pub(crate) async fn run(mut self, node: Node, predecessor: &mut Option<Predecessor>) -> Result<ExitCode, Failure> {
        let mut wishes = signals::listen()?;
        // From before the start: what is replaced during it is read again.
        let looks = Looks::new(self.reloader.conf(), &node);
        let (shutdown, holdings) = (node.shutdown.clone(), node.holdings.clone());
        let mut tasks = TaskSet::new();
        tracing::info!(
            role = node.conf.role.as_str(),
            node_id = node.identity.id,
            prefix = %node.conf.prefix.display(),
            version = env!("CARGO_PKG_VERSION"),
            "starting"
        );
        let prefix = node.conf.prefix.clone();
        let running = match node.conf.role {
            Role::DataPlane => serving::start_data_plane(node, &mut tasks).await?,
            Role::ControlPlane | Role::Traditional => standalone::start(node, &mut tasks).await?,
        };
        holdings.drop_rest();
        match predecessor.take() {
            None => sign(&prefix),
            Some(predecessor) => {
                tracing::info!("taking over from the process before");
                predecessor.ready(holdings.clone(), move || sign(&prefix));
            }
        }
        notify::serving();
        tracing::info!("started; GET /status/ready on the status listener tells when it is ready");
        let control = running.proxy.as_ref().map(|proxy| proxy.control().clone());
        let end = self.until_end(&mut wishes, looks, &holdings, control.as_ref()).await;
        if let End::Wished(_) = end {
            notify::stopping();
        }
        holdings.close();
        self.end(end, running, tasks, &shutdown, wishes).await;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    /// Grants wishes until one ends the process.
    async fn until_end(
        &mut self,
        wishes: &mut mpsc::Receiver<Wish>,
        mut looks: Looks,
        holdings: &Arc<Holdings>,
        control: Option<&ProxyControl>,
    ) -> End {
        let mut ticks = tokio::time::interval(LOOK_INTERVAL);
        let mut stdin = std::pin::pin!(stdin_ended());
        loop {
            let wish = tokio::select! {
                Some(wish) = wishes.recv() => wish,
                () = &mut stdin, if self.until_stdin_ends => {
                    tracing::info!("standard input ended, stopping");
                    return End::Wished(Wish::Quit);
                }
                _ = ticks.tick() => {
                    if looks.take(self.reloader.conf()) {
                        self.renew_certificates();
                    }
                    continue;
                }
            };
            match wish {
                // A change of the files shows at the next looks and is read once more, which costs nothing.
                Wish::Reload => self.reload(),
                Wish::Reopen => control.iter().for_each(|control| control.reopen_log()),
                Wish::Upgrade => match self.upgrade(holdings).await {
                    Ok(successor) => {
                        self.tell(Ok(&format!("process {} has taken over", successor.id)));
                        // What was asked meanwhile was asked of the node.
                        while let Ok(wish) = wishes.try_recv() {
                            successor.pass_on(wish);
                        }
                        return End::Succeeded(successor);
                    }
                    Err(why) => {
                        tracing::error!(error = why, "no other process has taken over, this one goes on");
                        self.tell(Err(&why));
                    }
                },
                wish @ (Wish::Quit | Wish::Stop) => return End::Wished(wish),
            }
        }
    }

    fn reload(&mut self) {
        match self.reloader.reload() {
            Ok(reloaded) => {
                reloaded.log();
                self.tell(Ok(&reloaded.in_words()));
            }
            Err(failure) => {
                let why = failure.in_words();
                tracing::error!(error = why, "settings refused, those before stay in force");
                self.tell(Err(&why));
            }
        }
    }

    /// Leaves word of what came of a reload or an upgrade, for `gwctl reload` and `gwctl upgrade`.
    fn tell(&self, outcome: Result<&str, &str>) {
        let (word, text) = match outcome {
            Ok(text) => ("done", text),
            Err(text) => ("failed", text),
        };
        let file = self.reloader.conf().prefix.join(OUTCOME_FILE);
        if let Err(error) = write_whole(&file, &format!("{word} {text}")) {
            tracing::warn!(file = %file.display(), %error, "cannot write what came of it");
        }
    }

    fn renew_certificates(&mut self) {
        match self.reloader.renew_certificates() {
            Ok(reloaded) if reloaded.applied.is_empty() => {}
            Ok(reloaded) => tracing::info!(
                settings = reloaded.applied.join(", "),
                "certificates have changed: new connections use them, open ones stay"
            ),
            Err(failure) => {
                tracing::error!(error = failure.in_words(), "certificates refused, those before stay in force");
            }
        }
    }

    async fn upgrade(&self, holdings: &Arc<Holdings>) -> Result<Successor, String> {
        if self.until_stdin_ends {
            return Err("this process was started to end with another one".to_owned());
        }
        if std::process::id() == 1 {
            return Err(
                "this process is the first of its container, which would end with it; change the image".to_owned()
            );
        }
        let (program, holdings) = (self.program.clone(), holdings.clone());
        tracing::info!("starting the process that takes over");
        let started = tokio::task::spawn_blocking(move || Successor::start(&program, &holdings)).await;
        let successor = started.unwrap_or_else(|error| Err(error.to_string()))?;
        tracing::info!(process = successor.id, "the other process accepts connections, this one ends");
        Ok(successor)
    }

    /// Lets what is in flight end, and ends.
    async fn end(
        self,
        end: End,
        running: Running,
        tasks: TaskSet,
        shutdown: &Shutdown,
        mut wishes: mpsc::Receiver<Wish>,
    ) {
        let conf = self.reloader.conf();
        let fast = Drain { requests: conf.shutdown_fast_grace, streams: Duration::ZERO };
        let slow = Drain::all(conf.shutdown_grace);
        let drain = if matches!(end, End::Wished(Wish::Stop)) { fast } else { slow };
        shutdown.enter(Phase::StopAccepting);
        let control = running.proxy.as_ref().map(|proxy| proxy.control().clone());
        let hastened = async {
            while let Some(wish) = wishes.recv().await {
                if let (Wish::Stop, Some(control)) = (wish, &control) {
                    control.hasten(fast);
                }
            }
            std::future::pending::<()>().await;
        };
        let ended = async {
            let proxy = async {
                if let Some(proxy) = running.proxy {
                    proxy.stop_within(drain).await;
                }
            };
            match end {
                End::Wished(_) => {
                    proxy.await;
                    tasks.shut_down(shutdown, drain.requests).await;
                    let _ = std::fs::remove_file(conf.prefix.join(PROCESS_FILE));
                }
                // The other process waits for the end of what writes, not for the last request.
                End::Succeeded(successor) => {
                    let rest = async {
                        tasks.shut_down(shutdown, drain.requests).await;
                        // A task that was given up may have left a write behind that no one can call back.
                        let _ = tokio::task::spawn_blocking(running.close).await;
                        successor.yield_turn();
                        // What it drains is no reason to keep others out once the other process has ended.
                        drop(self.lock);
                    };
                    tokio::join!(proxy, rest);
                }
            }
        };
        tokio::select! {
            () = ended => {}
            () = hastened => {}
        }
    }
}

/// Writes the number of this process into the prefix, for `kill` and for supervisors.
fn sign(prefix: &Path) {
    let file: PathBuf = prefix.join(PROCESS_FILE);
    if let Err(error) = write_whole(&file, &std::process::id().to_string()) {
        tracing::warn!(file = %file.display(), %error, "cannot write the number of the process");
    }
}

/// Writes a line beside the file and renames, so that nobody reads half of it.
fn write_whole(file: &Path, line: &str) -> std::io::Result<()> {
    let beside = file.with_extension("new");
    std::fs::write(&beside, format!("{line}\n"))?;
    std::fs::rename(&beside, file)
}

fn unix_seconds() -> i64 {
    i64::try_from(gwctl_store::unix_millis() / 1000).unwrap_or(i64::MAX)
}
