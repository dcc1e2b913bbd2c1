//! The commands that talk to a control plane, and those that prepare one: each in its own module.

mod apply;
pub mod args;
mod certs;
mod clock;
mod connect;
mod current;
pub mod describe;
mod document;
pub mod explain;
mod files;
mod fleet;
mod get;
pub mod history;
mod look;
pub mod mistakes;
mod names;
mod parents;
mod plans;
mod progress;
pub mod rollback;
pub mod running;
mod send;
pub mod spread;
mod suggestions;
mod table;
mod top;

pub use apply::{apply, diff};
pub use certs::{init, show};
pub use describe::describe;
pub use explain::explain;
pub use files::{convert, dump, validate};
pub use fleet::list as fleet_list;
pub use get::get;
pub use history::history;
pub use rollback::rollback;
pub use top::top;
