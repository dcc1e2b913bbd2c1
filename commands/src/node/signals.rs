//! What signals ask of a node. They mean what they mean to nginx, and so to Kong.

use crate::failure::Failure;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// A repeated signal within this time is one wish: process groups and supervisors send it twice.
const ONE_WISH: Duration = Duration::from_secs(1);

/// What is asked of a node that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// SIGHUP: read the settings again.
    Reload,
    /// SIGUSR1: open log files anew.
    Reopen,
    /// SIGUSR2: let the program that has taken this one's place on disk take over.
    Upgrade,
    /// SIGQUIT: end, and let what is in flight end before.
    Quit,
    /// SIGTERM, SIGINT: end soon.
    Stop,
}

/// Listens for signals. One that asks for an end, more than a second after another one did, ends the process at once;
/// but after SIGQUIT the first other one only makes the end come soon.
pub(crate) fn listen() -> Result<mpsc::Receiver<Wish>, Failure> {
    let (wishes, heard) = mpsc::channel(16);
    let kinds = [
        ("SIGHUP", SignalKind::hangup(), Wish::Reload),
        ("SIGUSR1", SignalKind::user_defined1(), Wish::Reopen),
        ("SIGUSR2", SignalKind::user_defined2(), Wish::Upgrade),
    ];
    for (name, kind, wish) in kinds {
        let mut received = open(kind)?;
        let wishes = wishes.clone();
        tokio::spawn(async move {
            while received.recv().await.is_some() {
                tracing::info!(signal = name, "signal received");
                let _ = wishes.send(wish).await;
            }
        });
    }
    // A write beyond the limit of a file's size (`ulimit -f`) is an error as on a full disk, and no reason to die.
    let _ = open(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let (term, quit, interrupt) = (SignalKind::terminate(), SignalKind::quit(), SignalKind::interrupt());
    tokio::spawn(ends(open(term)?, open(quit)?, open(interrupt)?, wishes));
    Ok(heard)
}

fn open(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::because("cannot listen for signals", &error))
}

async fn ends(mut term: Signal, mut quit: Signal, mut interrupt: Signal, wishes: mpsc::Sender<Wish>) {
    let mut before: Option<(Wish, Instant)> = None;
    loop {
        let (name, wish) = tokio::select! {
            _ = term.recv() => ("SIGTERM", Wish::Stop),
            _ = quit.recv() => ("SIGQUIT", Wish::Quit),
            _ = interrupt.recv() => ("SIGINT", Wish::Stop),
        };
        match before {
            Some((Wish::Stop, since)) if since.elapsed() > ONE_WISH => {
                tracing::warn!(signal = name, "second signal, ending at once");
                std::process::exit(130);
            }
            Some((earlier, _)) if earlier == Wish::Stop || wish == Wish::Quit => continue,
            _ => tracing::info!(signal = name, "stopping"),
        }
        before = Some((wish, Instant::now()));
        let _ = wishes.send(wish).await;
    }
}
