//! One frame at a time, both directions.

/// Which end of the connection this is: clients mask what they send, servers do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Client,
    Server,
}

/// Kind of a frame. Continuation frames do not exist here: fragments are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opcode {
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    fn from_bits(bits: u8) -> Option<Self> {
        Some(match bits {
            0x1 => Self::Text,
            0x2 => Self::Binary,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            0xA => Self::Pong,
            _ => return None,
        })
    }

    fn bits(self) -> u8 {
        match self {
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }

    fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// A whole frame, unmasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub opcode: Opcode,
    pub payload: Vec<u8>,
}

/// Why the bytes received are no frame of this protocol. Each ends the connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("peer sent a fragmented message, which the cluster protocol forbids")]
    Fragmented,
    #[error("peer set reserved frame bits although no extension was negotiated")]
    ReservedBits,
    #[error("peer sent the unknown frame opcode {0}")]
    UnknownOpcode(u8),
    #[error("peer is a client and did not mask its frame")]
    Unmasked,
    #[error("peer is a server and masked its frame")]
    Masked,
    #[error("peer sent a control frame of {0} bytes, 125 are allowed")]
    LongControl(u64),
    #[error("peer sent a frame of {length} bytes, cluster_max_payload is {limit}")]
    TooLong { length: u64, limit: usize },
}

/// Puts frames together from bytes as they arrive. Memory is bounded by the limit, and nothing is reserved before a
/// frame's header was accepted.
#[derive(Debug)]
pub struct Reader {
    peer: Role,
    limit: usize,
    buffer: Vec<u8>,
}

/// Where a frame's payload lies behind its header.
struct Layout {
    opcode: Opcode,
    mask: Option<[u8; 4]>,
    start: usize,
    length: usize,
}

impl Reader {
    /// `own` is this end's role; `limit` the longest payload accepted, in bytes (`cluster_max_payload`).
    pub fn new(own: Role, limit: usize) -> Self {
        let peer = if own == Role::Server { Role::Client } else { Role::Server };
        Self { peer, limit, buffer: Vec::new() }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; None until more bytes arrive.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some(layout) = self.layout()? else { return Ok(None) };
        let end = layout.start + layout.length;
        if self.buffer.len() < end {
            self.buffer.reserve(end - self.buffer.len());
            return Ok(None);
        }
        let rest = self.buffer.split_off(end);
        let mut payload = std::mem::replace(&mut self.buffer, rest);
        payload.drain(..layout.start);
        if let Some(mask) = layout.mask {
            mask_in_place(&mut payload, mask);
        }
        Ok(Some(Frame { opcode: layout.opcode, payload }))
    }

    fn layout(&self) -> Result<Option<Layout>, FrameError> {
        let [first, second, rest @ ..] = self.buffer.as_slice() else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(FrameError::ReservedBits);
        }
        let bits = first & 0x0F;
        if bits == 0 || first & 0x80 == 0 {
            return Err(FrameError::Fragmented);
        }
        let opcode = Opcode::from_bits(bits).ok_or(FrameError::UnknownOpcode(bits))?;
        let masked = second & 0x80 != 0;
        match (self.peer, masked) {
            (Role::Client, false) => return Err(FrameError::Unmasked),
            (Role::Server, true) => return Err(FrameError::Masked),
            _ => {}
        }
        let (length, extra) = match second & 0x7F {
            126 if rest.len() < 2 => return Ok(None),
            126 => (u64::from(u16::from_be_bytes([rest[0], rest[1]])), 2),
            127 if rest.len() < 8 => return Ok(None),
            127 => (rest[..8].iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)), 8),
            short => (u64::from(short), 0),
        };
        if opcode.is_control() && length > 125 {
            return Err(FrameError::LongControl(length));
        }
        let fits = usize::try_from(length).ok().filter(|length| *length <= self.limit);
        let length = fits.ok_or(FrameError::TooLong { length, limit: self.limit })?;
        let mask = match (masked, rest.get(extra..extra + 4)) {
            (true, None) => return Ok(None),
            (true, Some(key)) => Some([key[0], key[1], key[2], key[3]]),
            (false, _) => None,
        };
        let start = 2 + extra + if masked { 4 } else { 0 };
        Ok(Some(Layout { opcode, mask, start, length }))
    }
}

/// XORs the payload with the masking key, which both masks and unmasks.
pub fn mask_in_place(payload: &mut [u8], key: [u8; 4]) {
    for (index, byte) in payload.iter_mut().enumerate() {
        *byte ^= key[index & 3];
    }
}

/// Encoded frame header; the payload follows it unchanged (server) or masked with the key (client).
#[derive(Debug, Clone, Copy)]
pub struct Header {
    bytes: [u8; 14],
    length: usize,
}

impl AsRef<[u8]> for Header {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Header of a final frame with a payload of `length` bytes; `mask` is given by clients and absent for servers.
pub fn frame_header(opcode: Opcode, length: usize, mask: Option<[u8; 4]>) -> Header {
    let mut header = Header { bytes: [0; 14], length: 2 };
    header.bytes[0] = 0x80 | opcode.bits();
    match length {
        0..=125 => header.bytes[1] = length as u8,
        126..=65_535 => {
            header.bytes[1] = 126;
            header.bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            header.length = 4;
        }
        _ => {
            header.bytes[1] = 127;
            header.bytes[2..10].copy_from_slice(&(length as u64).to_be_bytes());
            header.length = 10;
        }
    }
    if let Some(key) = mask {
        header.bytes[1] |= 0x80;
        header.bytes[header.length..header.length + 4].copy_from_slice(&key);
        header.length += 4;
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(frame: &Frame, mask: Option<[u8; 4]>) -> Vec<u8> {
        let mut bytes = frame_header(frame.opcode, frame.payload.len(), mask).as_ref().to_vec();
        let mut payload = frame.payload.clone();
        if let Some(key) = mask {
            mask_in_place(&mut payload, key);
        }
        bytes.extend(payload);
        bytes
    }

    fn server_reads(bytes: &[u8]) -> Result<Option<Frame>, FrameError> {
        let mut reader = Reader::new(Role::Server, 1000);
        reader.push(bytes);
        reader.next_frame()
    }

    #[test]
    fn an_unmasked_client_frame_is_refused() {
        assert_eq!(server_reads(&[0x82, 0x01, b'x']), Err(FrameError::Unmasked));
    }

    #[test]
    fn fragments_and_reserved_bits_are_refused() {
        assert_eq!(server_reads(&[0x02, 0x81, 1, 2, 3, 4, 5]), Err(FrameError::Fragmented));
        assert_eq!(server_reads(&[0x80, 0x81, 1, 2, 3, 4, 5]), Err(FrameError::Fragmented));
        assert_eq!(server_reads(&[0xC2, 0x81, 1, 2, 3, 4, 5]), Err(FrameError::ReservedBits));
        assert_eq!(server_reads(&[0x83, 0x81, 1, 2, 3, 4, 5]), Err(FrameError::UnknownOpcode(3)));
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_the_payload_arrives() {
        let header = frame_header(Opcode::Binary, 1 << 40, Some([0; 4]));
        assert_eq!(server_reads(header.as_ref()), Err(FrameError::TooLong { length: 1 << 40, limit: 1000 }));
        assert_eq!(server_reads(&[0x89, 0xFE, 0, 126]), Err(FrameError::LongControl(126)));
    }

    proptest! {
        #[test]
        fn frames_survive_any_split_of_the_bytes(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..5),
            chunk in 1_usize..50,
            key in any::<[u8; 4]>(),
        ) {
            let frames: Vec<Frame> =
                payloads.into_iter().map(|payload| Frame { opcode: Opcode::Binary, payload }).collect();
            for (own, mask) in [(Role::Server, Some(key)), (Role::Client, None)] {
                let bytes: Vec<u8> = frames.iter().flat_map(|frame| encode(frame, mask)).collect();
                let mut reader = Reader::new(own, 1000);
                let mut seen = Vec::new();
                for part in bytes.chunks(chunk) {
                    reader.push(part);
                    while let Some(frame) = reader.next_frame().unwrap_or_else(|error| panic!("{error}")) {
                        seen.push(frame);
                    }
                }
                prop_assert_eq!(&seen, &frames);
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for role in [Role::Server, Role::Client] {
                let mut reader = Reader::new(role, 100);
                reader.push(&bytes);
                while let Ok(Some(_)) = reader.next_frame() {}
            }
        }
    }
}
