use proptest::prelude::{Just, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::test_server::unknown;
use super::*;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::txn::{Op, Seat};
use crate::zookeeper::ZooKeeper;

const UUID: u128 = 5;
const SESSION: i64 = 7;
/// Later than the end of every rest.
const LATER: Millis = Millis(60_000);

fn campaign(strategy: Strategy) -> Campaign {
    Campaign::new(Campaigner {
        strategy,
        node: NodeId::new("a").unwrap(),
        session: SESSION,
        uuid: Uuid::from_u128(UUID),
        number: 1,
    })
}

fn child(uuid: u128, sequence: u32) -> String {
    format!("{}-n-{sequence:010}", Uuid::from_u128(uuid).hyphenated())
}

fn listed(names: &[(u128, u32)]) -> Reply {
    Reply::Listed(Outcome::Applied(names.iter().map(|(uuid, n)| child(*uuid, *n)).collect()))
}

fn rejected<T>(reason: Reason) -> Outcome<T> {
    Outcome::Rejected(Rejection { at: 0, reason })
}

/// A campaign with the effects of its last event.
struct Run {
    campaign: Campaign,
    effects: Vec<Effect>,
}

impl Run {
    fn new(strategy: Strategy) -> Self {
        Self { campaign: campaign(strategy), effects: Vec::new() }
    }

    fn on(mut self, event: Event) -> Self {
        self.effects.clear();
        let now = if event == Event::Tick { LATER } else { Millis(0) };
        self.campaign.handle(now, event, &mut self.effects);
        self
    }

    /// Answers the awaited request.
    fn answer(self, reply: Reply) -> Self {
        let ticket = self.campaign.awaited().expect("a request is awaited");
        self.on(Event::Reply(ticket, reply))
    }

    /// `state: effect, effect`
    fn seen(&self) -> String {
        let effects: Vec<_> = self.effects.iter().map(word).collect();
        format!("{}: {}", name(&self.campaign.state), effects.join(", "))
    }
}

fn name(state: &State) -> &'static str {
    match state {
        State::Offline => "offline",
        State::Resting { .. } => "resting",
        State::Looking { .. } => "looking",
        State::Creating { .. } => "creating",
        State::Repairing { .. } => "repairing",
        State::Deleting { .. } => "deleting",
        State::Standby { .. } => "standby",
        State::First { .. } => "first",
        State::Left => "left",
    }
}

fn word(effect: &Effect) -> String {
    let short = |path: &str| path.rsplit("-n-").next().unwrap_or_default().to_owned();
    match effect {
        Effect::Send(_, Request::CreateParent { path }) => format!("create parent {path}"),
        Effect::Send(_, Request::CreateSequential { .. }) => "create sequential".into(),
        Effect::Send(_, Request::CreateEphemeral { path, .. }) => format!("create {path}"),
        Effect::Send(_, Request::List { .. }) => "list".into(),
        Effect::Send(_, Request::Owner) => "owner".into(),
        Effect::Send(_, Request::Watch { path, .. }) => format!("watch {}", short(path)),
        Effect::Send(_, Request::Delete { fence: None, path }) => format!("delete {}", short(path)),
        Effect::Send(_, Request::Delete { fence: Some(Op::Check { version, .. }), path }) => {
            format!("delete {path} if nobody has claimed since {version}")
        }
        Effect::Send(_, Request::Delete { fence: Some(_), path }) => {
            format!("delete {path} if nobody has claimed")
        }
        Effect::Candidacy(Candidacy::Running) => "running".into(),
        Effect::Candidacy(Candidacy::Behind { next: None }) => "behind".into(),
        Effect::Candidacy(Candidacy::Behind { next: Some(Seat::Queued { silent, .. }) }) => {
            let silent = silent.iter().map(|path| short(path)).collect::<Vec<_>>();
            format!("may replace {}", silent.join(" and "))
        }
        Effect::Candidacy(Candidacy::Behind { next: Some(_) }) => "may replace".into(),
        Effect::Candidacy(Candidacy::First { .. }) => "is first".into(),
        Effect::Candidacy(Candidacy::Left) => "has left".into(),
        Effect::Refused(rejection) => format!("refused ({})", rejection.reason),
    }
}

/// The strategy `queue`, in the state of that name.
fn queue(state: &str) -> Run {
    let looking = || Run::new(Strategy::Queue).on(Event::Connected);
    let run = match state {
        "offline" => Run::new(Strategy::Queue),
        "looking" => looking(),
        "resting" => looking().answer(Reply::Listed(Outcome::Unknown)),
        "creating" => looking().answer(listed(&[])),
        "repairing" => looking().answer(listed(&[])).answer(Reply::Created(rejected(Reason::NoNode))),
        "deleting" => looking().answer(listed(&[(UUID, 1), (UUID, 2)])),
        "standby" => looking().answer(listed(&[(9, 1), (UUID, 2)])),
        "first" => looking().answer(listed(&[(UUID, 1)])),
        "left" => looking().on(Event::Leave).answer(listed(&[])),
        other => panic!("unknown state {other}"),
    };
    assert_eq!(name(&run.campaign.state), state);
    run
}

const STATES: [&str; 9] =
    ["offline", "resting", "looking", "creating", "repairing", "deleting", "standby", "first", "left"];

/// The module's table, row by row.
#[test]
fn every_state_answers_every_event() {
    let stale = Ticket { campaign: 0, request: 1 };
    let events = [
        Event::Connected,
        Event::Disconnected,
        Event::Tick,
        Event::Look,
        Event::Again,
        Event::Leave,
        Event::Reply(stale, Reply::Changed),
    ];
    #[rustfmt::skip]
    let table = [
        //            Connected        Disconnected  Tick             Look             Again         Leave            stale reply
        ["offline",   "looking: list", "offline: ",  "offline: ",     "offline: ",     "offline: ",  "offline: ",     "offline: "],
        ["resting",   "looking: list", "offline: ",  "looking: list", "looking: list", "resting: ",  "looking: list", "resting: "],
        ["looking",   "looking: ",     "offline: ",  "looking: ",     "looking: ",     "looking: ",  "looking: ",     "looking: "],
        ["creating",  "creating: ",    "offline: ",  "creating: ",    "creating: ",    "creating: ", "creating: ",    "creating: "],
        ["repairing", "repairing: ",   "offline: ",  "repairing: ",   "repairing: ",   "repairing: ","repairing: ",   "repairing: "],
        ["deleting",  "deleting: ",    "offline: ",  "deleting: ",    "deleting: ",    "deleting: ", "deleting: ",    "deleting: "],
        ["standby",   "looking: list", "offline: ",  "looking: list", "looking: list", "resting: ",  "looking: list", "standby: "],
        ["first",     "looking: list", "offline: ",  "first: ",       "looking: list", "resting: ",  "looking: list", "first: "],
        ["left",      "left: ",        "left: ",     "left: ",        "left: ",        "left: ",     "left: ",        "left: "],
    ];
    assert_eq!(table.map(|row| row[0]), STATES);
    for row in table {
        for (event, expected) in events.iter().zip(&row[1..]) {
            assert_eq!(queue(row[0]).on(event.clone()).seen(), *expected, "{} on {event:?}", row[0]);
        }
    }
}

#[test]
fn every_reply_leads_to_its_next_step() {
    let other = || Reason::Other("x".into());
    let refused = "resting: refused (ZooKeeper refused it: x)";
    let table = [
        ("looking", listed(&[]), "creating: running, create sequential"),
        ("looking", listed(&[(UUID, 4)]), "first: watch 0000000004, is first"),
        (
            "looking",
            listed(&[(9, 3), (8, 1), (UUID, 4)]),
            "standby: watch 0000000003, watch 0000000001, may replace 0000000001 and 0000000003",
        ),
        (
            "looking",
            listed(&[(9, 3), (8, 1), (UUID, 4), (7, 2)]),
            "standby: watch 0000000003, watch 0000000002, watch 0000000001, behind",
        ),
        ("looking", listed(&[(UUID, 4), (9, 5), (UUID, 6)]), "deleting: delete 0000000006"),
        ("looking", Reply::Listed(rejected(Reason::NoNode)), "creating: running, create sequential"),
        ("looking", Reply::Listed(rejected(other())), refused),
        ("looking", Reply::Listed(Outcome::Unknown), "resting: "),
        ("creating", Reply::Created(Outcome::Applied(())), "looking: list"),
        ("creating", Reply::Created(Outcome::Unknown), "looking: list"),
        ("creating", Reply::Created(rejected(Reason::NodeExists)), "looking: list"),
        ("creating", Reply::Created(rejected(Reason::NoNode)), "repairing: create parent /election"),
        ("creating", Reply::Created(rejected(other())), refused),
        ("repairing", Reply::Created(Outcome::Applied(())), "looking: list"),
        ("repairing", Reply::Created(Outcome::Unknown), "looking: list"),
        ("repairing", Reply::Created(rejected(Reason::NodeExists)), "looking: list"),
        ("repairing", Reply::Created(rejected(Reason::NoNode)), "resting: refused (no such znode)"),
        ("deleting", Reply::Deleted(Outcome::Applied(())), "looking: list"),
        ("deleting", Reply::Deleted(Outcome::Unknown), "looking: list"),
        ("deleting", Reply::Deleted(rejected(Reason::NoNode)), "looking: list"),
        ("deleting", Reply::Deleted(rejected(Reason::BadVersion)), "looking: list"),
        ("deleting", Reply::Deleted(rejected(Reason::NodeExists)), "looking: list"),
        ("deleting", Reply::Deleted(rejected(other())), refused),
        ("standby", Reply::Watched(Outcome::Applied(true)), "standby: "),
        ("standby", Reply::Watched(Outcome::Applied(false)), "looking: list"),
        ("standby", Reply::Watched(Outcome::Unknown), "resting: "),
        ("standby", Reply::Watched(rejected(other())), refused),
        ("standby", Reply::Changed, "looking: list"),
        ("first", Reply::Watched(Outcome::Applied(true)), "first: "),
        ("first", Reply::Watched(Outcome::Applied(false)), "looking: list"),
        ("first", Reply::Watched(Outcome::Unknown), "resting: "),
        ("first", Reply::Changed, "looking: list"),
    ];
    for (state, reply, expected) in table {
        assert_eq!(queue(state).answer(reply.clone()).seen(), expected, "{state} on {reply:?}");
    }
}

#[test]
fn the_single_strategy_decides_by_the_owner_of_the_znode() {
    let looking = || Run::new(Strategy::Single).on(Event::Connected);
    let owner = |owner| Reply::Owner(Outcome::Applied(Ownership { owner, leading: Some(7) }));
    let unclaimed = Reply::Owner(Outcome::Applied(Ownership { owner: Some(SESSION), leading: None }));
    assert_eq!(looking().seen(), "looking: owner");
    let table = [
        (Event::Look, owner(None), "creating: running, create /leader"),
        (Event::Look, owner(Some(SESSION)), "first: watch /leader, is first"),
        (Event::Look, owner(Some(8)), "standby: watch /leader, may replace"),
        (Event::Look, owner(Some(0)), "standby: watch /leader, may replace"),
        (Event::Look, Reply::Owner(Outcome::Unknown), "resting: "),
        (Event::Leave, owner(None), "left: has left"),
        (Event::Leave, owner(Some(SESSION)), "deleting: delete /leader if nobody has claimed since 7"),
        (Event::Leave, unclaimed, "deleting: delete /leader if nobody has claimed"),
        (Event::Leave, owner(Some(8)), "left: has left"),
    ];
    for (event, reply, expected) in table {
        let seen = looking().on(event.clone()).answer(reply.clone()).seen();
        assert_eq!(seen, expected, "{event:?}, {reply:?}");
    }
    let lost = looking().answer(owner(None)).answer(Reply::Created(rejected(Reason::NodeExists)));
    assert_eq!(lost.seen(), "looking: owner");
    let no_root = looking().answer(owner(None)).answer(Reply::Created(rejected(Reason::NoNode)));
    assert_eq!(no_root.seen(), "resting: refused (no such znode)");
}

/// Of 40 candidates, the end of one wakes three others, however many wait.
#[test]
fn each_candidate_watches_its_three_nearest_predecessors() {
    let everyone: Vec<_> = (0..40).map(|n| (u128::from(n) + 1, n)).collect();
    let watches_of = |uuid: u128| {
        let mut run = Run::new(Strategy::Queue);
        run.campaign.who.uuid = Uuid::from_u128(uuid);
        let run = run.on(Event::Connected).answer(listed(&everyone));
        run.effects.iter().map(word).filter(|word| word.starts_with("watch")).collect::<Vec<_>>()
    };
    assert_eq!(watches_of(1), ["watch 0000000000"], "its own");
    assert_eq!(watches_of(2), ["watch 0000000000"]);
    assert_eq!(watches_of(3), ["watch 0000000001", "watch 0000000000"]);
    for (uuid, n) in &everyone[3..] {
        assert_eq!(watches_of(*uuid), [n - 1, n - 2, n - 3].map(|n| format!("watch {n:010}")));
    }
}

/// The second candidate may claim. So the third one must learn that it became second while its predecessor exists.
#[test]
fn a_third_candidate_becomes_second_when_the_first_one_ends() {
    let run = queue("looking").answer(listed(&[(8, 1), (9, 2), (UUID, 3)]));
    let expected = "standby: watch 0000000002, watch 0000000001, may replace 0000000001 and 0000000002";
    assert_eq!(run.seen(), expected);
    // Both watches are set; then the second one fires.
    let run =
        run.answer(Reply::Watched(Outcome::Applied(true))).answer(Reply::Watched(Outcome::Applied(true)));
    let run = run.answer(Reply::Changed);
    assert_eq!(run.seen(), "looking: list");
    let run = run.answer(listed(&[(9, 2), (UUID, 3)]));
    assert_eq!(run.seen(), "standby: watch 0000000002, may replace 0000000002");
}

/// The third candidate may claim, too. Found by chaos: the fourth one did not read beats for up to 15 s.
#[test]
fn a_fourth_candidate_becomes_third_when_the_first_one_ends() {
    let run = queue("looking").answer(listed(&[(7, 1), (8, 2), (9, 3), (UUID, 4)]));
    let watches = "watch 0000000003, watch 0000000002, watch 0000000001";
    assert_eq!(run.seen(), format!("standby: {watches}, behind"));
    let set = || Reply::Watched(Outcome::Applied(true));
    let run = run.answer(set()).answer(set()).answer(set()).answer(Reply::Changed);
    assert_eq!(run.seen(), "looking: list");
    let run = run.answer(listed(&[(8, 2), (9, 3), (UUID, 4)]));
    let replaced = "may replace 0000000002 and 0000000003";
    assert_eq!(run.seen(), format!("standby: watch 0000000003, watch 0000000002, {replaced}"));
}

/// One of the two predecessors may be deleted before its watch is set.
#[test]
fn one_absent_predecessor_of_two_causes_a_look() {
    let run = || queue("looking").answer(listed(&[(8, 1), (9, 2), (UUID, 3)]));
    let set = || Reply::Watched(Outcome::Applied(true));
    let absent = || Reply::Watched(Outcome::Applied(false));
    assert_eq!(run().answer(absent()).seen(), "looking: list");
    assert_eq!(run().answer(set()).answer(absent()).seen(), "looking: list");
}

#[test]
fn leaving_ends_only_when_a_look_finds_no_candidate() {
    let run = queue("first").on(Event::Leave).answer(listed(&[(UUID, 1), (UUID, 2)]));
    assert_eq!(run.seen(), "deleting: delete 0000000002");
    let run = run.answer(Reply::Deleted(Outcome::Unknown)).answer(listed(&[(UUID, 1)]));
    assert_eq!(run.seen(), "deleting: delete 0000000001");
    let run = run.on(Event::Disconnected).on(Event::Connected).answer(listed(&[(UUID, 1)]));
    assert_eq!(run.seen(), "deleting: delete 0000000001");
    let run = run.answer(Reply::Deleted(Outcome::Applied(()))).answer(listed(&[]));
    assert_eq!(run.seen(), "left: has left");
}

#[test]
fn leaving_waits_for_the_create_in_flight() {
    let run = queue("creating").on(Event::Leave);
    assert_eq!(run.seen(), "creating: ");
    let run = run.answer(Reply::Created(Outcome::Applied(()))).answer(listed(&[(UUID, 1)]));
    assert_eq!(run.seen(), "deleting: delete 0000000001");
}

#[test]
fn a_candidate_with_a_lost_watch_looks_again_and_stays_standby() {
    let run = queue("standby");
    assert_eq!(run.campaign.next_wake(), Some(Millis(0) + SWEEP));
    let run = run.on(Event::Tick);
    assert_eq!(run.seen(), "looking: list");
    assert_eq!(
        run.answer(listed(&[(8, 1), (UUID, 2)])).seen(),
        "standby: watch 0000000001, may replace 0000000001"
    );
}

#[test]
fn the_delay_after_unknown_outcomes_grows_until_an_answer_resets_it() {
    let mut run = Run::new(Strategy::Queue).on(Event::Connected);
    let mut delays = Vec::new();
    for _ in 0..8 {
        run = run.answer(Reply::Listed(Outcome::Unknown));
        delays.push(run.campaign.next_wake().unwrap().0);
        run = run.on(Event::Tick);
    }
    assert!(delays[0] <= 100 && delays[7] >= 1_000 && delays[7] <= 2_000, "{delays:?}");
    let run = run.answer(listed(&[(UUID, 1)])).on(Event::Again);
    assert!(run.campaign.next_wake().unwrap().0 <= 100);
}

/// The fate of a request and its reply.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Answered,
    AppliedReplyLost,
    LostBeforeApplied,
    /// Applied by the old connection after the client saw it break, before any request of the new one.
    AppliedLate,
    /// The operator deletes one of the candidate's znodes first.
    Vandalised,
}

fn fate() -> impl proptest::strategy::Strategy<Value = (Fate, bool)> {
    let fate = prop_oneof![
        4 => Just(Fate::Answered),
        1 => Just(Fate::AppliedReplyLost),
        1 => Just(Fate::LostBeforeApplied),
        1 => Just(Fate::AppliedLate),
        1 => Just(Fate::Vandalised),
    ];
    (fate, prop::bool::weighted(0.3))
}

proptest! {
    /// Whatever is lost or late: at most one request is outstanding in addition to a watch. Once the network behaves
    /// there is exactly one candidate of this node, or none after it leaves.
    #[test]
    fn no_candidate_is_leaked(fates in prop::collection::vec(fate(), 0..60), leave: bool) {
        let mut zookeeper = ZooKeeper::new();
        let session = zookeeper.session(LATER.since(Millis(0)));
        zookeeper.put(&format!("{}/{}", path::ELECTION, child(99, 0)), Vec::new(), 0);
        let apply = |zookeeper: &mut ZooKeeper, request: &Request| test_server::answer(zookeeper, session, request);
        let ours = |zookeeper: &ZooKeeper| {
            let ours = zookeeper.znodes().iter().filter(|(_, znode)| znode.owner == session);
            ours.map(|(path, _)| path.clone()).collect::<Vec<_>>()
        };
        let mut run = Run::new(Strategy::Queue).on(Event::Connected);
        let mut fates = fates.into_iter();
        let mut calm = 0;
        while calm < 40 {
            let (fate, disconnects) = fates.next().unwrap_or_else(|| { calm += 1; (Fate::Answered, false) });
            if calm == 1 && leave {
                let under_way = run.effects.clone();
                run = run.on(Event::Leave);
                run.effects.splice(0..0, under_way);
            }
            let sent: Vec<_> = run.effects.iter().filter_map(|effect| match effect {
                Effect::Send(ticket, request) => Some((*ticket, request.clone())),
                Effect::Candidacy(_) | Effect::Refused(_) => None,
            }).collect();
            let unanswered = sent.iter().filter(|(_, request)| !matches!(request, Request::Watch { .. }));
            prop_assert!(unanswered.count() <= 1);
            let Some((ticket, request)) = sent.into_iter().next_back() else {
                run = run.on(if calm % 2 == 0 { Event::Tick } else { Event::Look });
                continue;
            };
            let mut late = None;
            let reply = match fate {
                Fate::Answered => apply(&mut zookeeper, &request),
                Fate::AppliedReplyLost => { apply(&mut zookeeper, &request); unknown(&request) }
                Fate::LostBeforeApplied => unknown(&request),
                Fate::AppliedLate => { late = Some(request.clone()); unknown(&request) }
                Fate::Vandalised => {
                    ours(&zookeeper).last().iter().for_each(|path| zookeeper.remove(path));
                    apply(&mut zookeeper, &request)
                }
            };
            if disconnects {
                run = run.on(Event::Disconnected);
                let before = run.seen();
                run = run.on(Event::Reply(ticket, reply));
                prop_assert_eq!(run.seen(), before, "an outdated reply is ignored");
                late.iter().for_each(|late| { apply(&mut zookeeper, late); });
                run = run.on(Event::Connected);
            } else {
                run = run.on(Event::Reply(ticket, reply));
                // The next request of the session is a look or a rest. The late request is applied at any time before
                // the request after it; here, after the look was answered.
                if let Some(late) = late {
                    if let Some(Effect::Send(ticket, look)) = run.effects.first().cloned() {
                        let seen = apply(&mut zookeeper, &look);
                        apply(&mut zookeeper, &late);
                        run = run.on(Event::Reply(ticket, seen));
                    } else {
                        apply(&mut zookeeper, &late);
                    }
                }
            }
        }
        let left = ours(&zookeeper);
        prop_assert_eq!(left.len(), usize::from(!leave), "{:?}", left);
        prop_assert_eq!(run.campaign.state == State::Left, leave);
    }
}

#[test]
fn a_strategy_is_printed_as_an_operator_gives_it() {
    assert_eq!([Strategy::Queue, Strategy::Single].map(|it| it.to_string()), ["queue", "single"]);
}
