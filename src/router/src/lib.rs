//! Compiles routes and matches requests.
