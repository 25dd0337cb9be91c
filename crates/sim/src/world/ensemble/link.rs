//! The link between a member and the leader: messages arrive in order, and late. A cut link holds its messages; they
//! arrive after the cut, unless the member has given up the leader.

use super::super::server::Outcome;
use super::{Ensemble, Entry, MEMBERS};
use crate::zk::library::Conn;

/// An event of the ensemble.
#[derive(Debug)]
pub(in super::super) enum Step {
    /// The time of a beat.
    Beat,
    /// A message arrives on the link of this member, which has this number.
    Message(usize, u64, Message),
    /// A cut may be over.
    Flow,
    /// A killed member is restarted.
    Restart(usize),
}

#[derive(Debug)]
pub(in super::super) enum Message {
    Up(ToLeader),
    Down(ToMember),
}

#[derive(Debug)]
pub(in super::super) enum ToLeader {
    /// The log up to here is on the member's disk.
    Ack(usize),
    Write(Entry),
    /// A client's request to close its session.
    End(i64, super::Origin),
    Sync(i64, super::Origin),
    /// A client continues its session on this connection.
    Validate(i64, Conn),
    /// The reply to a ping, with the sessions that the member has heard of since the last one.
    Pong(Vec<i64>),
}

#[derive(Debug)]
pub(in super::super) enum ToMember {
    /// The log has this length.
    Propose(usize),
    Commit(usize),
    Synced(super::Origin),
    /// The answer to [`ToLeader::Validate`]: whether the session is alive.
    Validated(Conn, bool),
    /// The session has ended or is served on another connection.
    Moved(Conn),
    Ping,
}

/// The state of a member's link.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Replaced when the member joins a leader. Messages of an earlier link are lost.
    pub(super) number: u64,
    up_us: u64,
    down_us: u64,
    held: Vec<Message>,
    /// The member is cut off from the other members until then.
    cut_until_us: u64,
    /// Until the first time, messages to the member take up to the second time longer.
    lag: (u64, u64),
}

impl Link {
    pub(super) fn renew(&mut self) {
        *self = Self {
            number: self.number + 1,
            cut_until_us: self.cut_until_us,
            lag: self.lag,
            ..Self::default()
        };
    }
}

impl Ensemble {
    /// Handles an event.
    pub(in super::super) fn step(&mut self, now_us: u64, step: Step) -> Outcome {
        self.now_us = now_us;
        match step {
            Step::Beat => self.beat(),
            Step::Message(member, number, message) => self.arrives(member, number, message),
            Step::Flow => self.flow(),
            Step::Restart(member) => self.restart(member),
        }
        self.done()
    }

    pub(super) fn is_cut(&self, member: usize) -> bool {
        let cut = |at: usize| self.now_us < self.members[at].link.cut_until_us;
        cut(member) || self.leading().is_some_and(cut)
    }

    /// Sends a message to the leader.
    pub(super) fn up(&mut self, member: usize, message: ToLeader) {
        if self.leading() == Some(member) {
            return self.at_leader(member, message);
        }
        let late = self.delay();
        let link = &mut self.members[member].link;
        link.up_us = (self.now_us + late).max(link.up_us + 1);
        let step = Step::Message(member, link.number, Message::Up(message));
        self.out.later.push((link.up_us, step));
    }

    /// Sends a message to a member.
    pub(super) fn down(&mut self, member: usize, message: ToMember) {
        if self.leading() == Some(member) {
            return self.at_member(member, message);
        }
        let late = self.delay();
        let link = &mut self.members[member].link;
        let lag = if self.now_us < link.lag.0 { self.rng.u64(..=link.lag.1) } else { 0 };
        link.down_us = (self.now_us + late + lag).max(link.down_us + 1);
        let step = Step::Message(member, link.number, Message::Down(message));
        self.out.later.push((link.down_us, step));
    }

    /// Draws the delay of a message: usually short, sometimes long enough that clients of two members see it.
    fn delay(&mut self) -> u64 {
        match self.rng.u8(..30) {
            0 => self.rng.u64(1_000..60_000),
            1..=4 => self.rng.u64(300..3_000),
            _ => self.rng.u64(40..300),
        }
    }

    fn arrives(&mut self, member: usize, number: u64, message: Message) {
        if self.members[member].link.number != number || !self.follows(member) {
            return;
        }
        if self.is_cut(member) || !self.members[member].link.held.is_empty() {
            return self.members[member].link.held.push(message);
        }
        self.take(member, message);
    }

    fn take(&mut self, member: usize, message: Message) {
        match message {
            Message::Up(message) => self.at_leader(member, message),
            Message::Down(message) => self.at_member(member, message),
        }
    }

    /// Delivers the messages of the links that are no longer cut.
    pub(super) fn flow(&mut self) {
        for member in 0..MEMBERS {
            if self.is_cut(member) {
                continue;
            }
            for message in std::mem::take(&mut self.members[member].link.held) {
                if self.follows(member) {
                    self.take(member, message);
                }
            }
        }
    }

    /// Cuts a member off from the others for a while.
    pub(in super::super) fn cut(&mut self, now_us: u64, member: usize, for_us: u64) -> Outcome {
        self.now_us = now_us;
        let until = now_us + for_us;
        let link = &mut self.members[member].link;
        link.cut_until_us = until.max(link.cut_until_us);
        self.out.later.push((until, Step::Flow));
        self.done()
    }

    /// Makes a member lag behind the leader for a while.
    pub(in super::super) fn lag(&mut self, now_us: u64, member: usize, for_us: u64, most_us: u64) {
        self.members[member].link.lag = (now_us + for_us, most_us);
    }

    /// Ends every cut and lag.
    pub(super) fn mend_links(&mut self) {
        for member in &mut self.members {
            (member.link.cut_until_us, member.link.lag) = (0, (0, 0));
            (member.link.up_us, member.link.down_us) = (self.now_us, self.now_us);
        }
        self.flow();
    }
}
