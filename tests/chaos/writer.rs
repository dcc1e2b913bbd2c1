//! Somebody who writes all the time and remembers what was acknowledged.

use gwctl_testkit::{Answer, Request, request};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What must hold afterwards. What was asked for but not answered is in neither: it may have been done.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) present: BTreeSet<String>,
    pub(crate) absent: BTreeSet<String>,
}

/// A thread that makes and deletes routes one after another until told to stop.
pub(crate) struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    thread: JoinHandle<Outcome>,
}

impl Writer {
    pub(crate) fn start(admin: u16) -> Self {
        Self::paced(admin, Duration::ZERO)
    }

    /// One that rests after each change, so that many data planes keep up on a small machine.
    pub(crate) fn paced(admin: u16, rest: Duration) -> Self {
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, counted) = (stop.clone(), acknowledged.clone());
        let thread = std::thread::spawn(move || write(admin, rest, &stopped, &counted));
        Self { stop, acknowledged, thread }
    }

    /// Changes acknowledged so far.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn write(admin: u16, rest: Duration, stop: &AtomicBool, acknowledged: &AtomicUsize) -> Outcome {
    static WRITERS: AtomicUsize = AtomicUsize::new(0);
    let own = WRITERS.fetch_add(1, Ordering::Relaxed);
    let (mut outcome, mut random) = (Outcome::default(), super::random("writer"));
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let done = match outcome.present.first().cloned().filter(|_| random.below(3) == 0) {
            Some(path) => delete(admin, &mut outcome, path),
            None => create(admin, &mut outcome, format!("/w{own}/{number:06}")),
        };
        if done {
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        // While the control plane is down: not so fast.
        std::thread::sleep(if done { rest } else { Duration::from_millis(20) });
    }
    outcome
}

fn create(admin: u16, outcome: &mut Outcome, path: String) -> bool {
    let body = json!({"name": name(&path), "paths": [path]});
    let asked = Request { method: "POST", path: "/services/echo/routes", body: Some(&body), ..Request::default() };
    let done = is_done(request(admin, &asked), 201);
    if done {
        outcome.present.insert(path);
    }
    done
}

fn delete(admin: u16, outcome: &mut Outcome, path: String) -> bool {
    outcome.present.remove(&path);
    let target = format!("/routes/{}", name(&path));
    let asked = Request { method: "DELETE", path: &target, ..Request::default() };
    let done = is_done(request(admin, &asked), 204);
    if done {
        outcome.absent.insert(path);
    }
    done
}

/// Whether the answer says so; another one than that is for the log of the test.
fn is_done(answer: std::io::Result<Answer>, status: u16) -> bool {
    match answer {
        Ok(answer) if answer.status == status => true,
        Ok(answer) => {
            eprintln!("not {status} but {}: {}", answer.status, answer.body);
            false
        }
        Err(_) => false,
    }
}

fn name(path: &str) -> String {
    path.trim_start_matches('/').replace('/', "-")
}
