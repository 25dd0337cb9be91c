//! The election: takes part in it with one candidate, as the machine [`Leadership`] decides.
//!
//! ```text
//!  session ──events──▶ election ──state──▶ leader wing, public API
//!                       │    ▲
//!               requests│    │replies, with their ticket
//!                       ▼    │
//!                      ZooKeeper
//! ```
//!
//! A node whose clock and ZooKeeper's disagree stays out of the election, as if it was asked to step down, until they agree.
//!
//! This concern does not answer whether the node may act *now*. Its host compares the clock with the time in
//! [`Tell::Standing`], so the answer is right even when the actor or the process was suspended.

mod requests;

use std::time::Duration;

use bellwether_core::machine::election::campaign::{Ticket, WatchTarget};
use bellwether_core::machine::election::leadership::{
    Config, Effect, Event, Inactive, Leadership, LeadershipState, Reply, Why,
};
use bellwether_core::name::NodeId;
use bellwether_core::time::Millis;

use crate::session::{Made, SessionEvent};
use crate::{Concern, Context, Trust};

/// The watches and the timer of the election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A watch of the campaign.
    Candidate(WatchTarget),
    /// The next candidate's watch on the beats of the leader.
    Beats,
    /// The next time that the machine waits for.
    Wake,
}

/// One node's part in the election.
pub struct Election {
    node: NodeId,
    machine: Leadership,
    session: Option<Made>,
    /// The current or last session; 0 before the first.
    last: i64,
    wake: Option<Millis>,
    standing: Option<(LeadershipState, Option<Millis>)>,
    /// The callers that wait for the deletion of the candidate.
    leavers: Vec<u64>,
    /// Why the node stays out of the election.
    out: Out,
}

/// The reasons for which a node stays out of the election. It takes part when there is none.
#[derive(Debug, Clone, Copy, Default)]
struct Out {
    /// It was asked to step down.
    asked: bool,
    /// Its clock and ZooKeeper's disagree.
    clock: bool,
}

/// Messages to the election.
pub enum ElectionMsg {
    /// From the session supervisor.
    Session(SessionEvent),
    /// Take part in the election.
    Stand,
    /// Give up leadership and candidacy. [`Tell::Left`] with this number follows when the candidate no longer exists.
    StepDown(u64),
    /// A write of this epoch was rejected by its fence.
    FencedOut(i32),
    /// The reply to a request.
    Reply(Ticket, Reply),
    /// The machine's time has come.
    Tick,
}

kinds!(ElectionMsg { Session => SessionEvent, Stand, StepDown, FencedOut, Reply => Reply, Tick });

/// Messages of the election to its neighbours.
pub enum Tell {
    /// The state, and the time until which this node may act as the leader. Sent when one of them changes.
    Standing {
        /// The current or last session; 0 before the first.
        session: i64,
        /// The state of its leadership.
        state: LeadershipState,
        /// The time until which it may act; `None` when it may not.
        may_act_until: Option<Millis>,
    },
    /// The state changed: to the leader wing and to subscribers.
    State(LeadershipState),
    /// The candidate no longer exists.
    Left(u64),
}

impl Concern for Election {
    const NAME: &'static str = "election";
    type Msg = ElectionMsg;
    type Args = Config;
    type Key = Key;
    type Tell = Tell;

    fn start(_: &mut Context<'_, Self>, config: Config) -> Self {
        let node = config.node.clone();
        let machine = Leadership::new(config);
        Self {
            node,
            machine,
            session: None,
            last: 0,
            wake: None,
            standing: None,
            leavers: Vec::new(),
            out: Out::default(),
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: ElectionMsg) {
        self.trust(cx);
        match msg {
            ElectionMsg::Session(event) => self.session(cx, event),
            ElectionMsg::Stand => self.stay_out(cx, Out { asked: false, ..self.out }),
            ElectionMsg::StepDown(caller) => {
                self.leavers.push(caller);
                self.stay_out(cx, Out { asked: true, ..self.out });
            }
            ElectionMsg::FencedOut(epoch) => self.feed(cx, Event::FencedOut { epoch }),
            ElectionMsg::Reply(ticket, reply) => self.feed(cx, Event::Reply(ticket, reply)),
            ElectionMsg::Tick => {
                self.wake = None;
                self.feed(cx, Event::Tick);
            }
        }
        self.arm(cx);
    }
}

impl Election {
    fn stay_out(&mut self, cx: &mut Context<'_, Self>, out: Out) {
        self.out = out;
        self.feed(cx, if out.asked || out.clock { Event::StepDown } else { Event::Stand });
    }

    fn session(&mut self, cx: &mut Context<'_, Self>, event: SessionEvent) {
        if let SessionEvent::Connected { session, timeout, failover } = event {
            (self.session, self.last) = (Some(Made { session, timeout, failover, clock: None }), session);
        }
        // The clocks are compared before the session is announced.
        if let SessionEvent::Clock { agrees } = event {
            return self.stay_out(cx, Out { clock: !agrees, ..self.out });
        }
        // Events of a session before its `Connected` are ignored.
        let Some(Made { session, timeout, failover, .. }) = self.session else { return };
        match event {
            SessionEvent::Connected { .. } | SessionEvent::Reconnected => {
                self.feed(cx, Event::Connected { session, timeout, failover });
            }
            SessionEvent::Disconnected => self.feed(cx, Event::Disconnected { session }),
            SessionEvent::Expired => {
                self.session = None;
                for target in [WatchTarget::Own].into_iter().chain(WatchTarget::PREDECESSORS) {
                    cx.unwatch(Key::Candidate(target));
                }
                cx.unwatch(Key::Beats);
                self.feed(cx, Event::Expired { session });
            }
            SessionEvent::Clock { .. } => {}
        }
    }

    /// Passes the session's trust on, the only source of the term's trust.
    fn trust(&mut self, cx: &mut Context<'_, Self>) {
        let trust = cx.trust.filter(|trust| self.session.is_some_and(|made| made.session == trust.session));
        if let Some(Trust { session, until }) = trust {
            self.feed(cx, Event::Trust { session, until });
        }
    }

    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.now, event, &mut effects);
        let standing = (self.machine.state(), self.machine.may_act_until());
        if self.standing.as_ref() != Some(&standing) {
            let (state, may_act_until) = standing.clone();
            self.standing = Some(standing);
            cx.tell(Tell::Standing { session: self.last, state, may_act_until });
        }
        for effect in effects {
            match effect {
                Effect::Send(ticket, request) => requests::send(cx, &self.node, ticket, request),
                Effect::Tell(state) => {
                    note(&self.node, &state);
                    cx.tell(Tell::State(state));
                }
                Effect::Lost { epoch, why: why @ Why::SteppedDown } => {
                    tracing::info!(node = %self.node, epoch, reason = why.as_str(), "the node gave up leadership");
                }
                Effect::Lost { epoch, why } => {
                    tracing::warn!(node = %self.node, epoch, reason = why.as_str(), "the node lost leadership");
                }
                Effect::Refused(rejection) => {
                    tracing::warn!(node = %self.node, %rejection, "ZooKeeper refused a step of the election: the node retries it");
                }
                Effect::EpochsUsedUp => {
                    tracing::error!("no epoch is left in this namespace: it cannot have another leader");
                }
            }
        }
        if self.machine.state() != LeadershipState::Inactive(Inactive::Leaving) {
            self.leavers.drain(..).for_each(|caller| cx.tell(Tell::Left(caller)));
        }
    }

    /// Sets the timer to the next time that the machine waits for, or to the next look at the session's trust.
    fn arm(&mut self, cx: &mut Context<'_, Self>) {
        let look = self.machine.trusted_until().and_then(|until| next_look(cx.now, until));
        let wake = self.machine.next_wake().into_iter().chain(look).min();
        if self.wake == wake {
            return;
        }
        self.wake = wake;
        match wake {
            // One more millisecond, because the clock counts whole milliseconds and must not wake too early.
            Some(at) => cx.after(Key::Wake, at.since(cx.now) + Duration::from_millis(1), ElectionMsg::Tick),
            None => cx.disarm(Key::Wake),
        }
    }
}

/// Returns when to look whether the session is trusted for longer: halfway to the end of the known trust.
///
/// The session supervisor extends the trust at every heartbeat, but the election learns of it only when it handles a message. If
/// it woke at the end of the known trust, the permission to act would lapse for a moment whenever the trust is shorter than
/// the time between two beats, and after each lapse the leader reads everything again.
fn next_look(now: Millis, until: Millis) -> Option<Millis> {
    /// A look that is closer is left to the end of the trust.
    const CLOSEST: Duration = Duration::from_millis(20);
    let half = until.since(now) / 2;
    (half >= CLOSEST).then(|| now + half)
}

fn note(node: &NodeId, state: &LeadershipState) {
    match state {
        LeadershipState::Active(term) => {
            tracing::info!(%node, epoch = term.epoch(), "the node became leader")
        }
        LeadershipState::Inactive(inactive) => {
            tracing::debug!(%node, ?inactive, "the node is not the leader")
        }
        // The loss is logged with the reason.
        LeadershipState::Paused { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::machine::election::campaign::Strategy;
    use bellwether_core::machine::election::leadership::Policy;
    use uuid::Uuid;

    use super::*;
    use crate::Out as Output;
    use crate::stage::Stage;

    fn connected() -> SessionEvent {
        let failover = bellwether_core::failover::Failover::default();
        SessionEvent::Connected { session: 1, timeout: Duration::from_secs(10), failover }
    }

    fn stage() -> Stage<Election> {
        Stage::start(Config {
            node: NodeId::new("n").expect("a name"),
            strategy: Strategy::default(),
            policy: Policy::default(),
            identity: Uuid::from_u128(1),
            seed: Uuid::from_u128(2),
        })
        .0
    }

    /// The names of the states that were reported.
    fn states(out: &[Output<Election>]) -> Vec<LeadershipState> {
        let state = |out: &Output<Election>| match out {
            Output::Tell(Tell::State(state)) => Some(state.clone()),
            _ => None,
        };
        out.iter().filter_map(state).collect()
    }

    fn clock(agrees: bool) -> ElectionMsg {
        ElectionMsg::Session(SessionEvent::Clock { agrees })
    }

    #[test]
    fn the_trust_is_checked_a_limited_number_of_times_before_it_ends() {
        let until = Millis(10_000);
        let mut looks = Vec::new();
        let mut now = Millis(6_000);
        while let Some(look) = next_look(now, until) {
            assert!(now < look && look < until);
            looks.push(look);
            now = look;
        }
        assert_eq!(looks.first(), Some(&Millis(8_000)));
        assert_eq!(looks.len(), 7, "{looks:?}");
        assert_eq!(next_look(until, until), None);
        assert_eq!(next_look(Millis(11_000), until), None);
    }

    #[test]
    fn a_node_whose_clock_is_wrong_is_no_candidate_until_the_clocks_agree() {
        let mut stage = stage();
        stage.handle(clock(false));
        assert_eq!(states(&stage.handle(ElectionMsg::Session(connected()))), []);
        let out = stage.handle(clock(true));
        assert_eq!(states(&out), [LeadershipState::Inactive(Inactive::Campaigning)]);
        let out = stage.handle(clock(false));
        assert_eq!(states(&out), [LeadershipState::Inactive(Inactive::Leaving)]);
    }

    #[test]
    fn each_of_two_reasons_keeps_a_node_out() {
        let mut stage = stage();
        stage.handle(ElectionMsg::Session(connected()));
        stage.handle(ElectionMsg::Session(SessionEvent::Expired));
        stage.handle(ElectionMsg::StepDown(1));
        stage.handle(clock(false));
        stage.handle(ElectionMsg::Session(connected()));
        assert_eq!(states(&stage.handle(clock(true))), [], "it was asked to step down");
        stage.handle(clock(false));
        assert_eq!(states(&stage.handle(ElectionMsg::Stand)), [], "its clock is wrong");
        assert_eq!(states(&stage.handle(clock(true))).len(), 1);
    }
}
