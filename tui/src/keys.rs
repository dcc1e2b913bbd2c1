//! The keys, once: the handler looks them up here and the help screen prints them from here.

use crate::Key;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Selects the row above.
    Up,
    /// Selects the row below.
    Down,
    /// Shows the columns further left.
    Left,
    /// Shows the columns further right.
    Right,
    /// Selects the row one screen up.
    PageUp,
    /// Selects the row one screen down.
    PageDown,
    /// Selects the first row.
    First,
    /// Selects the last row.
    Last,
    /// Opens the selected row.
    Open,
    /// Leaves help, detail or filter.
    Back,
    /// Starts to type a filter.
    Filter,
    /// Shows rows with problems only, or all again.
    Problems,
    /// Sorts by the column to the left.
    SortLeft,
    /// Sorts by the column to the right.
    SortRight,
    /// Turns the order round.
    Reverse,
    /// Stops or resumes asking.
    Pause,
    /// Asks less often.
    Slower,
    /// Asks more often.
    Faster,
    /// Shows the keys.
    Help,
    /// Leaves one level, at the top the dashboard.
    Quit,
    /// Leaves the dashboard at once.
    Leave,
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// What it asks for.
    pub command: Command,
    /// Any of these.
    pub keys: &'static [Key],
    /// The keys as the help screen names them.
    pub label: &'static str,
    /// What it does, for the help screen.
    pub help: &'static str,
}

const fn bind(command: Command, keys: &'static [Key], label: &'static str, help: &'static str) -> Binding {
    Binding { command, keys, label, help }
}

/// Every key outside of typing a filter.
pub const BINDINGS: &[Binding] = &[
    bind(Command::Down, &[Key::Char('j'), Key::Down], "j, down", "next data plane"),
    bind(Command::Up, &[Key::Char('k'), Key::Up], "k, up", "previous data plane"),
    bind(Command::Left, &[Key::Char('h'), Key::Left], "h, left", "columns further left"),
    bind(Command::Right, &[Key::Char('l'), Key::Right], "l, right", "columns further right"),
    bind(Command::First, &[Key::Char('g'), Key::Home], "g, home", "first row"),
    bind(Command::Last, &[Key::Char('G'), Key::End], "G, end", "last row"),
    bind(Command::PageDown, &[Key::PageDown, Key::Ctrl('f')], "page down, ctrl-f", "one screen down"),
    bind(Command::PageUp, &[Key::PageUp, Key::Ctrl('b')], "page up, ctrl-b", "one screen up"),
    bind(Command::Open, &[Key::Enter], "enter", "all about the selected data plane"),
    bind(Command::Back, &[Key::Esc], "esc", "one level back; clears the filter"),
    bind(Command::Filter, &[Key::Char('/')], "/", "filter: words, label=value, ! inverts"),
    bind(Command::Problems, &[Key::Char('e')], "e", "only data planes with problems"),
    bind(Command::SortLeft, &[Key::Char('<')], "<", "sort by the column to the left"),
    bind(Command::SortRight, &[Key::Char('>')], ">", "sort by the column to the right"),
    bind(Command::Reverse, &[Key::Char('r')], "r", "reverse the order"),
    bind(Command::Pause, &[Key::Char(' ')], "space", "pause and resume"),
    bind(Command::Faster, &[Key::Char('-')], "-", "shorter interval"),
    bind(Command::Slower, &[Key::Char('+'), Key::Char('=')], "+", "longer interval"),
    bind(Command::Help, &[Key::Char('?')], "?", "this help"),
    bind(Command::Quit, &[Key::Char('q')], "q", "one level back, quit at the top"),
    bind(Command::Leave, &[Key::Ctrl('c')], "ctrl-c", "quit at once"),
];

/// What a key asks for.
pub fn command(key: Key) -> Option<Command> {
    BINDINGS.iter().find(|binding| binding.keys.contains(&key)).map(|binding| binding.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_bound_twice() {
        let keys: Vec<Key> = BINDINGS.iter().flat_map(|binding| binding.keys).copied().collect();
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key), "{key:?}");
        }
    }
}
