//! `gwctl top`: the driver of the dashboard.

use super::args::TopArgs;
use super::connect::{client, failure, run};
use super::look::{Look, interactive};
use crate::failure::{Failure, INTERRUPTED};
use gwctl_admin_client::{Client, ClientError};
use gwctl_entities::fleet::Fleet;
use gwctl_tui::{Action, Event, Fault, Key, Model, Options, frame_text, update, view, whole_width};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, KeyCode, KeyEventKind, KeyModifiers};
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How often time passes on the screen.
const TICK: Duration = Duration::from_millis(100);
/// Size of the one frame of `--once`, where the terminal tells none.
const WIDTH: u16 = 160;
/// Lines of a frame that are not data planes.
const AROUND: usize = 4;

pub fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    let client = client(&args.connect)?;
    let look = Look::of(&args.look);
    let one = args.once || !interactive();
    let model = Model::new(Options {
        note: args.note.clone().filter(|_| !one),
        whole: one && !std::io::stdout().is_terminal(),
        address: client.address().to_owned(),
        interval: u64::try_from(args.interval.as_millis()).unwrap_or(u64::MAX),
        colour: look.colour,
        ascii: look.ascii,
    });
    if one {
        return run(once(client, model));
    }
    // Sets raw mode and the other screen, and a panic hook that puts both back.
    let terminal = ratatui::try_init().map_err(|error| Failure::because("cannot use the terminal", &error))?;
    let outcome = run(session(client, model, terminal));
    ratatui::restore();
    outcome
}

/// One frame as text, all data planes on it.
async fn once(client: Client, mut model: Model) -> Result<ExitCode, Failure> {
    let fleet = client.fleet().await.map_err(|error| failure(&error))?;
    let terminal = std::io::stdout().is_terminal().then(ratatui::crossterm::terminal::size).and_then(Result::ok);
    let height = u16::try_from(fleet.items.len() + AROUND).unwrap_or(u16::MAX);
    update(&mut model, Event::Answer { now: 0, fleet: Ok(Box::new(fleet)) });
    // Nothing is cut where no terminal says how much it shows.
    let width = terminal.map_or_else(|| whole_width(&model).max(WIDTH), |(width, _)| width.max(40));
    update(&mut model, Event::Resize { width, height: height.max(10) });
    let frame = frame_text(&model, width, height.max(10));
    // The last line names keys, which nobody can press here.
    let lines: Vec<&str> = frame.lines().collect();
    let text = lines[..lines.len().saturating_sub(1)].join("\n");
    // A reader that closed the pipe early has what it wanted.
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// What the dashboard waits for.
enum Input {
    Happened(Event),
    /// The terminal is gone.
    Ended,
}

async fn session(client: Client, mut model: Model, mut terminal: DefaultTerminal) -> Result<ExitCode, Failure> {
    let broken = |error: std::io::Error| Failure::because("cannot draw on the terminal", &error);
    let started = Instant::now();
    let now = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (sender, mut inputs) = mpsc::unbounded_channel();
    // Reading keys blocks; the thread ends with the process.
    std::thread::spawn(move || read_keys(&sender));
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut hangup = signal(SignalKind::hangup()).map_err(broken)?;
    let mut end = signal(SignalKind::terminate()).map_err(broken)?;
    // The key arrives as a key here; this is the signal from elsewhere.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let size = terminal.size().map_err(broken)?;
    update(&mut model, Event::Resize { width: size.width, height: size.height });
    let mut question: Option<JoinHandle<Result<Fleet, ClientError>>> = None;
    loop {
        let events = tokio::select! {
            input = inputs.recv() => match input {
                Some(Input::Happened(event)) => vec![event],
                Some(Input::Ended) | None => return Ok(ExitCode::SUCCESS),
            },
            answer = answered(&mut question) => {
                question = None;
                vec![Event::Answer { now: now(), fleet: answer }]
            }
            _ = ticks.tick() => vec![Event::Tick { now: now() }],
            _ = hangup.recv() => return Ok(ExitCode::SUCCESS),
            _ = end.recv() => return Ok(ExitCode::SUCCESS),
            _ = interrupt.recv() => return Ok(ExitCode::from(INTERRUPTED)),
        };
        for action in events.into_iter().flat_map(|event| update(&mut model, event)).collect::<Vec<_>>() {
            match action {
                Action::Quit => return Ok(ExitCode::SUCCESS),
                Action::Fetch => {
                    let client = client.clone();
                    question = Some(tokio::spawn(async move { client.fleet().await }));
                }
            }
        }
        // Only cells that differ from the last frame are written.
        terminal.draw(|frame| view(&model, frame)).map_err(broken)?;
    }
}

/// The answer to the open question; never, when none is open.
async fn answered(question: &mut Option<JoinHandle<Result<Fleet, ClientError>>>) -> Result<Box<Fleet>, Fault> {
    let Some(question) = question else { return std::future::pending().await };
    match question.await {
        Ok(Ok(fleet)) => Ok(Box::new(fleet)),
        Ok(Err(error)) => Err(Fault { reason: error.to_string() }),
        Err(error) => Err(Fault { reason: format!("the question was lost: {error}") }),
    }
}

fn read_keys(sender: &mpsc::UnboundedSender<Input>) {
    loop {
        let inputs: Vec<Input> = match event::read() {
            Ok(event::Event::Key(key)) if key.kind != KeyEventKind::Release => {
                known(key.code, key.modifiers).into_iter().map(|key| Input::Happened(Event::Key(key))).collect()
            }
            Ok(event::Event::Resize(width, height)) => vec![Input::Happened(Event::Resize { width, height })],
            Ok(_) => Vec::new(),
            Err(_) => vec![Input::Ended],
        };
        for input in inputs {
            let last = matches!(input, Input::Ended);
            if sender.send(input).is_err() || last {
                return;
            }
        }
    }
}

/// The keys in the dashboard's own words.
///
/// A key with alt is what a terminal sends for escape and the key typed quickly after it, and means that here.
fn known(code: KeyCode, modifiers: KeyModifiers) -> Vec<Key> {
    let key = match code {
        KeyCode::Char(letter) if modifiers.contains(KeyModifiers::CONTROL) => Key::Ctrl(letter.to_ascii_lowercase()),
        KeyCode::Char(letter) if modifiers.contains(KeyModifiers::ALT) => return vec![Key::Esc, Key::Char(letter)],
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        _ => return Vec::new(),
    };
    vec![key]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_and_a_key_that_arrive_together_are_two_keys() {
        assert_eq!(known(KeyCode::Char('q'), KeyModifiers::ALT), [Key::Esc, Key::Char('q')]);
        assert_eq!(known(KeyCode::Char('C'), KeyModifiers::CONTROL), [Key::Ctrl('c')]);
        assert_eq!(known(KeyCode::F(1), KeyModifiers::NONE), []);
    }
}
