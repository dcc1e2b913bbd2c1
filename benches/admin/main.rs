//! How the Admin API and the tool on top of it bear size: a whole configuration as one batch, a directory of consumers,
//! the plan between two files.
//!
//!     cargo bench -p gwctl --bench admin [-- [services=N] [consumers=N] [batch=N] [PART...]]
//!
//! Parts are `bulk`, `consumers` and `plan`; all of them unless named. A service counts for ten entities. The sizes asked
//! for by default are those that the wanted figures speak of: 10,000 services (100,000 entities) and 1,000,000 consumers
//! with two keys each, which takes some minutes and 6 GB below the folder of temporary files (`TMPDIR`).
//! `services=500 consumers=5000` is done in seconds. Ends with code 1 when a figure misses what is wanted.
//!
//! Everything runs on one machine: client and node share its processors, and a commit waits for its disk. There is no
//! peer beside the figures: a Kong needs PostgreSQL and a build of its own, which cannot be expected where this runs. To
//! compare, send the same requests to one by hand.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark reports on stdout and fails by panicking")]

mod bulk;
mod members;
mod node;
mod plan;
mod report;
mod shape;

use report::Report;
use std::process::ExitCode;

const GWCTL: &str = env!("CARGO_BIN_EXE_gwctl");

/// The allocator of the binary: plans are made in this process too.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What was asked for.
struct Sizes {
    services: usize,
    consumers: usize,
    /// Operations of a batch while consumers are loaded.
    batch: usize,
    parts: Vec<String>,
}

impl Sizes {
    fn asked() -> Self {
        let mut sizes = Self { services: 10_000, consumers: 1_000_000, batch: 15_000, parts: Vec::new() };
        // Cargo adds flags of its own.
        for word in std::env::args().skip(1).filter(|word| !word.starts_with('-')) {
            match word.split_once('=').map(|(name, number)| (name, number.replace('_', "").parse())) {
                Some(("services", Ok(number))) => sizes.services = number,
                Some(("consumers", Ok(number))) => sizes.consumers = number,
                Some(("batch", Ok(number))) => sizes.batch = number,
                Some(_) => panic!("{word}: expected services=N, consumers=N or batch=N"),
                None => sizes.parts.push(word),
            }
        }
        sizes
    }

    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

fn main() -> ExitCode {
    let sizes = Sizes::asked();
    let mut report = Report::default();
    if sizes.wants("bulk") {
        bulk::measure(sizes.services, &mut report);
    }
    if sizes.wants("plan") {
        plan::measure(sizes.services, &mut report);
    }
    if sizes.wants("consumers") {
        members::measure(sizes.consumers, sizes.batch, &mut report);
    }
    match report.missed() {
        0 => ExitCode::SUCCESS,
        missed => {
            println!("\n{missed} figures missed what is wanted");
            ExitCode::FAILURE
        }
    }
}
