//! Compiles routes and matches requests.
//!
//! There are three sets of rules, Kong's router flavors. `traditional_compatible`, in `compatible`: every route becomes
//! one matcher per prefix length (plus one for all its regex paths), matchers are ordered by a computed priority, and the
//! first that fits wins. `expressions`: the same with conditions written by hand. `traditional`: the older rules.
//! `priority` holds the order, `conditions` what a matcher asks of a request, `index`, `trie` and
//! `list` find the matchers worth trying and keep what a change does not touch, `upstream` makes the path sent on.
//! `streams` are the routes of TCP, TLS and UDP, apart from all this.
//!
//! ```
//! use gwctl_router::{Flavor, NoHeaders, Request, RequestPath, Router};
//!
//! let (router, problems) = Router::build(Flavor::TraditionalCompatible, []).expect("the flavor is supported");
//! let path = RequestPath::normalise(b"/a/../b");
//! let request = Request { https: false, method: "GET", host: "example.com", port: 80, path: &path, headers: &NoHeaders, sni: None, source: None, destination_ip: None };
//! assert!(router.find(&request).is_none() && problems.is_empty());
//! ```

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that fails to set up should stop"))]

#[cfg(test)]
mod change_tests;
mod compatible;
mod compile;
mod conditions;
mod explain;
pub mod expression;
mod expressions;
mod index;
mod list;
mod matched;
#[cfg(test)]
mod pair_tests;
mod path;
mod pattern;
mod priority;
mod problem;
mod request;
mod router;
mod streams;
#[cfg(test)]
mod tests;
mod traditional;
pub mod transform;
mod trie;
mod upstream;

pub use explain::{Explanation, Field, Outcome, Verdict};
pub use matched::{Gate, Match, UriCaptures};
pub use path::{PathRefusal, RequestPath, check_target};
pub use problem::{Flavor, RouteProblem, UnknownFlavor, UnsupportedFlavor};
pub use request::{HeaderLookup, NoHeaders, Request, split_host_port};
pub use router::{Change, RouteEntry, Router};
pub use streams::{StreamMatch, StreamProtocol, StreamRequest};
