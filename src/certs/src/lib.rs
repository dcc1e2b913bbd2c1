//! Certificates: cluster CA, pinned and PKI peers, rustls configurations.
