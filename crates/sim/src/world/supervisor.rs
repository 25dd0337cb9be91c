//! The session supervisor of a process: the reports that it receives from the client library, and the events that the
//! world records.
//!
//! It reads a session's states as from a watch channel: if two changes come before it reads, it sees only the last
//! state.

use bellwether_actors::session::{Key, SessionEvent, SessionMsg, State as Seen};

use super::{Peer, Who, World};
use crate::history::EventKind;
use crate::host::concern::Letter;
use crate::host::context::{Context, Lives};
use crate::host::session::{self, Passed};
use crate::host::{Msg, Out, Route};
use crate::zk::library::{Library, State};
use crate::zk::{Published, Zk};

/// The session whose states are reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct Followed {
    zk: Zk,
    /// The session supervisor's number for it.
    generation: u64,
    /// Whether a change is on its way to the session supervisor.
    changed: bool,
}

impl World {
    pub(super) fn start_session(&mut self, at: usize, life: u64) {
        let mut out = Vec::new();
        let (now_us, peer) = (self.now_us, &mut self.peers[at]);
        peer.session = Some(session::start(&mut hands(now_us, peer, &mut out), life));
        self.carry_out(at, out);
    }

    /// The session supervisor has ended: followers of the status see no session, and nothing is reported any longer.
    pub(super) fn session_ended(&mut self, at: usize) {
        self.forget(at);
        let peer = &mut self.peers[at];
        peer.session = None;
        if let Some(tasks) = &peer.tasks {
            tasks.publish(Published::default());
        }
    }

    /// Sends a message from the client library to the session supervisor.
    pub(super) fn report_session(&mut self, at: usize, msg: impl FnOnce(u64) -> Msg) {
        if let Some(session) = &self.peers[at].session {
            let msg = msg(session.address());
            self.report(at, msg);
        }
    }

    /// Delivers a message to the session supervisor of this life.
    pub(super) fn supervise(&mut self, at: usize, life: u64, letter: Letter<SessionMsg<Passed>, Key>) {
        let mut out = Vec::new();
        let (now_us, peer) = (self.now_us, &mut self.peers[at]);
        let Some(mut session) = peer.session.take_if(|session| session.address() == life) else { return };
        session.take(&mut hands(now_us, peer, &mut out), letter);
        peer.session = Some(session);
        self.carry_out(at, out);
    }

    /// Reports the session's states to the session supervisor from now on, including a state that it has missed.
    pub(super) fn follow(&mut self, at: usize, generation: u64, zk: Zk) {
        let Peer { library, attempts, .. } = &mut self.peers[at];
        attempts.followed = Some(Followed { zk, generation, changed: false });
        if seen(library, zk) != Seen::Connected {
            self.changed(at);
        }
    }

    /// The session has another state. Its supervisor reads it a little later.
    pub(super) fn changed(&mut self, at: usize) {
        let Some(followed) = &mut self.peers[at].attempts.followed else { return };
        if !std::mem::replace(&mut followed.changed, true) {
            self.tell(at, Route::ZkToSession, Msg::State);
        }
    }

    /// The session supervisor reads the state.
    pub(super) fn state(&mut self, at: usize) {
        let Peer { library, attempts, .. } = &mut self.peers[at];
        let Some(followed) = attempts.followed.as_mut().filter(|followed| followed.changed) else { return };
        followed.changed = false;
        let msg = SessionMsg::State(followed.generation, seen(library, followed.zk));
        if let Some(session) = &self.peers[at].session {
            let msg = session::to(session.address(), msg);
            self.deliver(at, msg);
        }
    }

    /// Records an event that the session supervisor sends to its subscribers.
    pub(super) fn session(&mut self, at: usize, event: SessionEvent) {
        let name = self.name(at);
        self.trace.note(self.now_us, || format!("{name}: session {event:?}"));
        if let Who::Node(config, _) = &self.peers[at].who {
            let (node, session) = (config.name.clone(), self.peers[at].library.view.session);
            let up = matches!(event, SessionEvent::Connected { .. } | SessionEvent::Reconnected);
            self.record(EventKind::Link { node, session, up });
        }
    }

    pub(super) fn forget(&mut self, at: usize) {
        self.peers[at].attempts.followed = None;
    }
}

fn seen(library: &Library<Msg>, zk: Zk) -> Seen {
    match library.state {
        State::Away => Seen::Ended,
        State::Up(_) | State::Down if library.view.generation != zk.0 => Seen::Ended,
        State::Up(_) if library.view.connected => Seen::Connected,
        State::Up(_) | State::Down => Seen::Disconnected,
    }
}

/// Builds the context of a process's session supervisor.
fn hands<'a>(now_us: u64, peer: &'a mut Peer, out: &'a mut Vec<Out>) -> Context<'a> {
    Context {
        now_us,
        skew_ms: peer.skew_ms,
        node: &peer.name,
        view: peer.library.view,
        lives: Lives::default(),
        leads_in: None,
        rng: &mut peer.rng,
        out,
    }
}
