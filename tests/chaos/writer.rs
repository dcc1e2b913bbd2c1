//! Somebody who writes all the time and remembers what was acknowledged.

use super::Random;
use gwctl_testkit::{Request, request};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

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
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, counted) = (stop.clone(), acknowledged.clone());
        let thread = std::thread::spawn(move || write(admin, &stopped, &counted));
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

fn write(admin: u16, stop: &AtomicBool, acknowledged: &AtomicUsize) -> Outcome {
    static WRITERS: AtomicUsize = AtomicUsize::new(0);
    let own = WRITERS.fetch_add(1, Ordering::Relaxed);
    let (mut outcome, mut random) = (Outcome::default(), Random::new("writer"));
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
        } else {
            // The control plane is down: not so fast.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    outcome
}

fn create(admin: u16, outcome: &mut Outcome, path: String) -> bool {
    let body = json!({"name": name(&path), "paths": [path]});
    let asked = Request { method: "POST", path: "/services/echo/routes", body: Some(&body), ..Request::default() };
    let done = request(admin, &asked).is_ok_and(|answer| answer.status == 201);
    if done {
        outcome.present.insert(path);
    }
    done
}

fn delete(admin: u16, outcome: &mut Outcome, path: String) -> bool {
    outcome.present.remove(&path);
    let target = format!("/routes/{}", name(&path));
    let asked = Request { method: "DELETE", path: &target, ..Request::default() };
    let done = request(admin, &asked).is_ok_and(|answer| answer.status == 204);
    if done {
        outcome.absent.insert(path);
    }
    done
}

fn name(path: &str) -> String {
    path.trim_start_matches('/').replace('/', "-")
}
