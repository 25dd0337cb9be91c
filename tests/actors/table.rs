//! The pairs of actor and message kind, and the situation in which each is tested.

use std::collections::{BTreeMap, BTreeSet};

use bellwether::testing::actors::{Kind, roster};

use crate::situations::SITUATIONS;

/// The kinds that are never sent, with the reason.
pub(crate) const NEVER: &[(&str, &str, &str)] = &[
    ("election", "Session.Clock", "the clock of the test's machine is right"),
    ("session", "Reported", "the clock of the test's machine is right: the session's unit tests deliver it"),
    ("worker_wing", "Session.Clock", "the clock of the test's machine is right"),
    ("worker_wing", "NotServed", "no job is assigned under earlier settings: core and the simulator test it"),
    (
        "worker_wing",
        "TookOver",
        "no node of these tests takes attempts over: the wing's unit tests deliver it",
    ),
    ("executor_pool", "Tell.Settings", "ExecutorPoolMsg::Settings delivers it"),
    ("executor_pool", "Tell.SlotGranted", "ExecutorPoolMsg::Slot delivers it, or the actor itself"),
    ("executor_pool", "Tell.Ended", "ExecutorPoolMsg::Ended delivers it"),
    ("executor_pool", "Tell.Abandoned", "the actor itself counts"),
    ("status_reporter", "Tell.Report", "StatusReporterMsg::Report delivers it"),
    ("status_reporter", "Beat.Started", "StatusReporterMsg::Started delivers it"),
    ("status_reporter", "Beat.Requested", "StatusReporterMsg::Said delivers it"),
    ("status_reporter", "Beat.Finished", "StatusReporterMsg::Report delivers it"),
    ("status_reporter", "Beat.Hold", "Tell.Hold delivers it"),
    ("status_reporter", "Beat.Resume", "Tell.Resume delivers it"),
    ("assigner", "Event.Beyond", "the leader knows all jobs of these tests: core tests its window"),
    ("assigner", "Event.InboxChanged", "AssignerMsg::Feed delivers it"),
    ("assigner", "Event.InboxRead", "AssignerMsg::InboxRead delivers it"),
    ("assigner", "Event.Inbox", "AssignerMsg::Inbox delivers it"),
    ("assigner", "Event.InboxRefused", "AssignerMsg::InboxRead and Inbox deliver it"),
    ("assigner", "Event.Committed", "AssignerMsg::Committed delivers it"),
    ("assigner", "Event.Resolved", "AssignerMsg::Resolved delivers it"),
    ("assigner", "Event.LanesWatched", "AssignerMsg::Lanes delivers it"),
    ("assigner", "Event.TurnGone", "AssignerMsg::Lanes delivers it"),
    ("assigner", "Event.LanesListed", "AssignerMsg::LanesListed delivers it"),
    ("assigner", "Event.TurnsRead", "AssignerMsg::TurnsRead delivers it"),
    ("assigner", "Event.SettingsChanged", "AssignerMsg::Settings and Sweep deliver it"),
    ("assigner", "Event.Settings", "AssignerMsg::SettingsRead delivers it"),
    ("assigner", "Event.Tick", "AssignerMsg::Tick delivers it"),
    ("assigner", "Event.Relist", "AssignerMsg::Relist delivers it"),
    ("assigner", "Event.Resume", "AssignerMsg::Resume and others deliver it"),
    ("group_joiner", "Event.Seen", "GroupJoinerMsg::Listed delivers it"),
    ("group_joiner", "Event.Resync", "GroupJoinerMsg::Listed delivers it"),
    ("group_joiner", "Event.Changed", "GroupJoinerMsg::Feed delivers it"),
    ("group_joiner", "Event.Ended", "GroupJoinerMsg::Feed delivers it"),
    ("group_joiner", "Event.Gone", "GroupJoinerMsg::Feed delivers it"),
    ("worker_registry", "Recovery.Lost", "Feed and Workers deliver it"),
    ("worker_registry", "Recovery.Survived", "Workers delivers it"),
    ("worker_registry", "Recovery.Sweep", "the actor itself creates it for Sweep and Feed"),
];

/// An actor and some of its message kinds.
type KindsOf = (&'static str, &'static [&'static str]);

/// The pairs that are certain to occur in one situation only. In other situations they may occur by chance.
pub(crate) const ONLY_IN: &[(&str, &[KindsOf])] = &[
    (
        "sweeps",
        &[
            ("job_watcher", &["Sweep"]),
            ("promoter", &["Sweep", "Listed"]),
            ("group_joiner", &["Sweep"]),
            ("janitor", &["Sweep", "Tick", "Settings", "Counted", "Listed", "Read"]),
            ("schedule_keeper", &["Sweep"]),
            ("worker_registry", &["Sweep"]),
            ("lease_watcher", &["Sweep"]),
            ("assigner", &["Sweep", "Relist"]),
            ("expirer", &["Sweep"]),
            ("inbox_watcher", &["Again.Periodic"]),
        ],
    ),
    ("expires", &[("assigner", &["Tick"]), ("expirer", &["Overdue", "Read", "Committed"])]),
    ("pauses", &[("assigner", &["Settings.Changes"])]),
    ("cancels", &[("executor_pool", &["Tell.Cancel", "Tell.GraceOver"])]),
    ("ticks", &[("schedule_keeper", &["Tick", "Feed.Changes", "Read", "JobsRead", "Committed"])]),
    (
        "leases",
        &[
            // It takes longer than the time between two beats of the leader.
            ("election", &["Tick", "Reply.Beaten", "Reply.Changed"]),
            ("executor_pool", &["Tell.Third", "Tell.Lapsed"]),
            ("status_reporter", &["Said", "Beat.Committed", "Beat.Wake"]),
        ],
    ),
    (
        "taken",
        &[
            ("lease_watcher", &["Tick", "AssignmentsRead", "CasesRead", "Committed"]),
            ("assigner", &["Event.Hangs"]),
            ("status_reporter", &["Beat.Over"]),
            ("worker_wing", &["TakenForHung", "RegistrationUpdated"]),
        ],
    ),
    (
        "leaving",
        &[
            ("election", &["StepDown"]),
            ("worker_registry", &["Feed.Changes"]),
            ("assigner", &["Event.WorkerGone"]),
            ("worker_wing", &["Drain", "Idle", "Child.Terminated"]),
            ("inbox_watcher", &["Relist"]),
            ("executor_pool", &["Tell.Drain"]),
        ],
    ),
    ("drained_by_operator", &[("worker_wing", &["Feed.Changes"])]),
    ("drain_grace_exceeded", &[("worker_wing", &["Wake"]), ("executor_pool", &["Tell.Wake"])]),
    (
        "cut_off",
        &[
            ("session", &["State", "Granted"]),
            ("election", &["Session.Disconnected", "Session.Reconnected"]),
            ("job_watcher", &["Resume"]),
            ("promoter", &["Resume"]),
            ("group_joiner", &["Resume"]),
            ("janitor", &["Resume"]),
            ("schedule_keeper", &["Resume"]),
            ("worker_registry", &["Resume"]),
            ("lease_watcher", &["Resume"]),
            ("assigner", &["Resume"]),
            ("expirer", &["Resume"]),
            ("worker_wing", &["Session.Disconnected", "Session.Reconnected"]),
            ("inbox_watcher", &["Hold", "Resume"]),
            ("executor_pool", &["Tell.Hold", "Tell.Resume"]),
            ("status_reporter", &["Tell.Hold", "Tell.Resume"]),
        ],
    ),
    (
        "expiry",
        &[
            ("election", &["Session.Expired"]),
            ("worker_wing", &["Session.Expired"]),
            (
                "worker_registry",
                &["Recovery.Listed", "Recovery.Read", "Recovery.Committed", "Recovery.Removed"],
            ),
        ],
    ),
    ("unreachable", &[("session", &["Retry"])]),
    ("fenced_out", &[("election", &["FencedOut"]), ("leader_wing", &["FencedOut"])]),
    ("stands_again", &[("election", &["Stand"])]),
    ("backlog", &[("job_watcher", &["Sized"])]),
    ("closed_by_another", &[("inbox_watcher", &["Recheck"]), ("executor_pool", &["Tell.Zombie"])]),
    ("handed_back", &[("inbox_watcher", &["Refused"])]),
    ("packed", &[("executor_pool", &["Tell.HandBack"])]),
    ("silent_worker", &[("lease_watcher", &["SegmentRead"])]),
    ("lost_worker", &[("worker_registry", &["Recovery.SegmentRead"])]),
    ("quarantined_before", &[("inbox_watcher", &["SetAside"])]),
    ("inbox_removed", &[("worker_wing", &["InboxGone"])]),
    ("inbox_forbidden", &[("inbox_watcher", &["Again.Watch"])]),
    ("close_forbidden", &[("status_reporter", &["Tell.Wake"])]),
    ("slots_taken", &[("executor_pool", &["Slot", "Count"]), ("worker_wing", &["Usable"])]),
    ("lost_assignment", &[("assigner", &["Resolved"])]),
    ("lost_close", &[("status_reporter", &["Tell.Read", "Tell.ReadFailed"])]),
    ("lost_beat", &[("status_reporter", &["Beat.Read", "Beat.ReadFailed"])]),
    ("lost_look", &[("inbox_watcher", &["Unread"])]),
    ("session_panics", &[("node", &["Child.Failed"])]),
    ("session_is_killed", &[("node", &["Child.Terminated"])]),
    ("members_panic", &[("leader_wing", &["Child.Failed"]), ("worker_wing", &["Child.Failed"])]),
    ("members_are_killed", &[("leader_wing", &["Child.Terminated"])]),
    ("removes", &[("janitor", &["Committed", "Groups", "Names", "Segments", "Stats"])]),
    (
        "groups",
        &[(
            "group_joiner",
            &["Feed.Changes", "Event.Looked", "Event.Committed", "Event.Found", "Event.Cancelled"],
        )],
    ),
];

/// The pairs that occurred, each with the situations' indices and the numbers of messages.
pub(crate) type Met = BTreeMap<(&'static str, Kind), Vec<(usize, usize)>>;

/// All pairs, each with its situation: the one in [`ONLY_IN`], or else the first in which the pair occurred.
pub(crate) fn pairs(met: &Met) -> Vec<(&'static str, Kind, usize)> {
    let mut pairs = Vec::new();
    let mut wrong = Vec::new();
    let named = ONLY_IN.iter().flat_map(|(situation, actors)| {
        actors
            .iter()
            .flat_map(move |(actor, kinds)| kinds.iter().map(move |kind| (*actor, *kind, *situation)))
    });
    let named = named.collect::<Vec<_>>();
    let mut unknown = named.iter().map(|(actor, kind, _)| (*actor, *kind)).collect::<BTreeSet<_>>();
    unknown.extend(NEVER.iter().map(|(actor, kind, _)| (*actor, *kind)));
    for entry in roster() {
        for kind in entry.kinds {
            let (actor, name) = (entry.actor, kind.to_string());
            unknown.retain(|(of, kind)| (*of, *kind) != (actor, &name));
            let never = NEVER.iter().any(|(of, kind, _)| (*of, *kind) == (actor, &name));
            let named = named.iter().find(|(of, kind, _)| (*of, *kind) == (actor, &name));
            let in_any = met.get(&(actor, kind)).map_or(&[][..], Vec::as_slice);
            let in_this = in_any
                .iter()
                .find(|(situation, _)| named.is_none_or(|(.., name)| *name == SITUATIONS[*situation].name));
            match (in_this, never, named) {
                (Some((situation, _)), false, _) => pairs.push((actor, kind, *situation)),
                (None, false, Some((.., situation))) => {
                    wrong.push(format!("{actor} does not receive {kind} in {situation}"))
                }
                (None, false, None) => wrong.push(format!("{actor} receives {kind} in no situation")),
                (None, true, _) => {}
                (Some(_), true, _) => {
                    wrong.push(format!("{actor} receives {kind}, which is listed as never sent"))
                }
            }
        }
    }
    wrong.extend(
        unknown
            .into_iter()
            .map(|(actor, kind)| format!("{actor} has no kind {kind}, but the table lists it")),
    );
    assert!(wrong.is_empty(), "the table is wrong:\n{}", wrong.join("\n"));
    pairs
}
