//! WebSocket frames and handshake of the cluster link, without sockets.
//!
//! Kong's hybrid mode uses a strict subset of RFC 6455: one frame a message, no extensions, and on protocol v1 nobody
//! answers pings by himself. Libraries answer pings on their own and put fragments together, which a Kong peer takes for
//! a violation; hence this small codec. It is pure: bytes in, frames out, and the other way round.
//!
//! Source: cluster protocol, section 3.2.

mod frame;
mod handshake;

pub use frame::{Frame, FrameError, Header, Opcode, Reader, Role, frame_header, mask_in_place};
pub use handshake::{HandshakeError, Request, Response, accept_key, parse_request, parse_response};
