//! Carries out a plan: as one batch where the control plane can, else by single requests.

use super::connect::failure;
use super::mistakes;
use super::progress::Progress;
use crate::failure::Failure;
use futures_util::future::join_all;
use gwctl_admin_client::{ChangeOperation, Client, ClientError};
use gwctl_declarative::{Operation, Plan};
use gwctl_entities::Value;
use gwctl_tui::format::{plain, plain_lines};

/// Single requests on the way at the same time.
const AT_ONCE: usize = 8;
/// Mistakes of a batch that are listed.
const LISTED: usize = 20;

/// What became of a plan.
pub enum Sent {
    /// The version it made, None of a plain Kong.
    Done(Option<u64>),
    /// Somebody else wrote since the plan was made: nothing was changed.
    Overtaken,
}

/// Sends the plan. A batch is sent for the version that the plan was made from.
pub async fn send(client: &Client, plan: &Plan, now_millis: u64) -> Result<Sent, Failure> {
    let operations: Vec<ChangeOperation> = plan.operations.iter().map(|one| operation(one, now_millis)).collect();
    match client.change(&operations, client.version_read()).await {
        Ok(Some(done)) => Ok(Sent::Done(Some(done.version))),
        Ok(None) => singly(client, plan, now_millis).await.map(|()| Sent::Done(None)),
        Err(error) if error.status() == Some(412) => Ok(Sent::Overtaken),
        Err(error) => Err(refused(plan, &error)),
    }
}

fn operation(operation: &Operation, now_millis: u64) -> ChangeOperation {
    let body = operation.body(now_millis);
    ChangeOperation {
        action: if body.is_some() { "upsert" } else { "delete" },
        entity: operation.entity.clone(),
        id: operation.id.clone(),
        body,
        transform: operation.stored.then_some(false),
    }
}

/// A plain Kong hashes every password it is sent: stored hashes would become others, and nobody could log in.
fn refuse_hashes(client: &Client, plan: &Plan) -> Result<(), Failure> {
    let hashed: Vec<&str> = plan.operations.iter().filter(|one| one.stored).map(|one| one.name.as_str()).collect();
    if hashed.is_empty() {
        return Ok(());
    }
    let few = hashed.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    let more = if hashed.len() > LISTED { ", ..." } else { "" };
    let text = format!(
        "the file holds hashes of passwords and the Kong at {} would hash them again; nothing was sent\n  \
         basicauth_credentials {few}{more}",
        client.address()
    );
    Err(Failure::new(plain_lines(&text)).hint("write the passwords themselves, or leave these credentials out"))
}

/// Why a batch was not carried out.
fn refused(plan: &Plan, error: &ClientError) -> Failure {
    let ClientError::PeerRefused { refusal, .. } = error else {
        let silent = matches!(error, ClientError::PeerSilent { .. });
        let failure = failure(error);
        return if silent {
            failure.hint("whether it was carried out is unknown: `gwctl diff` tells")
        } else {
            failure
        };
    };
    if refusal.errors.is_empty() {
        return failure(error);
    }
    let mut text = format!("{} at the control plane", refusal.message);
    for entry in refusal.errors.iter().take(LISTED) {
        for line in mistake(plan, entry) {
            text += &format!("\n  {}", plain(&line));
        }
    }
    if refusal.errors.len() > LISTED {
        text += &format!("\n  ... {} more", refusal.errors.len() - LISTED);
    }
    Failure::new(text)
}

/// `routes list: paths: ...`, one line per field.
fn mistake(plan: &Plan, entry: &Value) -> Vec<String> {
    let operation = entry["index"].as_u64().and_then(|index| plan.operations.get(usize::try_from(index).ok()?));
    let what = operation.map_or_else(|| "an operation".to_owned(), |one| format!("{} {}", one.entity, one.name));
    let lines = mistakes::lines(&entry["error"]["fields"], &|path| path.join("."));
    if lines.is_empty() {
        let message = entry["error"]["message"].as_str().unwrap_or("refused without a reason");
        return vec![format!("{what}: {message}")];
    }
    lines.into_iter().map(|line| format!("{what}: {line}")).collect()
}

/// Sends the operations in order, and stops where one fails.
///
/// Those of one kind on one entity do not depend on each other: a few of them are on the way at once.
async fn singly(client: &Client, plan: &Plan, now_millis: u64) -> Result<(), Failure> {
    refuse_hashes(client, plan)?;
    let mut line = Progress::new();
    let total = plan.operations.len();
    let mut done = 0;
    for kind in plan.operations.chunk_by(|left, right| (left.action, &left.entity) == (right.action, &right.entity)) {
        for batch in kind.chunks(AT_ONCE) {
            line.say(&format!("{done} of {total} sent"));
            let outcomes = join_all(batch.iter().map(|operation| one(client, operation, now_millis))).await;
            done += outcomes.iter().filter(|outcome| outcome.is_ok()).count();
            let failed = batch.iter().zip(outcomes).find_map(|(operation, outcome)| Some((operation, outcome.err()?)));
            if let Some((operation, error)) = failed {
                line.end();
                let what = format!("{} {} could not be sent", operation.entity, operation.name);
                let state = format!("{done} of {total} operations are done; `gwctl apply` again continues from there");
                return Err(failure(&error).within(format!("{}\n{state}", plain(&what))));
            }
        }
    }
    line.end();
    Ok(())
}

async fn one(client: &Client, operation: &Operation, now_millis: u64) -> Result<(), ClientError> {
    let Some(body) = operation.body(now_millis) else { return client.delete(&operation.path).await };
    match (client.put(&operation.path, &body).await, &operation.post_path) {
        (Err(error), Some(path)) if error.status() == Some(404) => client.post(path, &body).await.map(drop),
        (outcome, _) => outcome.map(drop),
    }
}
