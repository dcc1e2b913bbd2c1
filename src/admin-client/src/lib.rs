//! Typed client of the Admin API.
