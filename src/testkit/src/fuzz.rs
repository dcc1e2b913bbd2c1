//! Random inputs made from good ones, for as long as asked: a fuzzer for stable toolchains.

use crate::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// An input that takes more of the processor's time is a finding too.
const SLOW: Duration = Duration::from_secs(5);
/// Longest input.
const LONGEST: usize = 4096;

/// What is tried.
pub struct Target<'a> {
    /// Name, for the report.
    pub name: &'a str,
    /// Inputs to start from.
    pub seeds: &'a [&'a str],
    /// Pieces that mean something to the target.
    pub words: &'a [&'a str],
    /// Takes an input; panics when it finds something wrong.
    pub run: &'a dyn Fn(&[u8]),
}

/// Runs the targets named on the command line (all when none is) for `--seconds N` each (default 10), from `--seed N`
/// (default: the clock). An input that panics or is slow is written to a file and ends the run with code 1.
pub fn main(targets: &[Target<'_>]) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (mut seconds, mut seed, mut names) = (10, u64::from(std::process::id()) << 20 | clock(), Vec::new());
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok());
        match argument.as_str() {
            "--seconds" => seconds = number().unwrap_or(seconds),
            "--seed" => seed = number().unwrap_or(seed),
            name => names.push(name.to_owned()),
        }
    }
    let chosen = |target: &&Target<'_>| names.is_empty() || names.iter().any(|name| name == target.name);
    for target in targets.iter().filter(chosen) {
        if !run(target, Duration::from_secs(seconds), seed) {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::from(now.subsec_micros()))
}

fn run(target: &Target<'_>, time: Duration, seed: u64) -> bool {
    let mut random = Random(seed);
    let began = Instant::now();
    let mut count = 0_u64;
    let mut input: Vec<u8> = Vec::new();
    while began.elapsed() < time {
        // A few changes in a row lead further away from the seed than one.
        if count.is_multiple_of(12) {
            input = target.seeds[random.below(target.seeds.len())].as_bytes().to_vec();
        }
        mutate(&mut input, target, &mut random);
        count += 1;
        let started = Instant::now();
        let fine = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_ok();
        if !fine || (started.elapsed() > SLOW && takes_long(|| (target.run)(&input))) {
            let file = keep(target.name, &input);
            let what = if fine { "took too long" } else { "panicked" };
            eprintln!("{}: input {count} {what}; it is in {} (--seed {seed})", target.name, file.display());
            return false;
        }
    }
    eprintln!("{}: {count} inputs, nothing found", target.name);
    true
}

/// Whether it is the work that takes long, and not the machine that has other things to do.
fn takes_long(work: impl Fn()) -> bool {
    let before = processor_time();
    work();
    match (before, processor_time()) {
        (Some(before), Some(after)) => after.saturating_sub(before) > SLOW,
        _ => true,
    }
}

/// How long this thread has been running; None where the system does not say.
fn processor_time() -> Option<Duration> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(line.split(' ').next()?.parse().ok()?))
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let file = std::env::temp_dir().join(format!("gwctl-fuzz-{name}-{}", std::process::id()));
    let _ = std::fs::write(&file, input);
    file
}

fn mutate(input: &mut Vec<u8>, target: &Target<'_>, random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(7) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => drop(input.remove(at)),
        2 => {
            let word = target.words[random.below(target.words.len())];
            input.splice(at..at, word.bytes());
        }
        3 => {
            let end = at + random.below(input.len() - at + 1).min(60);
            let piece = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        4 => {
            let end = at + random.below(input.len() - at + 1).min(20);
            drop(input.drain(at..end));
        }
        5 => {
            let other = target.seeds[random.below(target.seeds.len())].as_bytes();
            let from = random.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => input.insert(at, random.number() as u8),
    }
    input.truncate(LONGEST);
}
