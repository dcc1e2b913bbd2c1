//! What the node says of all balancers, beyond the fields of an upstream.

use std::time::Duration;

/// Settings of balancing that no upstream has a field for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BalancerOptions {
    /// How long a target that is added to others or is healthy again takes to come to its full share; 0: no time.
    pub slow_start: Duration,
    /// Requests and connections at once with one address of a target, from the whole node; 0: no limit.
    pub max_connections_per_target: u32,
}
