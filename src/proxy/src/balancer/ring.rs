//! Who of the addresses may be chosen, and choosing.

use crate::balancer::Algorithm;
use crate::balancer::checks::Checks;
use crate::balancer::latency::clock;
use crate::balancer::members::Members;
use crate::balancer::peer::Peer;
use crate::balancer::wheel::Wheel;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Immutable; made anew when the health of an address turns.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) members: Arc<Members>,
    /// Enough of the weight is healthy.
    pub(crate) healthy: bool,
    /// State of the counter of turns that it shows.
    pub(crate) turns: u64,
    /// Who may be chosen, by member.
    usable: Vec<bool>,
    /// The same as a list.
    choices: Vec<usize>,
    wheel: Wheel,
}

impl Ring {
    pub(crate) fn new(members: Arc<Members>, checks: &Checks, turns: u64) -> Ring {
        let ignore = !checks.are_on();
        let usable = |peer: &Arc<Peer>| peer.weight > 0 && (ignore || peer.state.health.is_healthy());
        let usable: Vec<bool> = members.peers.iter().map(usable).collect();
        let choices: Vec<usize> = (0..usable.len()).filter(|member| usable[*member]).collect();
        let weight = |member: &usize| members.peers[*member].weight;
        let total: u64 = members.peers.iter().map(|peer| u64::from(peer.weight)).sum();
        let available: u64 = choices.iter().map(|member| u64::from(weight(member))).sum();
        let healthy = total > 0 && available as f64 / total as f64 * 100.0 > checks.threshold;
        let wheel = Wheel::new(choices.iter().map(|member| (*member, weight(member))));
        Ring { members, healthy, turns, usable, choices, wheel }
    }

    /// The next address, none of those tried unless all have been.
    pub(crate) fn choose(
        &self,
        algorithm: Algorithm,
        counter: &AtomicU64,
        hash: Option<u32>,
        tried: &[Arc<Peer>],
        slow_start: f64,
    ) -> Option<&Arc<Peer>> {
        if !self.healthy {
            return None;
        }
        let is_new = |member: usize| !tried.iter().any(|peer| Arc::ptr_eq(&peer.state, &self.peer(member).state));
        let found = match (algorithm, hash) {
            (Algorithm::ConsistentHashing, Some(hash)) => self.hashed(hash, is_new, slow_start),
            (Algorithm::LeastConnections, _) => self.least_connected(counter, is_new, slow_start),
            (Algorithm::Latency, _) => self.quicker(is_new, slow_start),
            _ if slow_start > 0.0 => self.in_slow_turn(counter, is_new, slow_start),
            _ => self.in_turn(counter, is_new),
        };
        found.map(|member| self.peer(member))
    }

    fn peer(&self, member: usize) -> &Arc<Peer> {
        &self.members.peers[member]
    }

    fn in_turn(&self, counter: &AtomicU64, is_new: impl Fn(usize) -> bool) -> Option<usize> {
        let member = self.wheel.turn(counter)?;
        if is_new(member) {
            return Some(member);
        }
        // Who comes after it, so that the load of a failed target is spread.
        let (before, after) = self.choices.split_at(self.choices.partition_point(|choice| *choice <= member));
        after.iter().chain(before).copied().find(|member| is_new(*member)).or(Some(member))
    }

    /// The same, but one whose share still rises gives some of its turns away.
    fn in_slow_turn(&self, counter: &AtomicU64, is_new: impl Fn(usize) -> bool, slow_start: f64) -> Option<usize> {
        let member = self.in_turn(counter, &is_new)?;
        if self.part(member, slow_start) >= fraction(random() as u32) {
            return Some(member);
        }
        let others = |other: usize| other != member && is_new(other);
        self.in_turn(counter, others).filter(|other| others(*other)).or(Some(member))
    }

    /// The part of its share that a member takes by now.
    fn part(&self, member: usize, slow_start: f64) -> f64 {
        if slow_start > 0.0 { self.peer(member).state.part(slow_start) } else { 1.0 }
    }

    /// A weight as far as it counts by now.
    fn weight(&self, member: usize, slow_start: f64) -> f64 {
        f64::from(self.peer(member).weight) * self.part(member, slow_start)
    }

    /// Values come over to a member whose share rises one after the other, and each once.
    fn hashed(&self, hash: u32, is_new: impl Fn(usize) -> bool, slow_start: f64) -> Option<usize> {
        let place = fraction(hash.wrapping_mul(0x9E37_79B1).rotate_left(16).wrapping_mul(0x85EB_CA6B));
        let find = |accept: &dyn Fn(usize) -> bool| {
            self.members.continuum.find(hash, |member| self.usable[member] && accept(member))
        };
        let ripe = |member: usize| is_new(member) && self.part(member, slow_start) >= place;
        find(&ripe).or_else(|| find(&is_new)).or_else(|| find(&|_| true))
    }

    /// The least (requests + 1) by weight; equal ones take turns.
    fn least_connected(&self, counter: &AtomicU64, is_new: impl Fn(usize) -> bool, slow_start: f64) -> Option<usize> {
        let first = self.in_turn(counter, &is_new)?;
        let load = |member: usize| {
            let peer = self.peer(member);
            (f64::from(peer.state.connections()) + 1.0) / self.weight(member, slow_start)
        };
        let mut best = (first, load(first));
        for member in self.choices.iter().copied().filter(|member| *member != first) {
            let load = load(member);
            if load < best.1 && is_new(member) {
                best = (member, load);
            }
        }
        Some(best.0)
    }

    /// The quicker of two drawn at random, by weight.
    fn quicker(&self, is_new: impl Fn(usize) -> bool, slow_start: f64) -> Option<usize> {
        let one = self.draw(&is_new).or_else(|| self.draw(|_| true))?;
        let Some(other) = self.draw(|member| member != one && is_new(member)) else { return Some(one) };
        let now = clock();
        let score = |member: usize| {
            let peer = self.peer(member);
            peer.state.latency.score(now) / self.weight(member, slow_start)
        };
        Some(if score(other) < score(one) { other } else { one })
    }

    /// One of those accepted, from a random place on.
    fn draw(&self, accept: impl Fn(usize) -> bool) -> Option<usize> {
        let start = random() as usize % self.choices.len().max(1);
        let (before, after) = self.choices.split_at(start);
        after.iter().chain(before).copied().find(|member| accept(*member))
    }
}

/// A number as a part of all there are.
fn fraction(number: u32) -> f64 {
    f64::from(number) / f64::from(u32::MAX)
}

/// Marsaglia's xorshift, one for each thread: spreads choices, nothing more.
fn random() -> u64 {
    thread_local! {
        static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(1) | 1);
    }
    STATE.with(|state| {
        let mut word = state.get();
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        state.set(word);
        word >> 3
    })
}
