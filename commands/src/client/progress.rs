//! How far long work is.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// A line on stderr that rewrites itself, on a terminal and for long work only.
pub struct Progress {
    on: bool,
    started: Instant,
    last: Option<Instant>,
}

impl Progress {
    pub fn new() -> Progress {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        Progress { on: std::io::stderr().is_terminal() && !dumb, started: Instant::now(), last: None }
    }

    pub fn say(&mut self, text: &str) {
        let due = self.last.unwrap_or(self.started).elapsed() > Duration::from_millis(200);
        if self.on && due {
            crate::terminal::show(&format!("\r\x1b[2K{text}"));
            self.last = Some(Instant::now());
        }
    }

    pub fn end(&mut self) {
        if self.last.take().is_some() {
            crate::terminal::show("\r\x1b[2K");
        }
    }
}
