//! What comes in from the driver and what goes out to it.

use gwctl_entities::fleet::Fleet;

/// A key, as far as the dashboard knows keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A printable character, shift already applied.
    Char(char),
    /// A letter with control held.
    Ctrl(char),
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Backspace,
}

/// Why there is no answer of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// One line for the banner.
    pub reason: String,
}

/// Something happened. Times are the driver's, milliseconds from any fixed start; they must not go back.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A key was pressed.
    Key(Key),
    /// The terminal has this size now.
    Resize {
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// Time passed.
    Tick {
        /// Now.
        now: u64,
    },
    /// The answer to [`Action::Fetch`].
    Answer {
        /// When it came.
        now: u64,
        /// The fleet, or why there is none.
        fleet: Result<Box<Fleet>, Fault>,
    },
}

/// What the driver must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ask the control plane for the fleet; answer with [`Event::Answer`].
    Fetch,
    /// Put the terminal back and end.
    Quit,
}
