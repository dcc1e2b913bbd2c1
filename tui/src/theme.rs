//! Colours and signs. Colour never carries anything alone.

use crate::State;
use ratatui::style::{Color, Modifier, Style};

/// How the screen is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) colour: bool,
    pub(crate) ascii: bool,
}

impl Theme {
    fn tint(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub(crate) fn state(self, state: State) -> Style {
        match state {
            State::Online => self.tint(Color::Green),
            State::Late => self.tint(Color::Yellow),
            State::Refused => self.tint(Color::Red).add_modifier(Modifier::BOLD),
            State::Left => self.tint(Color::DarkGray),
            State::Offline => self.tint(Color::Red),
        }
    }

    pub(crate) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn head(self) -> Style {
        self.tint(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn alarm(self) -> Style {
        self.tint(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn warning(self) -> Style {
        self.tint(Color::Yellow)
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What stands where text was cut.
    pub(crate) fn cut(self) -> &'static str {
        if self.ascii { "~" } else { "…" }
    }

    pub(crate) fn differs(self) -> &'static str {
        if self.ascii { "!=" } else { "≠" }
    }

    pub(crate) fn order(self, reverse: bool) -> &'static str {
        match (self.ascii, reverse) {
            (true, false) => "v",
            (true, true) => "^",
            (false, false) => "▼",
            (false, true) => "▲",
        }
    }

    /// Marks the selected row where nothing can be reversed.
    pub(crate) fn cursor(self) -> &'static str {
        ">"
    }
}
