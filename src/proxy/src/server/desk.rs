//! Where requests are served, one after the other.
//!
//! The state of a request in flight is large, and making room for it means moving it there. So the room is made once and
//! lent to whichever connection has a request: an idle connection has none.

use crate::arrival::Arrival;
use crate::server::answer::Asked;
use crate::server::client::Shared;
use crate::server::http1::End;
use crate::worker::{Stopping, Worker};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// How many a worker keeps for requests to come, of about 5 KiB each.
const MOST_KEPT: usize = 512;

thread_local! {
    static KEPT: RefCell<Vec<Desk>> = const { RefCell::new(Vec::new()) };
}

/// A request to be served.
pub(super) struct Job {
    pub(super) worker: Rc<Worker>,
    pub(super) client: Shared,
    pub(super) stopping: Rc<Stopping>,
    pub(super) arrival: Arrival,
    pub(super) asked: Asked,
}

/// What a desk and its work hand to each other.
#[derive(Default)]
struct Tray {
    job: Cell<Option<Job>>,
    end: Cell<Option<io::Result<End>>>,
}

/// See the module.
pub(super) struct Desk {
    work: Pin<Box<dyn Future<Output = Infallible>>>,
    tray: Rc<Tray>,
}

impl Desk {
    /// Serves one request.
    pub(super) fn serve(job: Job) -> Serving {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        let desk = kept.unwrap_or_else(Desk::new);
        desk.tray.job.set(Some(job));
        Serving(Some(desk))
    }

    fn new() -> Desk {
        let tray = Rc::<Tray>::default();
        Desk { work: Box::pin(work(tray.clone())), tray }
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<io::Result<End>> {
        match self.work.as_mut().poll(task) {
            Poll::Ready(never) => match never {},
            Poll::Pending => self.tray.end.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

/// A request being served. Dropped before its end it takes its desk with it.
pub(super) struct Serving(Option<Desk>);

impl Future for Serving {
    type Output = io::Result<End>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<io::Result<End>> {
        let Some(desk) = &mut self.0 else { return Poll::Pending };
        let end = ready!(desk.poll(task));
        if let Some(desk) = self.0.take() {
            // An error means that the thread ends.
            let _ = KEPT.try_with(|kept| {
                let mut kept = kept.borrow_mut();
                if kept.len() < MOST_KEPT {
                    kept.push(desk);
                }
            });
        }
        Poll::Ready(end)
    }
}

/// Serves what is laid into the tray, for ever. Between two jobs nobody polls it.
async fn work(tray: Rc<Tray>) -> Infallible {
    loop {
        let job = poll_fn(|_| tray.job.take().map_or(Poll::Pending, Poll::Ready)).await;
        let Job { worker, client, stopping, arrival, asked } = job;
        let end = worker.request(&client, arrival, asked, &stopping).await;
        drop((worker, client, stopping));
        tray.end.set(Some(end));
    }
}
