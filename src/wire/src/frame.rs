//! WebSocket frames as data.

use bytes::Bytes;

/// One complete WebSocket message or control frame, unmasked.
///
/// Neither side of either generation fragments or compresses frames, so a message is always one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A binary message.
    Binary(Bytes),
    /// A text message; no peer sends one on purpose.
    Text(Bytes),
    /// A ping; on v1 its payload is the config hash.
    Ping(Bytes),
    /// A pong; payload without meaning.
    Pong(Bytes),
    /// The end of the connection. Kong sends an empty one and ignores codes it receives.
    Close,
}

impl Frame {
    /// The name of the opcode, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Binary(_) => "binary",
            Self::Text(_) => "text",
            Self::Ping(_) => "ping",
            Self::Pong(_) => "pong",
            Self::Close => "close",
        }
    }

    /// Bytes of payload; 0 for a close frame.
    pub fn payload_len(&self) -> usize {
        match self {
            Self::Binary(payload) | Self::Text(payload) | Self::Ping(payload) | Self::Pong(payload) => payload.len(),
            Self::Close => 0,
        }
    }
}
