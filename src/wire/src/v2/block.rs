//! One message as one raw Snappy block: length of the message, then its elements. Kong calls it `x-snappy-framed`,
//! but there is no stream header and no checksum.

use bytes::Bytes;

/// Why bytes are no block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Not Snappy at all, or damaged.
    #[error("not a Snappy block: {0}")]
    Damaged(String),
    /// It would grow over the limit.
    #[error("block of {actual} bytes when unpacked, {limit} are allowed")]
    TooLarge {
        /// Bytes it says to hold.
        actual: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// More than the format can hold (4 GiB).
    #[error("message of {0} bytes is too long for one block")]
    TooLong(usize),
}

/// Packs a message.
pub fn pack(message: &[u8]) -> Result<Bytes, BlockError> {
    let packed = snap::raw::Encoder::new().compress_vec(message);
    packed.map(Bytes::from).map_err(|_| BlockError::TooLong(message.len()))
}

/// Unpacks a message of at most `limit` bytes. Nothing is reserved for a block that says to be longer.
pub fn unpack(block: &[u8], limit: usize) -> Result<Vec<u8>, BlockError> {
    let damaged = |error: snap::Error| BlockError::Damaged(error.to_string());
    let actual = snap::raw::decompress_len(block).map_err(damaged)?;
    if actual > limit {
        return Err(BlockError::TooLarge { actual, limit });
    }
    snap::raw::Decoder::new().decompress_vec(block).map_err(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_begins_with_its_length_and_has_no_stream_header() {
        assert_eq!(&pack(b"abc").unwrap()[..], b"\x03\x08abc");
    }

    #[test]
    fn a_bomb_is_refused_before_memory_is_taken() {
        let bomb = pack(&vec![0; 1 << 20]).unwrap();
        assert!(bomb.len() < 60_000);
        assert_eq!(unpack(&bomb, 1000), Err(BlockError::TooLarge { actual: 1 << 20, limit: 1000 }));
        assert!(matches!(unpack(b"\xff\xff\xff\xff\x0f", usize::MAX), Err(BlockError::Damaged(_))));
        assert!(matches!(unpack(b"{\"jsonrpc\":\"2.0\"}", 1000), Err(BlockError::Damaged(_))));
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(message in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(unpack(&pack(&message).unwrap(), 3000).unwrap(), message);
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack(&bytes, 1 << 16);
        }
    }
}
