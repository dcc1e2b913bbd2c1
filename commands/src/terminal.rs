//! What is told to people on stderr. `eprintln!` panics when nobody reads there any more (`2>&1 | head -1`, a terminal
//! that is gone), half way through what a command does; here the rest is done, and not told.

use std::io::Write as _;

/// One line on stderr.
macro_rules! tell {
    ($($part:tt)*) => {
        $crate::terminal::show(&(format!($($part)*) + "\n"))
    };
}

/// A text on stderr as it is.
pub fn show(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
