//! Time, ids and random text from the system, for automatic fields of records.

use gwctl_entities::Fill;
use std::time::{SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// The system's clock and randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemFill;

/// Unix time in milliseconds; 0 for a clock set before 1970.
pub fn unix_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Fill for SystemFill {
    fn now_millis(&mut self) -> u64 {
        unix_millis()
    }

    fn uuid(&mut self) -> String {
        Uuid::new_v4().to_string()
    }

    fn token(&mut self) -> String {
        const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let mut token = String::with_capacity(32);
        while token.len() < 32 {
            for (index, byte) in Uuid::new_v4().into_bytes().into_iter().enumerate() {
                // Bytes 6 and 8 hold the UUID's version; values from 248 on would favour some letters.
                let usable = index != 6 && index != 8 && byte < 248;
                if usable && token.len() < 32 {
                    token.push(char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
                }
            }
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_32_letters_and_digits_and_differ() {
        let (one, other) = (SystemFill.token(), SystemFill.token());
        assert_eq!(one.len(), 32);
        assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{one}");
        assert_ne!(one, other);
    }
}
