//! `gwctl reload`, `upgrade`, `quit` and `stop`: what is asked of the node that runs in a prefix, by signal.

use crate::cli::NodeArgs;
use crate::failure::Failure;
use crate::node::{OUTCOME_FILE, PROCESS_FILE};
use crate::settings;
use gwctl_store::FolderLock;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Pause between looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Lets the node read its settings again; tells what came of it.
pub fn reload(args: &NodeArgs) -> Result<ExitCode, Failure> {
    outcome_of(args, Signal::HUP, "the settings in force stay as they are")
}

/// Lets the program on disk take over; tells what came of it.
pub fn upgrade(args: &NodeArgs) -> Result<ExitCode, Failure> {
    outcome_of(args, Signal::USR2, "the node goes on as it was")
}

/// Stops the node; what is in flight may end before.
pub fn quit(args: &NodeArgs) -> Result<ExitCode, Failure> {
    end(args, Signal::QUIT)
}

/// Stops the node soon.
pub fn stop(args: &NodeArgs) -> Result<ExitCode, Failure> {
    end(args, Signal::TERM)
}

fn outcome_of(args: &NodeArgs, signal: Signal, otherwise: &str) -> Result<ExitCode, Failure> {
    let (prefix, process) = find(args)?;
    let file = prefix.join(OUTCOME_FILE);
    // What an earlier one came to.
    let _ = std::fs::remove_file(&file);
    send(process, signal)?;
    let told = wait(args, process, || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n')))?;
    let Some(told) = told else {
        return Err(Failure::new("the node has ended").hint("its log says why"));
    };
    match told.trim_end().split_once(' ') {
        Some(("done", words)) => {
            // A reader that closed the pipe early has what it wanted.
            let _ = writeln!(std::io::stdout(), "{words}");
            Ok(ExitCode::SUCCESS)
        }
        Some((_, words)) => Err(Failure::new(words).hint(otherwise)),
        None => Err(Failure::new("the node did not say what came of it").hint("its log does")),
    }
}

fn end(args: &NodeArgs, signal: Signal) -> Result<ExitCode, Failure> {
    let (_, process) = find(args)?;
    send(process, signal)?;
    wait(args, process, || None::<()>)?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for a value, or for the end of the process (None).
fn wait<T>(args: &NodeArgs, process: Pid, mut probe: impl FnMut() -> Option<T>) -> Result<Option<T>, Failure> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(args.timeout) {
        let gone = !runs(process);
        let value = probe();
        if value.is_some() || gone {
            return Ok(value);
        }
        std::thread::sleep(PAUSE);
    }
    let failure = Failure::new(format!("process {} is not done after {} s", process.as_raw_nonzero(), args.timeout));
    Err(failure.hint("wait longer with --timeout, or see its log"))
}

fn find(args: &NodeArgs) -> Result<(PathBuf, Pid), Failure> {
    let prefix = match &args.settings.prefix {
        Some(prefix) => PathBuf::from(prefix),
        None => settings::read(&args.settings, &[])?.conf.prefix,
    };
    if let Err(error) = std::fs::read_dir(&prefix)
        && error.kind() == std::io::ErrorKind::PermissionDenied
    {
        return Err(Failure::because(format!("cannot look into {}", prefix.display()), &error)
            .hint("run this as the user the node runs as"));
    }
    // A node that was killed leaves its number, which may be another program's by now; its lock went with it.
    let process = process_of(&prefix).filter(|process| runs(*process) && FolderLock::is_held(&prefix));
    let process = process.ok_or_else(|| {
        Failure::new(format!("no node runs in {}", prefix.display()))
            .hint("give its folder with -p, or its settings file with -c, and the user it runs as")
    })?;
    Ok((prefix, process))
}

/// Whether a process is there and has not ended; one that has ended may wait to be noticed by its parent.
fn runs(process: Pid) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    let ended = text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'));
    test_kill_process(process).is_ok() && !ended
}

fn process_of(prefix: &Path) -> Option<Pid> {
    Pid::from_raw(std::fs::read_to_string(prefix.join(PROCESS_FILE)).ok()?.trim().parse().ok()?)
}

fn send(process: Pid, signal: Signal) -> Result<(), Failure> {
    let sent = kill_process(process, signal);
    sent.map_err(|error| Failure::because(format!("cannot signal process {}", process.as_raw_nonzero()), &error))
}
