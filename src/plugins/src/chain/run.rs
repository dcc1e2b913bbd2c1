//! Running the chain of one request.

use super::{Chain, Configured};
use crate::{Context, Exit, Phases, PluginError, Stage, Step};
use bytes::Bytes;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

/// A plugin failed; already written to the log. The request is answered with status 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure;

/// The plugins of one request: first those of the node (rewrite), then those of its route.
pub struct Run {
    chain: Arc<Chain>,
    /// Rows chosen in access, when the choice depends on the consumer.
    chosen: Vec<Arc<Configured>>,
    access_ran: bool,
}

impl Run {
    /// Starts with the chain of requests without a route.
    pub fn new(global: Arc<Chain>) -> Run {
        Run { chain: global, chosen: Vec::new(), access_ran: false }
    }

    /// Goes on with the chain of the matched route.
    pub fn route(&mut self, chain: Arc<Chain>) {
        self.chain = chain;
    }

    /// Whether some plugin may have the phase.
    pub fn has(&self, phase: Phases) -> bool {
        self.chain.phases().has(phase)
    }

    /// The chain in force.
    pub fn chain(&self) -> &Arc<Chain> {
        &self.chain
    }

    /// Runs rewrite of the node's rows; an exit ends the request.
    pub async fn rewrite(&mut self, context: &mut Context) -> Result<Option<Box<Exit>>, Failure> {
        if !self.has(Phases::REWRITE) {
            return Ok(None);
        }
        for row in self.chain.rows(None).filter(|row| row.phases.has(Phases::REWRITE)) {
            let entered = context.enter(|| Stage::Rewrite(row.facts.name.clone()));
            let step = guarded(row, "rewrite", || Ok(row.plugin.rewrite(context)))?;
            let answer = settle(row, "rewrite", step).await?;
            context.leave(entered);
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Runs access. After an exit or a failure the rows left are still chosen for the later phases.
    pub async fn access(&mut self, context: &mut Context) -> Result<Option<Box<Exit>>, Failure> {
        self.access_ran = true;
        let mut answer = Ok(None);
        if self.chain.fixed.is_some() && !self.has(Phases::ACCESS) {
            return answer;
        }
        for choice in &self.chain.choices {
            let Some(row) = choice.pick(context.consumer_id()) else { continue };
            if self.chain.fixed.is_none() {
                self.chosen.push(row.clone());
            }
            if matches!(answer, Ok(None)) && row.phases.has(Phases::ACCESS) {
                let entered = context.enter(|| Stage::Access(row.facts.name.clone()));
                answer = match guarded(row, "access", || Ok(row.plugin.access(context))) {
                    Ok(step) => settle(row, "access", step).await,
                    Err(failure) => Err(failure),
                };
                context.leave(entered);
            }
        }
        answer
    }

    /// The rows of the phases after access.
    fn later(&self, phase: Phases) -> impl Iterator<Item = &Arc<Configured>> {
        let fixed = self.chain.fixed.as_deref();
        let rows = fixed.unwrap_or(&self.chosen).iter();
        let global = (fixed.is_none() && !self.access_ran).then(|| self.chain.rows(None));
        rows.chain(global.into_iter().flatten()).filter(move |row| row.phases.has(phase))
    }

    /// Runs header_filter; the first exit replaces the response and ends the phase.
    pub fn header_filter(&self, context: &mut Context) -> Result<Option<Box<Exit>>, Failure> {
        if !self.has(Phases::HEADER_FILTER) {
            return Ok(None);
        }
        for row in self.later(Phases::HEADER_FILTER) {
            let entered = context.enter(|| Stage::HeaderFilter(row.facts.name.clone()));
            let answer = guarded(row, "header_filter", || row.plugin.header_filter(context))?;
            context.leave(entered);
            if answer.is_some() {
                return Ok(answer);
            }
        }
        Ok(None)
    }

    /// Runs body_filter over one part of the body.
    pub fn body_filter(&self, context: &mut Context, part: &mut Bytes, last: bool) -> Result<(), Failure> {
        if !self.has(Phases::BODY_FILTER) {
            return Ok(());
        }
        for row in self.later(Phases::BODY_FILTER) {
            guarded(row, "body_filter", || row.plugin.body_filter(context, part, last))?;
        }
        Ok(())
    }

    /// Runs log.
    pub fn log(&self, context: &mut Context) {
        if self.has(Phases::LOG) {
            for row in self.later(Phases::LOG) {
                // The others log all the same.
                let _ = guarded(row, "log", || {
                    row.plugin.log(context);
                    Ok(())
                });
            }
        }
    }
}

/// Waits until a step is one of the final ones.
async fn settle(row: &Configured, phase: &str, mut step: Step<'_>) -> Result<Option<Box<Exit>>, Failure> {
    loop {
        match step {
            Step::Next => return Ok(None),
            Step::Exit(exit) => return Ok(Some(exit)),
            Step::Fail(error) => return checked(row, phase, Err(error)),
            Step::Wait(mut later) => {
                // A panic is caught where it happens, at one poll.
                step = poll_fn(|task| match guarded(row, phase, || Ok(later.as_mut().poll(task))) {
                    Ok(poll) => poll.map(Ok),
                    Err(failure) => Poll::Ready(Err(failure)),
                })
                .await?;
            }
        }
    }
}

/// Calls a plugin. A panic is a failure of the plugin as well: it costs its request an answer of 500 and nobody else
/// anything.
fn guarded<T>(row: &Configured, phase: &str, call: impl FnOnce() -> Result<T, PluginError>) -> Result<T, Failure> {
    // What the plugin left half done belongs to its request, which ends here.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(outcome) => checked(row, phase, outcome),
        Err(_) => checked(row, phase, Err(PluginError("it panicked, a bug of the plugin".to_owned()))),
    }
}

fn checked<T>(row: &Configured, phase: &str, outcome: Result<T, PluginError>) -> Result<T, Failure> {
    outcome.map_err(|error| {
        tracing::error!(plugin = %row.facts.name, id = %row.facts.id, phase, %error, "plugin failed");
        Failure
    })
}
