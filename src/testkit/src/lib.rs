//! Test support: processes, ports, fake peers.
