//! Cluster protocol: frames, config hash, link machines.
