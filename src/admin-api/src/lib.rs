//! Admin and Status HTTP over a Backend.
