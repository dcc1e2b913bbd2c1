//! Protocol v1: one WebSocket on `/v1/outlet`, the whole configuration in each push.
//!
//! The data plane says what it is ([`basic_info`]), then only pings with the hash it serves; the control plane
//! answers pings and pushes `reconfigure` messages ([`reconfigure`]). [`dp_link`] and [`cp_link`] hold the two sides
//! as machines without sockets.

pub mod basic_info;
pub mod cp_link;
pub mod dp_link;
#[cfg(test)]
mod pair;
pub mod reconfigure;

pub use basic_info::{BasicInfo, BasicInfoError, PluginVersion};
pub use cp_link::CpLink;
pub use dp_link::DpLink;
pub use reconfigure::{Examined, Limits, Reconfigure};
