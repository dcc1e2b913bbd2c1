//! The request path: workers, phases, balancer.
