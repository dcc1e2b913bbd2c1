//! Compiles routes and matches requests.
//!
//! The rules are those of Kong's `traditional_compatible` flavor: every route becomes one matcher per prefix length
//! (plus one for all its regex paths), matchers are ordered by a computed priority, and the first that fits wins.
//! `priority` holds the order, `conditions` what a matcher asks of a request, `upstream` the path sent on.
//!
//! ```
//! use gwctl_router::{Flavor, NoHeaders, Request, RequestPath, Router};
//!
//! let (router, problems) = Router::build(Flavor::TraditionalCompatible, []).expect("the flavor is supported");
//! let path = RequestPath::normalise(b"/a/../b");
//! let request = Request { https: false, method: "GET", host: "example.com", port: 80, path: &path, headers: &NoHeaders, sni: None };
//! assert!(router.find(&request).is_none() && problems.is_empty());
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that fails to set up should stop"))]

mod compile;
mod conditions;
mod explain;
mod index;
mod matched;
mod path;
mod pattern;
mod priority;
mod problem;
mod request;
mod router;
#[cfg(test)]
mod tests;
mod trie;
mod upstream;

pub use explain::{Explanation, Field, Outcome, Verdict};
pub use matched::{Gate, Match, UriCaptures};
pub use path::{PathRefusal, RequestPath, check_target};
pub use problem::{Flavor, RouteProblem, UnknownFlavor, UnsupportedFlavor};
pub use request::{HeaderLookup, NoHeaders, Request, split_host_port};
pub use router::{RouteEntry, Router};
