//! Running a node: settings, logging, signals, and the roles.

mod identity;
mod listeners;
mod log_level;
mod logging;
mod process;
mod serving;
mod standalone;
mod unavailable;

use crate::cli::{JoinArgs, SettingsArgs};
use crate::failure::Failure;
use crate::settings;
use gwctl_conf::{Materials, NodeConf, Role};
use gwctl_lifecycle::{Shutdown, TaskSet};
use identity::NodeIdentity;
use logging::Logging;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Everything a role is started with.
pub(crate) struct Node {
    pub(crate) conf: NodeConf,
    pub(crate) materials: Materials,
    pub(crate) identity: NodeIdentity,
    pub(crate) logging: Arc<Logging>,
    pub(crate) shutdown: Shutdown,
}

/// `gwctl start` and `gwctl cp start`: runs until SIGTERM, SIGQUIT or SIGINT.
pub fn start(args: &SettingsArgs, fixed: &[(&str, &str)]) -> Result<ExitCode, Failure> {
    let loaded = settings::read(args, fixed)?;
    let conf = loaded.conf;
    let logging = Arc::new(Logging::start(conf.log_level.as_str()));
    for warning in &loaded.warnings {
        tracing::warn!("{}", settings::line(warning));
    }
    raise_open_files();
    let materials = settings::materials(&conf)?;
    identity::make_prefix(&conf.prefix)?;
    let identity = NodeIdentity::of(&conf)?;
    let node = Node { conf, materials, identity, logging, shutdown: Shutdown::new() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start the runtime", &error))?;
    runtime.block_on(run(node, args.until_stdin_ends))
}

/// Takes as many open files as the system allows: each connection needs one, and the usual soft limit of 1024 is used
/// up by a few hundred slow clients.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files; raise it with `ulimit -n` or LimitNOFILE=");
    }
}

/// `gwctl dp join`.
pub fn join(args: &JoinArgs) -> Result<ExitCode, Failure> {
    let control_planes = args.control_planes.join(",");
    let labels = args.labels.join(",");
    let mut fixed = vec![("role", "data_plane"), ("database", "off"), ("cluster_control_plane", &*control_planes)];
    let flags = [("cluster_cert", args.cluster_cert.as_deref()), ("cluster_cert_key", args.cluster_key.as_deref())];
    fixed.extend(flags.iter().filter_map(|(key, value)| Some((*key, (*value)?))));
    if !labels.is_empty() {
        fixed.push(("cluster_dp_labels", &labels));
    }
    start(&args.settings, &fixed)
}

async fn run(node: Node, until_stdin_ends: bool) -> Result<ExitCode, Failure> {
    let (shutdown, grace) = (node.shutdown.clone(), node.conf.shutdown_grace);
    let ended = signals()?;
    let mut tasks = TaskSet::new();
    tracing::info!(
        role = node.conf.role.as_str(),
        node_id = node.identity.id,
        prefix = %node.conf.prefix.display(),
        version = env!("CARGO_PKG_VERSION"),
        "starting"
    );
    let running = match node.conf.role {
        Role::DataPlane => serving::start_data_plane(node, &mut tasks).await?,
        Role::ControlPlane | Role::Traditional => standalone::start(node, &mut tasks).await?,
    };
    tracing::info!("started; GET /status/ready on the status listener tells when it is ready");
    tokio::select! {
        () = ended => {}
        () = stdin_ended(), if until_stdin_ends => tracing::info!("standard input ended, stopping"),
    }
    running.stop(&shutdown, tasks, grace).await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// What lives beside the tasks and ends with the node.
pub(crate) struct Running {
    proxy: Option<gwctl_proxy::Proxy>,
}

impl Running {
    pub(crate) fn new(proxy: Option<gwctl_proxy::Proxy>) -> Self {
        Self { proxy }
    }

    async fn stop(self, shutdown: &Shutdown, tasks: TaskSet, grace: std::time::Duration) {
        shutdown.enter(gwctl_lifecycle::Phase::StopAccepting);
        if let Some(proxy) = self.proxy {
            proxy.stop().await;
        }
        tasks.shut_down(shutdown, grace).await;
    }
}

/// Waits for the end of standard input: whoever holds the other end of the pipe is gone or wants this process to stop.
pub(crate) async fn stdin_ended() {
    let (ended, end) = tokio::sync::oneshot::channel();
    // A thread of its own: a blocked read would keep the runtime from ending.
    std::thread::spawn(move || {
        let mut rest = std::io::stdin().lock();
        let _ = std::io::copy(&mut rest, &mut std::io::sink());
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// A repeated signal within this time is one wish: process groups and supervisors send it twice.
const ONE_WISH: std::time::Duration = std::time::Duration::from_secs(1);

/// Waits for a signal that ends the node. A later one ends the process at once.
fn signals() -> Result<impl Future<Output = ()>, Failure> {
    let failed = |error: std::io::Error| Failure::because("cannot listen for signals", &error);
    let mut term = signal(SignalKind::terminate()).map_err(failed)?;
    let mut quit = signal(SignalKind::quit()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    outlive_signals().map_err(failed)?;
    let mut next = async move || {
        tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = quit.recv() => "SIGQUIT",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    Ok(async move {
        let name = next().await;
        tracing::info!(signal = name, "stopping");
        let first = std::time::Instant::now();
        tokio::spawn(async move {
            loop {
                next().await;
                if first.elapsed() > ONE_WISH {
                    tracing::warn!("second signal, ending at once");
                    std::process::exit(130);
                }
            }
        });
    })
}

/// Signals that mean something to nginx and would end a process that does not know them: a closed terminal and a log
/// rotation must not stop a gateway.
fn outlive_signals() -> std::io::Result<()> {
    let kinds = [
        ("SIGHUP", SignalKind::hangup()),
        ("SIGUSR1", SignalKind::user_defined1()),
        ("SIGUSR2", SignalKind::user_defined2()),
    ];
    for (name, kind) in kinds {
        let mut received = signal(kind)?;
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                tracing::warn!(signal = name, "signal has no effect: restart the node to read its settings again");
            }
        });
    }
    Ok(())
}
