//! The Plugin trait, phases and the native plugins.
