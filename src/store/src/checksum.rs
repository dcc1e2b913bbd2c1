//! A sum over the entries of a data plane's cache, kept with every change: what is on disk is compared with it before
//! any of it is served.

use std::fmt;
use std::str::FromStr;

/// Sum modulo 2^64 over every entry of records and indexes, of a hash of its table, key and value.
///
/// It guards against damage of the file, so bytes count as they are stored, and it is quick: a start waits for it. Shown
/// as 16 hexadecimal digits. [`crate::Digest`] in turn is the same on every node and of records alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Checksum(u64);

impl Checksum {
    /// Counts an entry in.
    pub(crate) fn add(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.0 = self.0.wrapping_add(of_entry(table, key, value));
    }

    /// Takes an entry out again.
    pub(crate) fn remove(&mut self, table: usize, key: &[u8], value: &[u8]) {
        self.0 = self.0.wrapping_sub(of_entry(table, key, value));
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl FromStr for Checksum {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Checksum, Self::Err> {
        u64::from_str_radix(text, 16).map(Checksum)
    }
}

/// Odd numbers without a pattern (digits of pi and e).
const FACTORS: [u64; 2] = [0x2436_a888_5a30_8d31, 0xb7e1_5162_8aed_2a6b];

/// Lengths go first, so no two entries read alike.
fn of_entry(table: usize, key: &[u8], value: &[u8]) -> u64 {
    let lengths = ((key.len() as u64) << 32) ^ value.len() as u64;
    let mut state = fold(lengths ^ FACTORS[0], table as u64 ^ FACTORS[1]);
    for part in [key, value] {
        let mut chunks = part.chunks_exact(16);
        for chunk in &mut chunks {
            state = step(state, chunk);
        }
        let mut rest = [0; 16];
        rest.iter_mut().zip(chunks.remainder()).for_each(|(place, byte)| *place = *byte);
        state = step(state, &rest);
    }
    fold(state ^ FACTORS[0], FACTORS[1])
}

fn step(state: u64, chunk: &[u8]) -> u64 {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let (low, high) = chunk.split_at(chunk.len() / 2);
    fold(word(low) ^ FACTORS[0], word(high) ^ state) ^ state.rotate_left(23)
}

/// Both halves of the product: every bit of it depends on every bit of the factors.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(table: usize, key: &[u8], value: &[u8]) -> Checksum {
        let mut sum = Checksum::default();
        sum.add(table, key, value);
        sum
    }

    #[test]
    fn the_text_is_read_back_and_the_number_stays_the_same_over_releases() {
        let sum = of(1, b"services\0one", br#"{"id":"one"}"#);
        assert_eq!(sum.to_string(), "7d11d4733feb1259");
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert!("none".parse::<Checksum>().is_err());
    }

    #[test]
    fn table_key_and_value_all_count_and_where_they_part() {
        let one = of(0, b"ab", b"c");
        assert!(
            [of(1, b"ab", b"c"), of(0, b"a", b"bc"), of(0, b"ab", b""), of(0, b"ab", b"c\0")]
                .iter()
                .all(|sum| *sum != one)
        );
    }

    proptest! {
        #[test]
        fn any_flipped_bit_shows(key in prop::collection::vec(any::<u8>(), 1..60), value in prop::collection::vec(any::<u8>(), 1..300), place: prop::sample::Index, bit in 0_u8..8) {
            let sum = of(2, &key, &value);
            let (mut key, mut value) = (key, value);
            let place = place.index(key.len() + value.len());
            let byte = if place < key.len() { &mut key[place] } else { &mut value[place - key.len()] };
            *byte ^= 1_u8 << bit;
            prop_assert_ne!(of(2, &key, &value), sum);
        }

        #[test]
        fn entries_come_in_any_order_and_go_again(entries in prop::collection::vec((0_usize..5, any::<[u8; 9]>(), any::<[u8; 20]>()), 0..20)) {
            let (mut one, mut other) = (Checksum::default(), Checksum::default());
            entries.iter().for_each(|(table, key, value)| one.add(*table, key, value));
            entries.iter().rev().for_each(|(table, key, value)| other.add(*table, key, value));
            prop_assert_eq!(one, other);
            entries.iter().for_each(|(table, key, value)| one.remove(*table, key, value));
            prop_assert_eq!(one, Checksum::default());
        }
    }
}
