//! What one process of a node hands to the one that takes its place: listening sockets and the locks of its folders.

use gwctl_control_plane::ClusterSockets;
use gwctl_store::{FolderLock, StoreError};
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// See the module.
pub(crate) struct Holdings {
    handed: Mutex<Vec<TcpListener>>,
    handed_datagrams: Mutex<Vec<UdpSocket>>,
    handed_locks: Mutex<Vec<FolderLock>>,
    /// Everything again, to be handed on.
    open: Mutex<Vec<TcpListener>>,
    open_datagrams: Mutex<Vec<UdpSocket>>,
    locks: Mutex<Vec<FolderLock>>,
    /// Set once the process before writes no more, or there was none.
    turn: watch::Sender<bool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // All of them hold whole values.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Holdings {
    /// Of a node that begins from nothing.
    pub(crate) fn none() -> Self {
        Self::handed(Vec::new(), Vec::new(), Vec::new(), true)
    }

    /// Adds sockets that a supervisor has opened.
    pub(crate) fn add(&self, sockets: Vec<TcpListener>) {
        locked(&self.handed).extend(sockets);
    }

    /// Of a node that takes the place of another; `turn`: it may write at once.
    pub(crate) fn handed(
        sockets: Vec<TcpListener>,
        datagrams: Vec<UdpSocket>,
        locks: Vec<FolderLock>,
        turn: bool,
    ) -> Self {
        Self {
            handed: Mutex::new(sockets),
            handed_datagrams: Mutex::new(datagrams),
            handed_locks: Mutex::new(locks),
            open: Mutex::default(),
            open_datagrams: Mutex::default(),
            locks: Mutex::default(),
            turn: watch::Sender::new(turn),
        }
    }

    /// Sockets that listen on an address: those handed over first, and as many new ones as are missing.
    pub(crate) fn listen(&self, address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
        let mut sockets = self.take(address);
        let missing = count.saturating_sub(sockets.len());
        let made = match (sockets.len(), missing) {
            (0, _) => gwctl_proxy::listen(address, count)?,
            (_, 0) => Vec::new(),
            // A supervisor's socket may not be shared by its address (`ReusePort=`): all workers take from the one.
            _ => gwctl_proxy::listen_beside(address, missing)
                .or_else(|_| sockets.iter().cycle().take(missing).map(TcpListener::try_clone).collect())?,
        };
        sockets.extend(made);
        for socket in &sockets {
            self.keep(socket.try_clone()?);
        }
        Ok(sockets)
    }

    /// As [`Holdings::listen`], for datagrams.
    pub(crate) fn listen_datagrams(&self, address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
        let mut handed = locked(&self.handed_datagrams);
        let wanted = |socket: &mut UdpSocket| socket.local_addr().is_ok_and(|own| own == address);
        let mut sockets: Vec<_> = handed.extract_if(.., wanted).collect();
        let missing = count.saturating_sub(sockets.len());
        let made = match (sockets.len(), missing) {
            (0, _) => gwctl_proxy::listen_datagrams(address, count)?,
            (_, 0) => Vec::new(),
            _ => gwctl_proxy::listen_datagrams_beside(address, missing)?,
        };
        sockets.extend(made);
        for socket in &sockets {
            locked(&self.open_datagrams).push(socket.try_clone()?);
        }
        Ok(sockets)
    }

    /// The sockets of this address that were handed over.
    pub(crate) fn take(&self, address: SocketAddr) -> Vec<TcpListener> {
        let mut handed = locked(&self.handed);
        let wanted = |socket: &mut TcpListener| socket.local_addr().is_ok_and(|own| own == address);
        handed.extract_if(.., wanted).collect()
    }

    /// Keeps a socket to be handed on.
    pub(crate) fn keep(&self, socket: TcpListener) {
        locked(&self.open).push(socket);
    }

    /// The lock of a folder: held for another part of this process, handed over, or taken now.
    pub(crate) fn claim(&self, folder: &Path) -> Result<FolderLock, StoreError> {
        let mut locks = locked(&self.locks);
        if let Some(lock) = locks.iter().find(|lock| lock.is_of(folder)).and_then(|lock| lock.again().ok()) {
            return Ok(lock);
        }
        let handed = locked(&self.handed_locks).extract_if(.., |lock| lock.is_of(folder)).next();
        let lock = handed.map_or_else(|| FolderLock::claim(folder), Ok)?;
        locks.extend(lock.again());
        Ok(lock)
    }

    /// Lets go of what was handed over and nobody has taken: it is no longer in the settings.
    pub(crate) fn drop_rest(&self) {
        let rest: Vec<_> = locked(&self.handed).drain(..).filter_map(|socket| socket.local_addr().ok()).collect();
        let datagrams: Vec<_> = locked(&self.handed_datagrams).drain(..).collect();
        for address in rest.into_iter().chain(datagrams.iter().filter_map(|socket| socket.local_addr().ok())) {
            tracing::warn!(%address, "a socket for this address was handed over, the settings do not listen there: closed");
        }
        // Of folders that are no longer in the settings.
        locked(&self.handed_locks).clear();
    }

    /// Everything that a process needs to take this one's place, each with its name.
    pub(crate) fn share(&self) -> io::Result<Vec<(&'static str, OwnedFd)>> {
        let mut things = Vec::new();
        for socket in locked(&self.open).iter() {
            things.push(("socket", socket.try_clone()?.into()));
        }
        for socket in locked(&self.open_datagrams).iter() {
            things.push(("datagrams", socket.try_clone()?.into()));
        }
        for lock in locked(&self.locks).iter() {
            things.push(("lock", lock.share()?.into()));
        }
        Ok(things)
    }

    /// Lets go of the copies: a listener is closed once the last copy of its socket is.
    pub(crate) fn close(&self) {
        locked(&self.open).clear();
        locked(&self.open_datagrams).clear();
        locked(&self.locks).clear();
    }

    /// Whether no other process writes.
    pub(crate) fn is_alone(&self) -> bool {
        *self.turn.borrow()
    }

    /// Writes the number of this process into its locks.
    pub(crate) fn sign(&self) {
        locked(&self.locks).iter().for_each(FolderLock::sign);
    }

    /// From now on this process may write.
    pub(crate) fn take_turn(&self) {
        self.turn.send_replace(true);
    }

    /// Ends when this process may write.
    pub(crate) fn turn(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut turn = self.turn.subscribe();
        // An error means that the holdings are gone with the node.
        async move { _ = turn.wait_for(|come| *come).await }
    }
}

/// The sockets of the proxy.
pub(crate) struct ProxySockets<'a>(pub(crate) &'a Holdings);

impl gwctl_proxy::Sockets for ProxySockets<'_> {
    fn connections(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
        self.0.listen(address, count)
    }

    fn datagrams(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<UdpSocket>> {
        self.0.listen_datagrams(address, count)
    }
}

impl ClusterSockets for Holdings {
    fn handed(&self, address: SocketAddr) -> Option<TcpListener> {
        self.take(address).pop()
    }

    fn opened(&self, socket: TcpListener) {
        self.keep(socket);
    }

    fn turn(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Holdings::turn(self))
    }
}
