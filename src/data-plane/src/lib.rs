//! The data plane role.
