//! Settings: kong.conf text, environment and flags to NodeConf.
