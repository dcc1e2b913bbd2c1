//! Time as an argument.

use std::time::Duration;

/// Monotonic time since an origin the driver chose, for example the start of its process.
///
/// The machines only compare and add moments; they never learn the wall clock, so a clock jump cannot end a link.
pub type Moment = Duration;
