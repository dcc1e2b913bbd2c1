//! The ring of consistent hashing, laid out as Kong lays it out: the same value finds the same target on both.

/// Points of an address when all targets weigh the same. Source: Kong 3.9.1 `balancer/consistent_hashing.lua`.
const POINTS: u64 = 160;
/// Smallest ring; also taken in place of what is smaller.
const SMALLEST: u32 = 1000;

/// An address to place.
pub(crate) struct Place<'a> {
    /// Name of its target, then its port, then `ip:port`: the order in which addresses are placed.
    pub(crate) order: (&'a str, u16, String),
    /// Literal of the address as the target shows it.
    pub(crate) ip: String,
    pub(crate) port: u16,
    pub(crate) weight: u32,
    /// Whom to find.
    pub(crate) member: usize,
}

/// Occupied points of the ring, ascending.
#[derive(Debug, Default)]
pub(crate) struct Continuum {
    length: u32,
    points: Vec<(u32, u32)>,
}

impl Continuum {
    /// `slots` is the length of the ring, `targets` the number of targets, those without weight included.
    pub(crate) fn new(slots: u32, targets: usize, mut places: Vec<Place<'_>>) -> Continuum {
        let length = if slots >= SMALLEST { slots } else { SMALLEST };
        places.sort_by(|one, other| one.order.cmp(&other.order));
        let total: u64 = places.iter().map(|place| u64::from(place.weight)).sum();
        let mut ring: Vec<Option<u32>> = vec![None; length as usize];
        let mut free = length;
        'places: for place in places.iter().filter(|place| place.weight > 0) {
            let share = u64::from(place.weight) as f64 / total as f64;
            let mut entries = ((share * targets as f64 * POINTS as f64) as u64).max(1);
            let mut number = 1;
            while number <= entries {
                let point = xxh32(format!("{}::{} {number}", place.ip, place.port).as_bytes()) % length;
                match &mut ring[point as usize] {
                    // A collision moves the problem forward.
                    Some(_) => entries += 1,
                    free_point => {
                        *free_point = Some(place.member as u32);
                        free -= 1;
                    }
                }
                number += 1;
                if free == 0 || number > u64::from(length) {
                    break 'places;
                }
            }
        }
        let occupied = ring.iter().enumerate();
        let points = occupied.filter_map(|(point, member)| Some((point as u32, (*member)?))).collect();
        Continuum { length, points }
    }

    /// The first member at the point of a hash or before it that is accepted.
    pub(crate) fn find(&self, hash: u32, mut accept: impl FnMut(usize) -> bool) -> Option<usize> {
        let point = hash.checked_rem(self.length)?;
        let here = self.points.partition_point(|(other, _)| *other <= point);
        let (before, after) = self.points.split_at(here);
        let around = before.iter().rev().chain(after.iter().rev());
        around.map(|(_, member)| *member as usize).find(|member| accept(*member))
    }
}

const PRIMES: [u32; 5] = [0x9E37_79B1, 0x85EB_CA77, 0xC2B2_AE3D, 0x27D4_EB2F, 0x1656_67B1];

/// XXH32 with seed 0.
pub(crate) fn xxh32(data: &[u8]) -> u32 {
    let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let (stripes, rest) = data.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        PRIMES[4]
    } else {
        let mut lanes = [PRIMES[0].wrapping_add(PRIMES[1]), PRIMES[1], 0, 0_u32.wrapping_sub(PRIMES[0])];
        for stripe in stripes {
            for (lane, bytes) in lanes.iter_mut().zip(stripe.chunks_exact(4)) {
                let mixed = lane.wrapping_add(word(bytes).wrapping_mul(PRIMES[1]));
                *lane = mixed.rotate_left(13).wrapping_mul(PRIMES[0]);
            }
        }
        let turned = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, turn)| lane.rotate_left(turn));
        turned.fold(0, u32::wrapping_add)
    };
    hash = hash.wrapping_add(data.len() as u32);
    let words = rest.chunks_exact(4);
    let bytes = words.remainder();
    for piece in words {
        hash = hash.wrapping_add(word(piece).wrapping_mul(PRIMES[2])).rotate_left(17).wrapping_mul(PRIMES[3]);
    }
    for byte in bytes {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(PRIMES[4])).rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ (hash >> 15)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 13)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(slots: u32, weights: &[u32]) -> Continuum {
        let names: Vec<String> = (0..weights.len()).map(|number| format!("10.0.0.{number}")).collect();
        let place = |(member, weight): (usize, &u32)| Place {
            order: (names[member].as_str(), 80, format!("{}:80", names[member])),
            ip: names[member].clone(),
            port: 80,
            weight: *weight,
            member,
        };
        Continuum::new(slots, weights.len(), weights.iter().enumerate().map(place).collect())
    }

    fn owners(ring: &Continuum, accept: impl Fn(usize) -> bool) -> Vec<usize> {
        (0..5000_u32).map(|key| ring.find(xxh32(&key.to_le_bytes()), &accept).unwrap()).collect()
    }

    #[test]
    fn hashes_are_those_of_xxh32() {
        assert_eq!(xxh32(b""), 0x02CC_5D05);
        assert_eq!(xxh32(b"a"), 0x550D_7456);
        assert_eq!(xxh32(b"abc"), 0x32D1_53FF);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xE229_3B2F);
    }

    #[test]
    fn keys_of_a_target_that_goes_move_and_no_others_do() {
        let ring = ring(10_000, &[100; 5]);
        let before = owners(&ring, |_| true);
        let after = owners(&ring, |member| member != 2);
        for (before, after) in before.into_iter().zip(after) {
            assert!(before == after || before == 2, "a key of {before} moved to {after}");
        }
    }

    #[test]
    fn a_target_that_comes_takes_its_share_only() {
        let (before, after) = (owners(&ring(10_000, &[100; 4]), |_| true), owners(&ring(10_000, &[100; 5]), |_| true));
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        assert!((600..1500).contains(&moved), "{moved} of 5000 keys moved to one of 5 targets");
    }

    #[test]
    fn shares_follow_the_weights() {
        let owners = owners(&ring(10_000, &[100, 300]), |_| true);
        let heavy = owners.iter().filter(|owner| **owner == 1).count();
        assert!((3300..4200).contains(&heavy), "{heavy} of 5000 keys for three quarters of the weight");
    }

    #[test]
    fn a_target_without_weight_owns_nothing() {
        assert!(owners(&ring(1000, &[0, 10]), |_| true).iter().all(|owner| *owner == 1));
        assert_eq!(ring(1000, &[0, 0]).find(7, |_| true), None);
        assert_eq!(Continuum::default().find(7, |_| true), None);
    }

    #[test]
    fn a_small_ring_with_many_targets_ends() {
        let owners = owners(&ring(10, &[1; 50]), |_| true);
        assert_eq!(owners.len(), 5000);
    }

    proptest! {
        #[test]
        fn whoever_is_accepted_is_found(hash: u32, weights in prop::collection::vec(1_u32..1000, 1..6), chosen in 0_usize..6) {
            let chosen = chosen % weights.len();
            // In the smallest ring a target of nearly all the weight leaves the others no point, in Kong, too.
            prop_assert_eq!(ring(10_000, &weights).find(hash, |member| member == chosen), Some(chosen));
        }
    }
}
