//! What every engine must pass: one function that runs all cases, each on a store of its own.

mod batches;
pub(crate) mod fixtures;
mod log;
mod reads;
mod rules;

use crate::Store;

/// A sentence and the function that holds it against an empty store.
type Case = (&'static str, fn(&dyn Store));

/// Runs every case. `fresh` gives an empty store over [`fixtures::registry`] each time it is called, whose wall clock
/// stands at [`fixtures::NOW`].
pub(crate) fn suite(fresh: &dyn Fn() -> Box<dyn Store>) {
    for (name, case) in [batches::CASES, rules::CASES, reads::CASES, log::CASES].concat() {
        announce(name);
        case(fresh().as_ref());
    }
}

/// Names the case in the captured output, so that a failure tells which one it was.
#[expect(clippy::print_stdout, reason = "captured by the test harness, shown when a case fails")]
fn announce(name: &str) {
    println!("case: {name}");
}
