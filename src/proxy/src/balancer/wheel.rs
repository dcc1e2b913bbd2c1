//! Weighted round-robin.

use std::sync::atomic::{AtomicU64, Ordering};

/// Members lie on a ring as long as the sum of their weights. A shared counter walks it in steps near the golden
/// section of its length and coprime to it: any sum-of-weights consecutive turns meet the weights exactly, heavy
/// members are spread evenly in between, and memory does not depend on the weights.
#[derive(Debug, Default)]
pub(crate) struct Wheel {
    members: Vec<usize>,
    /// End of each member's part of the ring.
    ends: Vec<u64>,
    step: u64,
}

impl Wheel {
    /// Of members with their weights; those without weight have no part.
    pub(crate) fn new(weights: impl IntoIterator<Item = (usize, u32)>) -> Wheel {
        let (mut members, mut ends, mut length) = (Vec::new(), Vec::new(), 0);
        for (member, weight) in weights.into_iter().filter(|(_, weight)| *weight > 0) {
            length += u64::from(weight);
            members.push(member);
            ends.push(length);
        }
        Wheel { members, ends, step: golden_step(length) }
    }

    /// Whose turn it is; None when nobody has a weight.
    pub(crate) fn turn(&self, counter: &AtomicU64) -> Option<usize> {
        let length = *self.ends.last()?;
        let turn = counter.fetch_add(1, Ordering::Relaxed) % length;
        let place = (u128::from(turn) * u128::from(self.step) % u128::from(length)) as u64;
        self.members.get(self.ends.partition_point(|end| *end <= place)).copied()
    }
}

fn golden_step(length: u64) -> u64 {
    let near = (length as f64 * 0.618_033_988_749_895) as u64;
    (near.max(1)..=length.max(1)).find(|step| gcd(*step, length) == 1).unwrap_or(1)
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(wheel: &Wheel, count: usize) -> Vec<usize> {
        let counter = AtomicU64::new(0);
        (0..count).filter_map(|_| wheel.turn(&counter)).collect()
    }

    #[test]
    fn shares_follow_the_weights_exactly_over_one_round() {
        let wheel = Wheel::new([(1, 10), (2, 100), (3, 0), (4, 37)]);
        let turns = turns(&wheel, 147);
        let share = |member| turns.iter().filter(|turn| **turn == member).count();
        assert_eq!((share(1), share(2), share(3), share(4)), (10, 100, 0, 37));
    }

    #[test]
    fn equal_members_take_turns() {
        let turns = turns(&Wheel::new([(0, 100), (1, 100)]), 200);
        let longest = turns.chunk_by(|one, other| one == other).map(<[usize]>::len).max();
        assert!(longest <= Some(2), "one member was asked {longest:?} times in a row");
    }

    #[test]
    fn huge_weights_cost_no_memory() {
        assert_eq!(Wheel::new((0..200).map(|member| (member, 65_535))).ends.len(), 200);
    }

    #[test]
    fn without_weight_there_is_no_turn() {
        assert!(Wheel::new([]).turn(&AtomicU64::new(0)).is_none());
        assert!(Wheel::new([(0, 0)]).turn(&AtomicU64::new(0)).is_none());
    }

    proptest! {
        #[test]
        fn any_whole_round_meets_the_weights(weights in prop::collection::vec(0_u32..50, 1..8), start in 0_u64..1000) {
            let wheel = Wheel::new(weights.iter().copied().enumerate());
            let counter = AtomicU64::new(start);
            let mut counts = vec![0; weights.len()];
            let length: u32 = weights.iter().sum();
            // A round may begin anywhere on the ring.
            for _ in 0..length {
                counts[wheel.turn(&counter).unwrap()] += 1;
            }
            prop_assert_eq!(counts, weights);
        }
    }
}
