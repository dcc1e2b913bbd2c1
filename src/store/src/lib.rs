//! The store: LMDB backend, change log, watch.
