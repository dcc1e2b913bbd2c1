//! Named tasks, shutdown phases, clock and back-off.
