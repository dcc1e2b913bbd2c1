//! The control plane role.
