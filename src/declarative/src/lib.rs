//! Declarative files: read, write, ids, ordered diff.
