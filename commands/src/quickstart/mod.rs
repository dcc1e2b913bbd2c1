//! `gwctl quickstart`: a whole cluster with traffic in one terminal, as real processes on free ports of loopback.

mod children;
mod traffic;
pub mod upstream;

use crate::cli::QuickstartArgs;
use crate::failure::Failure;
use children::{Children, free_ports};
use gwctl_entities::fleet::Fleet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// The configuration that is applied.
const TEMPLATE: &str = include_str!("../../../templates/quickstart.yaml");

/// Longest wait for one step of the start.
const STEP_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);
/// Longest wait for one answer, also on a busy machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Addresses of the parts of the cluster.
struct Places {
    dir: PathBuf,
    admin: String,
    proxies: [String; 2],
}

pub fn run(args: &QuickstartArgs) -> Result<ExitCode, Failure> {
    let (dir, fresh) = folder(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::because("cannot start the runtime", &error))?;
    runtime.block_on(async {
        // Before the first child: from then on nothing may end this process without stopping them.
        let interrupted = interrupted()?;
        let mut children = Children::new(&dir);
        let outcome = tokio::select! {
            outcome = session(args, &dir, &mut children) => outcome,
            () = interrupted => Ok(()),
        };
        children.stop().await;
        let stay = format!("the cluster's files stay in {} (remove them with `rm -r {}`)", dir.display(), pasted(&dir));
        if let Err(failure) = outcome {
            tell!("{stay}");
            return Err(failure);
        }
        if !fresh || args.keep {
            tell!("stopped; {stay}");
        } else if let Err(error) = std::fs::remove_dir_all(&dir)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tell!("stopped; {stay}: {error}");
        } else {
            tell!("stopped; {} was made for this run and is removed (--keep keeps it)", dir.display());
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The folder given, or a fresh one below the user's state folder; whether it is fresh.
fn folder(args: &QuickstartArgs) -> Result<(PathBuf, bool), Failure> {
    let dir = args.dir.clone().unwrap_or_else(|| {
        let state = absolute("XDG_STATE_HOME");
        let home = absolute("HOME").map(|home| home.join(".local/state"));
        let base = state.or(home).unwrap_or_else(std::env::temp_dir);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        base.join("gwctl").join(format!("quickstart-{now}-{}", std::process::id()))
    });
    std::fs::create_dir_all(&dir).map_err(|error| {
        Failure::because(format!("cannot make the folder {}", dir.display()), &error)
            .hint("give a folder that can be written with --dir")
    })?;
    let dir = std::path::absolute(&dir)
        .map_err(|error| Failure::because(format!("cannot use the folder {}", dir.display()), &error))?;
    Ok((dir, args.dir.is_none()))
}

/// The folder a variable names; empty and relative ones count as not set, as for the prefix of a node.
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|folder| folder.is_absolute())
}

/// Listens for SIGINT, SIGTERM and SIGHUP (the terminal is gone) from now on; the future ends with the first.
fn interrupted() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let failed = |error: std::io::Error| Failure::because("cannot listen for signals", &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

async fn session(args: &QuickstartArgs, dir: &Path, children: &mut Children) -> Result<(), Failure> {
    let places = start(dir, children).await?;
    traffic::send(&places.proxies).await?;
    show_examples(&places)?;
    // From now on: a slow machine is not to end a cluster that has shown nothing yet.
    let end = args.exit_after.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return status_lines(&places, children, end).await;
    }
    match end {
        Some(end) => timeout_at(end, top(&places, children)).await.unwrap_or(Ok(())),
        None => top(&places, children).await,
    }
}

async fn start(dir: &Path, children: &mut Children) -> Result<Places, Failure> {
    certificate(dir)?;
    let [echo_a, echo_b, admin, cluster, cp_status, proxy_1, status_1, proxy_2, status_2] = free_ports()?;
    let at = |port: u16| format!("127.0.0.1:{port}");
    step("starting a demo upstream with two addresses");
    children.spawn("upstream", &["demo-upstream", &at(echo_a), &at(echo_b)])?;
    step("starting the control plane");
    let (crt, key) = (dir.join("cluster.crt"), dir.join("cluster.key"));
    let pair = [format!("cluster_cert={}", crt.display()), format!("cluster_cert_key={}", key.display())];
    let settings = [
        format!("admin_listen={}", at(admin)),
        format!("cluster_listen={}", at(cluster)),
        format!("status_listen={}", at(cp_status)),
    ];
    let prefix = dir.join("cp").display().to_string();
    children.spawn("cp", &node(&["cp", "start"], &prefix, &[&pair[..], &settings].concat()))?;
    let places =
        Places { dir: dir.to_owned(), admin: format!("http://{}", at(admin)), proxies: [at(proxy_1), at(proxy_2)] };
    wait_for(children, "the control plane", || reachable(format!("{}/status", places.admin))).await?;
    for (name, proxy, status) in [("dp-1", proxy_1, status_1), ("dp-2", proxy_2, status_2)] {
        step(&format!("starting data plane {name}"));
        let settings = [
            format!("proxy_listen={}", at(proxy)),
            format!("status_listen={}", at(status)),
            format!("cluster_dp_labels=name:{name}"),
        ];
        let prefix = dir.join(name).display().to_string();
        children.spawn(name, &node(&["dp", "join", &at(cluster)], &prefix, &[&pair[..], &settings].concat()))?;
    }
    let file = dir.join("quickstart.yaml");
    let text = TEMPLATE.replace("${ECHO_A}", &at(echo_a)).replace("${ECHO_B}", &at(echo_b));
    std::fs::write(&file, text)
        .map_err(|error| Failure::because(format!("cannot write {}", file.display()), &error))?;
    step("applying quickstart.yaml");
    children.run("apply", &["apply", "--yes", "--addr", &places.admin, "-f", &file.display().to_string()]).await?;
    wait_for(children, "both data planes to have the configuration", || in_sync(&places.admin)).await?;
    Ok(places)
}

fn node(command: &[&str], prefix: &str, settings: &[String]) -> Vec<String> {
    let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["--until-stdin-ends".to_owned(), "--prefix".to_owned(), prefix.to_owned()]);
    words.extend(settings.iter().flat_map(|setting| ["--set".to_owned(), setting.clone()]));
    words
}

fn certificate(dir: &Path) -> Result<(), Failure> {
    let (crt, key) = (dir.join("cluster.crt"), dir.join("cluster.key"));
    if crt.exists() && key.exists() {
        step(&format!("using the cluster certificate {}", crt.display()));
        return Ok(());
    }
    step(&format!("making the cluster certificate {}", crt.display()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let pair = gwctl_certs::cluster_pair(now, gwctl_certs::CLUSTER_DAYS)
        .map_err(|error| Failure::because("cannot make the cluster certificate", &error))?;
    let written = std::fs::write(&crt, &pair.certificate).and_then(|()| children::write_secret(&key, &pair.key));
    written
        .map_err(|error| Failure::because(format!("cannot write the cluster certificate to {}", dir.display()), &error))
}

fn step(text: &str) {
    tell!("==> {text}");
}

/// Polls until the check holds; fails when a child ends or the limit runs out.
async fn wait_for<C: Future<Output = bool>>(
    children: &mut Children,
    what: &str,
    mut check: impl FnMut() -> C,
) -> Result<(), Failure> {
    let until = Instant::now() + STEP_LIMIT;
    while !check().await {
        children.check()?;
        if Instant::now() > until {
            return Err(Failure::new(format!("waited {} s for {what}", STEP_LIMIT.as_secs()))
                .hint(format!("the logs are in {}", children.folder().display())));
        }
        sleep(POLL).await;
    }
    Ok(())
}

async fn reachable(url: String) -> bool {
    matches!(timeout(Duration::from_secs(2), reqwest::get(url)).await, Ok(Ok(answer)) if answer.status().is_success())
}

async fn fleet(admin: &str) -> Option<Fleet> {
    let answer = timeout(ANSWER_LIMIT, reqwest::get(format!("{admin}/gwctl/fleet"))).await.ok()?.ok()?;
    answer.json().await.ok()
}

/// Both data planes are connected and report the control plane's hash of a configuration that has been applied.
async fn in_sync(admin: &str) -> bool {
    fleet(admin).await.is_some_and(|fleet| {
        let current = fleet.items.iter().filter(|item| item.connected && item.applied_version == Some(fleet.version));
        current.count() == 2
    })
}

/// This program as another terminal can call it: by its name where it was found on the PATH, else by its whole path.
fn program() -> String {
    let called = std::env::args_os().next().map(PathBuf::from);
    let by_name = called.is_some_and(|called| called.components().count() == 1 && !called.starts_with("."));
    let path = std::env::current_exe().ok().filter(|_| !by_name);
    path.map_or_else(|| "gwctl".to_owned(), |path| pasted(&path))
}

/// A path as a word for a shell.
fn pasted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-+,:@%".contains(sign);
    if path.chars().all(plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// Lines to paste; also kept in a file, since the dashboard covers the terminal.
fn show_examples(places: &Places) -> Result<(), Failure> {
    let [one, two] = &places.proxies;
    let lines = format!(
        "curl -i http://{one}/orders -H 'apikey: alice-demo-key'\n\
         curl -i http://{two}/orders/42 -H 'apikey: batch-demo-key'\n\
         curl -i http://{one}/catalogue -H 'Host: shop.example' -H 'Origin: https://shop.example'\n\
         curl -i http://{two}/catalogue -H 'X-Channel: beta'\n\
         curl -i http://{one}/status-page\n\
         curl -i http://{two}/maintenance\n\
         curl -s {admin}/clustering/data-planes\n\
         curl -i -X POST {admin}/services/catalogue/routes -d 'paths[]=/new'   # then: curl -i http://{one}/new\n\
         {program} top --addr {admin}\n",
        admin = places.admin,
        program = program(),
    );
    let file = places.dir.join("try.txt");
    std::fs::write(&file, &lines)
        .map_err(|error| Failure::because(format!("cannot write {}", file.display()), &error))?;
    let indented: String = lines.lines().map(|line| format!("  {line}\n")).collect();
    tell!("\nThe cluster runs. Try (also in {}):\n{indented}Logs and data: {}\n", file.display(), places.dir.display());
    Ok(())
}

async fn top(places: &Places, children: &mut Children) -> Result<(), Failure> {
    let note = format!("q stops the whole cluster; lines to try are in {}", places.dir.join("try.txt").display());
    let ended = children.foreground("top", &["top", "--addr", &places.admin, "--note", &note]).await?;
    if ended.success() { Ok(()) } else { Err(Failure::new(format!("gwctl top ended with {ended}"))) }
}

/// One line a second until the end, at least one.
async fn status_lines(places: &Places, children: &mut Children, end: Option<Instant>) -> Result<(), Failure> {
    let client = traffic::client()?;
    let mut shown = false;
    loop {
        children.check()?;
        let line = status_line(places, &client);
        let line = match end.filter(|_| shown) {
            Some(end) => timeout_at(end, line).await.ok(),
            None => Some(line.await),
        };
        let Some(line) = line else { return Ok(()) };
        println(&line);
        shown = true;
        let next = Instant::now() + Duration::from_secs(1);
        if let Some(end) = end.filter(|end| *end <= next) {
            sleep_until(end).await;
            return Ok(());
        }
        sleep_until(next).await;
    }
}

/// How many data planes are in sync and what they answer.
async fn status_line(places: &Places, client: &reqwest::Client) -> String {
    let mut answers = Vec::new();
    for proxy in &places.proxies {
        answers.push(traffic::one(client, proxy).await);
    }
    let answers = answers.join(" ");
    let Some(fleet) = fleet(&places.admin).await else {
        return format!("control plane does not answer; GET /orders {answers}");
    };
    let online = fleet.items.iter().filter(|item| item.connected).count();
    let synced = fleet.items.iter().filter(|item| item.applied_version == Some(fleet.version)).count();
    let hash: String = fleet.config_hash.unwrap_or_default().chars().take(8).collect();
    format!("version {} hash {hash} online {online}/2 in sync {synced}/2 GET /orders {answers}", fleet.version)
}

fn println(line: &str) {
    use std::io::Write as _;
    // A reader that closed the pipe has seen enough; the cluster goes on until its end.
    let _ = writeln!(std::io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(pasted(Path::new("/home/ada/gwctl-1.0/gwctl")), "/home/ada/gwctl-1.0/gwctl");
        assert_eq!(pasted(Path::new("/home/ada's work/$gwctl")), r"'/home/ada'\''s work/$gwctl'");
    }
}
