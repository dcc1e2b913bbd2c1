//! Changing the binary under running connections: a new process is started, is handed the listening sockets and the
//! locks of its folders, and says when it is ready; only then does this one accept no more and let what it has in flight end.
//!
//! Both speak over a pair of sockets that is the standard input of the new process. Each message is one packet:
//!
//! | from | packet | meaning |
//! |---|---|---|
//! | old | `socket` with a descriptor | listens, in no order |
//! | old | `datagrams` with a descriptor | takes in datagrams, in no order |
//! | old | `lock` with a descriptor | the lock of a folder: the prefix, and the store or cache |
//! | old | `end` | that was all |
//! | new | `ready`, or `failed` and why | it accepts connections, or ends |
//! | old | `yours` | it writes into the folder no more: the new one may. The end of the socket says the same |
//!
//! The sockets are shared and never closed in between, so no connection that waits in a queue is lost.

use super::signals::Wish;
use super::sockets::Holdings;
use gwctl_store::FolderLock;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// Set in the environment of a process that takes the place of another.
const VARIABLE: &str = "GWCTL_HANDOVER";
/// Time the new process has to say that it is ready.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longest reason of a failure in bytes.
const LONGEST: usize = 8192;

/// How to start this program again; to be made while the program's file is still the one that runs.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// This process.
    pub(crate) fn of_process() -> io::Result<Self> {
        Ok(Self { path: std::env::current_exe()?, arguments: std::env::args_os().skip(1).collect() })
    }
}

/// A process that is ready to take this one's place.
pub(crate) struct Successor {
    channel: OwnedFd,
    pub(crate) id: u32,
}

impl Successor {
    /// Starts it; blocks until it is ready. Gives the reason when it is not: it has ended then.
    pub(crate) fn start(program: &Program, holdings: &Holdings) -> Result<Self, String> {
        let words = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair.map_err(|error| format!("cannot make a pair of sockets: {error}"))?;
        let things = holdings.share().map_err(words("cannot copy the listening sockets"))?;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).env(VARIABLE, "1").stdin(Stdio::from(theirs));
        let path = program.path.display();
        let mut child = command.spawn().map_err(words(&format!("cannot start {path}")))?;
        // The other end must be open in the child only, so that its death is noticed.
        drop(command);
        match Self::greet(&ours, things) {
            Ok(()) => Ok(Self { channel: ours, id: child.id() }),
            Err(why) => Err(end(&mut child, why)),
        }
    }

    fn greet(channel: &OwnedFd, things: Vec<(&'static str, OwnedFd)>) -> Result<(), String> {
        let failed = |error: Errno| match error {
            Errno::PIPE | Errno::CONNRESET => "it ended at once; its log says why".to_owned(),
            error => format!("cannot hand over the listening sockets: {error}"),
        };
        rustix::net::sockopt::set_socket_timeout(channel, rustix::net::sockopt::Timeout::Recv, Some(PATIENCE))
            .map_err(failed)?;
        for (name, thing) in things {
            send(channel, name, Some(&thing)).map_err(failed)?;
        }
        send(channel, "end", None).map_err(failed)?;
        match receive(channel) {
            Ok((text, _)) if text == "ready" => Ok(()),
            Ok((text, _)) if text.is_empty() => Err("it ended before it was ready; its log says why".to_owned()),
            Ok((text, _)) => Err(text.strip_prefix("failed ").unwrap_or(&text).to_owned()),
            Err(Errno::AGAIN) => Err(format!("it was not ready within {} s", PATIENCE.as_secs())),
            Err(error) => Err(failed(error)),
        }
    }

    /// Passes on what was asked of the node meanwhile.
    pub(crate) fn pass_on(&self, wish: Wish) {
        let signal = match wish {
            Wish::Reload => Signal::HUP,
            Wish::Reopen => Signal::USR1,
            // It is the program on disk already.
            Wish::Upgrade => return,
            Wish::Quit => Signal::QUIT,
            Wish::Stop => Signal::TERM,
        };
        if let Some(process) = i32::try_from(self.id).ok().and_then(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process(process, signal);
        }
    }

    /// Tells it that this process writes no more.
    pub(crate) fn yield_turn(&self) {
        // It is gone or it hears the end of the socket.
        let _ = send(&self.channel, "yours", None);
    }
}

/// Ends a process that is not wanted; gives the reason with the code it ended with, if it did by itself.
fn end(child: &mut Child, why: String) -> String {
    let code = child.try_wait().ok().flatten().and_then(|status| status.code());
    let _ = child.kill();
    let _ = child.wait();
    match code {
        Some(code) => format!("{why} (exit code {code})"),
        None => why,
    }
}

/// The process whose place this one takes.
pub(crate) struct Predecessor {
    channel: OwnedFd,
}

impl Predecessor {
    /// What the process before hands over; None when there is none.
    pub(crate) fn find() -> Option<io::Result<(Self, Holdings)>> {
        std::env::var_os(VARIABLE)?;
        Some(Self::receive())
    }

    fn receive() -> io::Result<(Self, Holdings)> {
        let channel = io::stdin().as_fd().try_clone_to_owned()?;
        let (mut sockets, mut datagrams, mut locks) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            match receive(&channel)? {
                (text, Some(thing)) if text == "socket" => sockets.push(thing.into()),
                (text, Some(thing)) if text == "datagrams" => datagrams.push(thing.into()),
                (text, Some(thing)) if text == "lock" => locks.push(FolderLock::handed(thing.into())),
                (text, _) if text == "end" => break,
                (text, _) if text.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
                // A later version may hand over more.
                _ => {}
            }
        }
        Ok((Self { channel }, Holdings::handed(sockets, datagrams, locks, false)))
    }

    /// Says that this process accepts connections; when the other one writes no more, this one's turn has come.
    pub(crate) fn ready(self, holdings: Arc<Holdings>, then: impl FnOnce() + Send + 'static) {
        let _ = send(&self.channel, "ready", None);
        std::thread::spawn(move || {
            // Its end is as good as its word.
            let _ = receive(&self.channel);
            // Whoever is answered finds this process under the node's number.
            holdings.sign();
            then();
            holdings.take_turn();
        });
    }

    /// Says why this process ends.
    pub(crate) fn failed(&self, why: &str) {
        let mut end = why.len().min(LONGEST - 16);
        while !why.is_char_boundary(end) {
            end -= 1;
        }
        let _ = send(&self.channel, &format!("failed {}", &why[..end]), None);
    }
}

fn send(channel: &OwnedFd, text: &str, thing: Option<&OwnedFd>) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let things: Vec<_> = thing.iter().map(|thing| thing.as_fd()).collect();
    if !things.is_empty() {
        // There is space for one.
        control.push(SendAncillaryMessage::ScmRights(&things));
    }
    sendmsg(channel, &[IoSlice::new(text.as_bytes())], &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// A packet and its descriptor; an empty one at the end.
fn receive(channel: &OwnedFd) -> Result<(String, Option<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; LONGEST];
    let received = loop {
        match recvmsg(channel, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            outcome => break outcome?,
        }
    };
    bytes.truncate(received.bytes);
    let thing = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut things) => things.next(),
        _ => None,
    });
    Ok((String::from_utf8_lossy(&bytes).into_owned(), thing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_socket_passes_with_its_name_and_an_end_is_an_empty_packet() {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (one, other) = pair.expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        send(&one, "socket", Some(&listener.into())).expect("sent");
        let (name, thing) = receive(&other).expect("received");
        let passed = TcpListener::from(thing.expect("a descriptor"));
        assert_eq!((name.as_str(), passed.local_addr().expect("bound")), ("socket", address));
        drop(one);
        assert!(receive(&other).is_ok_and(|(name, thing)| name.is_empty() && thing.is_none()));
    }
}
