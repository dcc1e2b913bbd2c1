//! The datagrams between one client and its target.
//!
//! A session begins with the first datagram of a client and ends when nothing has moved for the service's `read_timeout`.
//! A target that refuses (ICMP says so) before it has answered anything is given up for another one, which gets the last
//! datagram once more.

use crate::stream::datagrams::{BATCH, Door};
use crate::stream::relay::Moved;
use crate::stream::session::{End, Told};
use crate::stream::way::{Choice, Failure, Tried, Way};
use crate::stream::{Ends, canonical};
use crate::worker::{Stopping, Worker};
use gwctl_router::StreamProtocol;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

/// Datagrams kept while the target is not known yet; further ones are lost.
const WAITING: usize = 16;
/// How long a client that there is no way for is not looked at again.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// How long an answer may take that a stop waits for.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// What is known of a session where datagrams come in.
pub(super) struct Exchange {
    client: SocketAddr,
    moved: Rc<Moved>,
    /// None until there is a target.
    target: RefCell<Option<Rc<UdpSocket>>>,
    waiting: RefCell<VecDeque<Vec<u8>>>,
    /// Sent last; kept until something is answered.
    unanswered: RefCell<Option<Vec<u8>>>,
    answered: Cell<bool>,
    /// When a datagram moved last, whichever way.
    last: Cell<Instant>,
    /// When the client asked last, if nothing came back since.
    asked: Cell<Option<Instant>>,
    /// The system has said that the target refuses.
    refused: Cell<bool>,
    /// Rung when that is set.
    bell: Notify,
    /// There is no way: what comes is lost.
    closed: Cell<bool>,
}

impl Exchange {
    pub(super) fn new(client: SocketAddr, moved: Rc<Moved>) -> Exchange {
        Exchange {
            client,
            moved,
            target: RefCell::default(),
            waiting: RefCell::default(),
            unanswered: RefCell::default(),
            answered: Cell::new(false),
            last: Cell::new(Instant::now()),
            asked: Cell::default(),
            refused: Cell::new(false),
            bell: Notify::new(),
            closed: Cell::new(false),
        }
    }

    /// Sends a datagram of the client on, or keeps it for the target to come. Nobody waits for datagrams: what the system
    /// does not take is lost.
    pub(super) fn deliver(&self, datagram: &[u8]) {
        if self.closed.get() {
            return;
        }
        self.moved.receive(datagram.len());
        let target = self.target.borrow().clone();
        match target {
            Some(target) => self.send(&target, datagram),
            None if self.waiting.borrow().len() < WAITING => self.waiting.borrow_mut().push_back(datagram.to_vec()),
            None => {}
        }
    }

    fn send(&self, target: &UdpSocket, datagram: &[u8]) {
        let now = Instant::now();
        self.last.set(now);
        self.asked.set(Some(now));
        if !self.answered.get() {
            self.unanswered.replace(Some(datagram.to_vec()));
        }
        // What refused was an earlier datagram; this one is not sent.
        if target.try_send(datagram).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            self.refused.set(true);
            self.bell.notify_one();
        }
    }

    fn open(&self, target: &Rc<UdpSocket>) {
        // What the one before refused says nothing of this one.
        self.refused.set(false);
        self.target.replace(Some(target.clone()));
        let waiting = self.waiting.take();
        waiting.iter().for_each(|datagram| self.send(target, datagram));
    }

    /// Back to where there was no target; the last datagram is for the next one.
    fn shut(&self) {
        self.target.take();
        self.waiting.borrow_mut().extend(self.unanswered.take());
    }

    /// When the session is over if nothing moves.
    fn due(&self, limit: Duration, stopped: bool) -> Instant {
        match self.asked.get() {
            _ if !stopped => self.last.get() + limit,
            Some(asked) => asked + limit.min(ANSWER_LIMIT),
            None => self.last.get(),
        }
    }

    /// Passes on what the target sends until nothing moves any more; `first` is called with the first answer.
    async fn answers(
        &self,
        door: &Door,
        target: &UdpSocket,
        limit: Duration,
        mut stopping: Stopping,
        first: impl Fn(),
    ) -> io::Result<End> {
        let mut stop = pin!(async move { _ = stopping.wait_for(|stop| *stop).await });
        let mut stopped = false;
        let mut timer = pin!(sleep_until(self.due(limit, stopped)));
        loop {
            tokio::select! {
                biased;
                ready = target.ready(Interest::READABLE | Interest::ERROR) => {
                    if ready?.is_error() {
                        take_error(target)?;
                    }
                    let before = self.answered.get();
                    let outcome = self.pass_on(door, target);
                    if self.answered.get() && !before {
                        first();
                    }
                    outcome?;
                    tokio::task::yield_now().await;
                }
                () = self.bell.notified() => if self.refused.take() {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                },
                () = &mut stop, if !stopped => stopped = true,
                () = &mut timer => {}
            }
            let due = self.due(limit, stopped);
            if due <= Instant::now() {
                return Ok(if stopped && self.asked.get().is_none() { End::Done } else { End::Silent });
            }
            if timer.is_elapsed() || stopped {
                timer.as_mut().reset(due);
            }
        }
    }

    fn pass_on(&self, door: &Door, target: &UdpSocket) -> io::Result<()> {
        let mut buffer = door.buffer.borrow_mut();
        for _ in 0..BATCH {
            let length = match target.try_recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            self.answered.set(true);
            self.unanswered.take();
            self.asked.set(None);
            self.last.set(Instant::now());
            // As above: what the system does not take is lost.
            if let Some(Ok(sent)) = buffer.get(..length).map(|answer| door.socket.try_send_to(answer, self.client)) {
                self.moved.send(sent);
            }
        }
        Ok(())
    }
}

/// Gives what the system has heard of the target, such as that nobody takes datagrams there.
fn take_error(target: &UdpSocket) -> io::Result<()> {
    let taken = target.try_io(Interest::ERROR, || match target.take_error()? {
        Some(error) => Err(error),
        // Of the past: this forgets it.
        None => Err(io::ErrorKind::WouldBlock.into()),
    });
    taken.or_else(|error| if error.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(error) })
}

impl Worker {
    /// Serves one session to its end.
    pub(super) async fn exchange(
        self: &Rc<Self>,
        door: Rc<Door>,
        exchange: &Exchange,
        mut told: Told,
        mut stopping: Stopping,
    ) {
        let (source, destination) = (canonical(exchange.client), canonical(door.destination(exchange.client)));
        let Some(way) = self.way(Ends { source, destination }, StreamProtocol::Udp, &mut told) else {
            exchange.closed.set(true);
            told.end(&Ok(()));
            tokio::select! {
                _ = stopping.wait_for(|stop| *stop) => {}
                () = sleep(REFUSED_PAUSE) => {}
            }
            return;
        };
        let outcome = self.exchange_by(&way, &door, exchange, &mut told, &stopping).await;
        tracing::debug!(stream = %told, error = outcome.as_ref().err().map(tracing::field::display), "session ended");
        told.end(&outcome);
    }

    async fn exchange_by(
        &self,
        way: &Way,
        door: &Door,
        exchange: &Exchange,
        told: &mut Told,
        stopping: &Stopping,
    ) -> io::Result<()> {
        let mut tried = Tried::default();
        for _ in 0..=way.retries {
            told.session.refuse(502, End::Cut);
            let Some(choice) = way.choose(self, exchange.client.ip(), &tried) else {
                told.session.refuse(503, End::Unreached);
                return Ok(());
            };
            let started = Instant::now();
            let failure = match self.reach(way, &choice, told).await {
                Err(failure) => failure,
                Ok(target) => {
                    told.entered.reached(choice.target());
                    told.session.status = 200;
                    let target = Rc::new(target);
                    exchange.open(&target);
                    let first = || way.succeeded(&choice, started.elapsed());
                    match exchange.answers(door, &target, way.limits.read, stopping.clone(), first).await {
                        Ok(end) => {
                            told.session.end = end;
                            return Ok(());
                        }
                        Err(error) => Failure::Io(error),
                    }
                }
            };
            exchange.shut();
            told.session.failures += 1;
            way.failed(choice, &failure, started.elapsed(), &mut tried);
            if exchange.answered.get() {
                // The next datagram begins a new session.
                return Err(io::ErrorKind::ConnectionReset.into());
            }
        }
        told.session.refuse(502, End::Unreached);
        Ok(())
    }

    /// A socket for this session alone, towards the target.
    async fn reach(&self, way: &Way, choice: &Choice, told: &mut Told) -> Result<UdpSocket, Failure> {
        let address = way.address(self, choice).await?;
        told.session.upstream = Some(address);
        let any: SocketAddr =
            if address.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let socket = UdpSocket::bind(any).await.map_err(Failure::Own)?;
        if self.admission.is_short_of_files(&socket, &self.options, &self.stats) {
            return Err(Failure::Own(io::Error::other("file descriptors run out")));
        }
        socket.connect(address).await.map_err(Failure::Io)?;
        // The runtime takes nothing for a socket that it has not heard of yet.
        socket.writable().await.map_err(Failure::Io)?;
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::watch;

    async fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").await.unwrap()
    }

    /// A target, and a socket towards it.
    async fn target() -> (UdpSocket, Rc<UdpSocket>) {
        let (target, towards) = (socket().await, socket().await);
        towards.connect(target.local_addr().unwrap()).await.unwrap();
        towards.writable().await.unwrap();
        (target, Rc::new(towards))
    }

    #[tokio::test]
    async fn what_one_target_refused_is_not_held_against_the_next_and_the_last_datagram_goes_there() {
        let (client, own) = (socket().await, socket().await);
        let door = Door::new(own, client.local_addr().unwrap());
        let exchange = Exchange::new(client.local_addr().unwrap(), Rc::default());
        exchange.deliver(b"one");
        exchange.deliver(b"two");
        let (first, towards) = target().await;
        exchange.open(&towards);
        let mut buffer = [0; 16];
        for text in ["one", "two"] {
            let length = first.recv(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], text.as_bytes());
        }
        // Both the socket and a datagram may tell of the refusal, one of them too late.
        exchange.refused.set(true);
        exchange.bell.notify_one();
        exchange.shut();
        let (second, towards) = target().await;
        exchange.open(&towards);
        let answered = Cell::new(0);
        let work = async {
            let (length, from) = second.recv_from(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], b"two");
            second.send_to(b"answer", from).await.unwrap();
            client.recv(&mut [0; 16]).await.unwrap()
        };
        // Long enough for the target to answer on a busy machine.
        let limit = Duration::from_secs(2);
        let (_stop, stopping) = watch::channel(false);
        let answers = exchange.answers(&door, &towards, limit, stopping, || answered.set(answered.get() + 1));
        let (length, end) = tokio::join!(work, answers);
        assert_eq!((length, end.unwrap(), answered.get()), (6, End::Silent, 1));
        assert_eq!((exchange.moved.received(), exchange.moved.sent()), (6, 6));
    }

    #[tokio::test]
    async fn a_target_that_refuses_during_a_stop_is_given_up_for_the_next_as_well() {
        let (client, own) = (socket().await, socket().await);
        let door = Door::new(own, client.local_addr().unwrap());
        let exchange = Exchange::new(client.local_addr().unwrap(), Rc::default());
        let (_stop, stopping) = watch::channel(true);
        exchange.deliver(b"one");
        let (gone, towards) = target().await;
        drop(gone);
        exchange.open(&towards);
        let limit = Duration::from_secs(60);
        let refused = exchange.answers(&door, &towards, limit, stopping.clone(), || {}).await;
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        exchange.shut();
        let (second, towards) = target().await;
        exchange.open(&towards);
        let work = async {
            let mut buffer = [0; 16];
            let (length, from) = second.recv_from(&mut buffer).await.unwrap();
            second.send_to(&buffer[..length], from).await.unwrap();
            client.recv(&mut buffer).await.unwrap()
        };
        let (length, end) = tokio::join!(work, exchange.answers(&door, &towards, limit, stopping, || {}));
        assert_eq!((length, end.unwrap()), (3, End::Done));
    }

    #[tokio::test]
    async fn datagrams_that_wait_for_a_target_are_bounded() {
        let exchange = Exchange::new(socket().await.local_addr().unwrap(), Rc::default());
        (0..1000).for_each(|_| exchange.deliver(b"x"));
        assert_eq!(exchange.waiting.borrow().len(), WAITING);
        exchange.closed.set(true);
        exchange.deliver(b"x");
        assert_eq!(exchange.moved.received(), 1000);
    }
}
