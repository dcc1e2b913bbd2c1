//! Running a node: settings, logging, signals, and the roles.

mod activation;
mod certificates;
mod handover;
mod identity;
mod life;
mod listeners;
mod log_level;
mod logging;
mod memory;
mod notify;
mod process;
mod reload;
mod serving;
mod signals;
mod sockets;
mod standalone;
mod unavailable;

use crate::cli::{JoinArgs, SettingsArgs};
use crate::failure::Failure;
use crate::settings;
use certificates::Expiries;
use gwctl_conf::{Materials, NodeConf};
use gwctl_lifecycle::Shutdown;
use handover::{Predecessor, Program};
use identity::NodeIdentity;
use life::Life;
pub use life::{OUTCOME_FILE, PROCESS_FILE};
use logging::Logging;
use reload::{Parts, Reloader};
use sockets::Holdings;
use std::process::ExitCode;
use std::sync::Arc;

/// Everything a role is started with.
pub(crate) struct Node {
    pub(crate) conf: NodeConf,
    pub(crate) materials: Materials,
    pub(crate) identity: NodeIdentity,
    pub(crate) logging: Arc<Logging>,
    pub(crate) shutdown: Shutdown,
    pub(crate) holdings: Arc<Holdings>,
    pub(crate) parts: Arc<Parts>,
    pub(crate) expiries: Expiries,
}

/// `gwctl start` and `gwctl cp start`: runs until SIGTERM, SIGQUIT or SIGINT.
pub fn start(args: &SettingsArgs, fixed: &[(&str, &str)]) -> Result<ExitCode, Failure> {
    let Some(found) = Predecessor::find() else { return start_with(args, fixed, Holdings::none(), &mut None) };
    let (predecessor, holdings) = found.map_err(|error| {
        Failure::because("cannot take over from another process", &error)
            .hint("the variable GWCTL_HANDOVER is for processes that gwctl starts itself: unset it")
    })?;
    let mut predecessor = Some(predecessor);
    let outcome = start_with(args, fixed, holdings, &mut predecessor);
    if let (Err(failure), Some(predecessor)) = (&outcome, &predecessor) {
        predecessor.failed(&failure.in_words());
    }
    outcome
}

fn start_with(
    args: &SettingsArgs,
    fixed: &[(&str, &str)],
    holdings: Holdings,
    predecessor: &mut Option<Predecessor>,
) -> Result<ExitCode, Failure> {
    let program = Program::of_process().map_err(|error| Failure::because("cannot tell which program runs", &error))?;
    let loaded = settings::read(args, fixed)?;
    let conf = loaded.conf;
    let logging = Arc::new(Logging::start(conf.log_level.as_str()));
    process::log_panics();
    for warning in &loaded.warnings {
        tracing::warn!("{}", settings::line(warning));
    }
    raise_open_files();
    if predecessor.is_none() {
        holdings.add(activation::sockets());
    }
    let materials = settings::materials(&conf)?;
    identity::make_prefix(&conf.prefix)?;
    let lock = holdings.claim(&conf.prefix).map_err(|error| {
        let failure = Failure::because(format!("cannot use the prefix folder {}", conf.prefix.display()), &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    let identity = NodeIdentity::of(&conf)?;
    let (parts, holdings, shutdown) = (Arc::<Parts>::default(), Arc::new(holdings), Shutdown::new());
    let fixed = fixed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let reloader = Reloader::new((args.clone(), fixed), parts.clone(), logging.clone(), &conf, &materials);
    let expiries = Expiries::default();
    let node = Node { conf, materials, identity, logging, shutdown, holdings, parts, expiries };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start the runtime", &error))?;
    let life = Life { program, reloader, lock, until_stdin_ends: args.until_stdin_ends };
    runtime.block_on(life.run(node, predecessor))
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
