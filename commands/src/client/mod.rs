//! The commands that talk to a control plane, and those that prepare one: each in its own module.

mod apply;
pub mod args;
mod certs;
mod connect;
mod current;
mod document;
mod files;
mod fleet;
mod get;
mod look;
mod mistakes;
mod names;
mod parents;
mod progress;
mod send;
mod spread;
mod table;
mod top;

pub use apply::{apply, diff};
pub use certs::{init, show};
pub use files::{convert, dump, validate};
pub use fleet::list as fleet_list;
pub use get::get;
pub use top::top;
