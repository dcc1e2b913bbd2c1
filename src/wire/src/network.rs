//! A network that exists only in memory, on a clock that only moves when told to; the tests that join both ends of a link
//! share it.

use crate::{Frame, Moment};
use std::collections::VecDeque;
use std::time::Duration;

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    DataPlane,
    ControlPlane,
}

/// One direction of a connection: frames with the moment of their arrival; None is the end of the connection.
type Pipe = VecDeque<(Moment, Option<Frame>)>;

/// One connection at a time, and the clock.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: Moment,
    pub(crate) latency: Duration,
    to_data_plane: Pipe,
    to_control_plane: Pipe,
    /// The connection exists for its ends but carries nothing.
    vanished: bool,
    stalled_until: Moment,
}

impl Default for Network {
    fn default() -> Self {
        Self {
            now: Duration::ZERO,
            latency: Duration::from_millis(20),
            to_data_plane: Pipe::new(),
            to_control_plane: Pipe::new(),
            vanished: false,
            stalled_until: Duration::ZERO,
        }
    }
}

impl Network {
    /// A new connection; what was on its way is lost.
    pub(crate) fn connect(&mut self) {
        self.to_data_plane.clear();
        self.to_control_plane.clear();
        self.vanished = false;
    }

    /// Nothing arrives any more and nobody is told.
    pub(crate) fn vanish(&mut self) {
        self.connect();
        self.vanished = true;
    }

    /// Everything is held back for a while.
    pub(crate) fn stall(&mut self, time: Duration) {
        self.stalled_until = self.now + time;
        for (at, _) in self.to_data_plane.iter_mut().chain(&mut self.to_control_plane) {
            *at = (*at).max(self.stalled_until);
        }
    }

    /// When bytes written now have left.
    pub(crate) fn written_at(&self) -> Moment {
        self.now.max(self.stalled_until)
    }

    /// In order, so nothing arrives before what was sent earlier.
    pub(crate) fn send(&mut self, to: End, frame: Option<Frame>) {
        if self.vanished {
            return;
        }
        let at = self.stalled_until.max(self.now + self.latency);
        let pipe = self.pipe(to);
        let at = pipe.back().map_or(at, |(last, _)| at.max(*last));
        pipe.push_back((at, frame));
    }

    /// This end listens no more.
    pub(crate) fn deafen(&mut self, end: End) {
        self.pipe(end).clear();
    }

    /// When something arrives next at this end.
    pub(crate) fn arrives_at(&self, end: End) -> Option<Moment> {
        let pipe = match end {
            End::DataPlane => &self.to_data_plane,
            End::ControlPlane => &self.to_control_plane,
        };
        pipe.front().map(|(at, _)| *at)
    }

    /// What arrived; None is the end of the connection.
    pub(crate) fn receive(&mut self, end: End) -> Option<Frame> {
        self.pipe(end).pop_front().and_then(|(_, frame)| frame)
    }

    fn pipe(&mut self, end: End) -> &mut Pipe {
        match end {
            End::DataPlane => &mut self.to_data_plane,
            End::ControlPlane => &mut self.to_control_plane,
        }
    }
}
