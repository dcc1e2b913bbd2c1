//! Batches, failures, bounds and the end, with a server made by hand.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use std::sync::Condvar;
use std::time::Instant;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(1);

/// Keeps what it is sent, or answers with a failure for as long as there are some.
#[derive(Default)]
struct Server {
    failures: Mutex<Vec<Undelivered>>,
    batches: Mutex<Vec<Vec<u8>>>,
    changed: Condvar,
    /// Never answers.
    dead: bool,
}

impl Server {
    fn wait(&self, count: usize) -> Vec<Vec<u8>> {
        self.wait_until(|batches| batches.len() >= count)
    }

    fn wait_until(&self, enough: impl Fn(&[Vec<u8>]) -> bool) -> Vec<Vec<u8>> {
        let until = Instant::now() + Duration::from_secs(60);
        let mut batches = self.batches.lock().unwrap();
        while !enough(&batches) {
            assert!(Instant::now() < until, "{batches:?}");
            batches = self.changed.wait_timeout(batches, Duration::from_secs(1)).unwrap().0;
        }
        batches.clone()
    }
}

impl Deliver for Arc<Server> {
    fn deliver<'a>(&'a self, batch: &'a [Part]) -> Delivery<'a> {
        Box::pin(async move {
            if self.dead {
                std::future::pending::<()>().await;
            }
            if let Some(failure) = self.failures.lock().unwrap().pop() {
                return Err(failure);
            }
            self.batches.lock().unwrap().push(batch.iter().flat_map(|part| part.bytes.clone()).collect());
            self.changed.notify_all();
            Ok(())
        })
    }
}

fn options() -> QueueOptions {
    QueueOptions {
        max_batch_size: 4,
        max_coalescing_delay: SHORT,
        max_entries: 10,
        max_bytes: None,
        max_retry_time: LONG,
        initial_retry_delay: SHORT,
        max_retry_delay: SHORT,
    }
}

fn outlet(exports: &Exports, server: &Arc<Server>, options: QueueOptions) -> Outlet {
    exports.outlet(&"row".into(), Terms { options, sender: Box::new(server.clone()) })
}

fn part(byte: u8, count: u32) -> Part {
    Part { bytes: vec![byte], count }
}

#[test]
fn a_whole_batch_is_sent_at_once_and_the_rest_after_the_delay() {
    let (exports, server) = (Exports::default(), Arc::<Server>::default());
    let patient = outlet(&exports, &server, QueueOptions { max_coalescing_delay: LONG, ..options() });
    (1..=3).for_each(|byte| patient.add(part(byte, 2)));
    assert_eq!(server.wait(1), [[1, 2]]);
    // The same row with other settings goes on with the same queue, from its next batch on.
    let hasty = outlet(&exports, &server, options());
    (4..=5).for_each(|byte| hasty.add(part(byte, 2)));
    // How the rest is parted depends on whether the fourth comes within the delay of the third.
    let batches = server.wait_until(|batches| batches.concat().len() == 5);
    assert_eq!(batches.concat(), [1, 2, 3, 4, 5]);
    assert!(batches.iter().all(|batch| batch.len() <= 2), "{batches:?}");
}

#[test]
fn what_could_not_be_sent_is_sent_again_and_what_is_refused_is_lost() {
    let (exports, server) = (Exports::default(), Arc::<Server>::default());
    let again = || Undelivered::Again("down".to_owned());
    *server.failures.lock().unwrap() = vec![Undelivered::Never("no".to_owned()), again(), again()];
    let outlet = outlet(&exports, &server, options());
    outlet.add(part(1, 4));
    outlet.add(part(2, 3));
    assert_eq!(server.wait(1), [[2]]);
    exports.finish(LONG);
    assert_eq!(exports.exported(), Exported { sent: 3, dropped: 4, waiting: 0 });
}

#[test]
fn a_batch_is_given_up_after_its_time() {
    let (exports, server) = (Exports::default(), Arc::<Server>::default());
    *server.failures.lock().unwrap() = vec![Undelivered::Again("down".to_owned()); 2];
    outlet(&exports, &server, QueueOptions { max_retry_time: Duration::ZERO, ..options() }).add(part(1, 4));
    exports.finish(LONG);
    assert_eq!(exports.exported().dropped, 4);
}

#[test]
fn a_dead_server_costs_the_oldest_entries_and_no_more_memory_than_allowed() {
    let (exports, server) = (Exports::default(), Arc::new(Server { dead: true, ..Server::default() }));
    let by_entries = outlet(&exports, &server, options());
    for number in 0..1000_u32 {
        by_entries.add(part(number.to_le_bytes()[0], 2));
    }
    let waiting = exports.exported().waiting;
    // What is being sent, and what waits.
    assert!((10..=14).contains(&waiting), "{waiting}");
    let by_bytes = exports.outlet(
        &"other".into(),
        Terms { options: QueueOptions { max_bytes: Some(2), ..options() }, sender: Box::new(server.clone()) },
    );
    (0..100).for_each(|byte| by_bytes.add(part(byte, 1)));
    let exported = exports.exported();
    assert!(exported.waiting - waiting <= 6, "{exported:?}");
    assert_eq!(exported.waiting + exported.dropped, 2100);
    exports.finish(SHORT);
    assert_eq!(exports.exported(), Exported { sent: 0, dropped: 2100, waiting: 0 });
}

#[test]
fn the_end_sends_what_waits_without_delay_and_takes_nothing_more() {
    let (exports, server) = (Exports::default(), Arc::<Server>::default());
    let outlet = outlet(&exports, &server, QueueOptions { max_coalescing_delay: LONG, ..options() });
    outlet.add(part(1, 1));
    exports.finish(LONG);
    assert_eq!(server.wait(1), [[1]]);
    outlet.add(part(2, 1));
    assert_eq!(exports.exported(), Exported { sent: 1, dropped: 1, waiting: 0 });
}

#[test]
fn nothing_is_lost_or_told_twice_when_many_threads_add() {
    let (exports, server) = (Exports::default(), Arc::<Server>::default());
    let outlet = outlet(&exports, &server, QueueOptions { max_entries: 1_000_000, ..options() });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| outlet.add(part(7, 1))));
        }
    });
    exports.finish(LONG);
    assert_eq!(exports.exported(), Exported { sent: 2000, dropped: 0, waiting: 0 });
    assert_eq!(server.batches.lock().unwrap().iter().map(Vec::len).sum::<usize>(), 2000);
}
