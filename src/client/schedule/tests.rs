//! Lost replies, races and limits of calls on schedules.

use std::time::{Duration, SystemTime};

use bellwether_core::outcome::Reason;
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::schedule::{Misfire, Overlap};
use bellwether_core::time::WallMillis;

use super::*;
use crate::client::in_memory::{Answer, BEGINNING, Link, Request, World, id};
use crate::client::job::Job;
use crate::client::{IfExists, SubmitError, Unavailable};

const HOUR: Duration = Duration::from_secs(3_600);

const TICKING: Option<ScheduleState> = Some(ScheduleState::Ticking);
const PAUSED: Option<ScheduleState> = Some(ScheduleState::Paused);

fn named(name: &str) -> ScheduleId {
    ScheduleId::new(name).unwrap()
}

fn job() -> Job {
    Job::new("report", &"sales").max_attempts(3)
}

fn hourly() -> Schedule {
    Schedule::every("a", HOUR, job())
}

struct Stage {
    world: std::sync::Arc<World>,
    schedules: Schedules,
}

impl Stage {
    /// A namespace with the schedule `a`.
    fn new() -> Self {
        let stage = Self::empty();
        assert_eq!(stage.add(&hourly()), Ok(Added::Created));
        stage
    }

    fn empty() -> Self {
        let world = World::new();
        let schedules = world.client().schedules();
        Self { world, schedules }
    }

    fn add(&self, schedule: &Schedule) -> Result<Added, ScheduleError> {
        self.world.run(self.schedules.add(schedule))
    }

    fn version(&self) -> i32 {
        self.world.tree().get("/schedules/a").unwrap().version
    }

    fn record(&self) -> ScheduleRecord {
        self.world.tree().decoded("/schedules/a")
    }

    /// The names in each page.
    fn pages(&self, limit: usize) -> Vec<Vec<String>> {
        let (mut pages, mut after) = (Vec::new(), None);
        loop {
            let page = self.world.run(self.schedules.list(after.as_ref(), limit)).unwrap();
            pages.push(page.items.iter().map(|view| view.id.to_string()).collect());
            after = page.next;
            if after.is_none() {
                return pages;
            }
        }
    }

    /// The first write is answered so, and the link is lost for good at the next read after it.
    fn lose_after_write(&self, answer: &Answer) {
        let answer = answer.clone();
        let mut written = false;
        self.world.script(move |request, _| match (request.is_write(), written) {
            (true, false) => {
                written = true;
                answer.clone()
            }
            (_, true) => Answer::Hang,
            (false, false) => Answer::Serve,
        });
    }
}

#[test]
fn a_schedule_with_the_same_spec_is_unchanged_and_with_another_a_conflict_or_replaced() {
    let stage = Stage::new();
    assert_eq!(stage.add(&hourly()), Ok(Added::Unchanged));
    assert_eq!(stage.add(&hourly().replace(true)), Ok(Added::Unchanged));
    assert_eq!(stage.version(), 0);
    let others = [
        (Schedule::every("a", 2 * HOUR, job()), "time to tick"),
        (hourly().misfire(crate::schedule::Misfire::Skip), "misfire policy"),
        (hourly().grace(2 * HOUR), "misfire policy"),
        (hourly().overlap(Overlap::Forbid), "overlap policy"),
        (Schedule::every("a", HOUR, Job::new("other", &"sales").max_attempts(3)), "kind of job"),
        (Schedule::every("a", HOUR, Job::new("report", &"costs").max_attempts(3)), "payload"),
        (hourly().job_id("report"), "job id"),
        (Schedule::every("a", HOUR, job().max_attempts(4)), "job policy or placement"),
    ];
    for (other, expected) in others {
        let error = stage.add(&other).unwrap_err();
        assert!(
            matches!(&error, ScheduleError::Conflict { differs, .. } if *differs == expected),
            "{error:?}"
        );
    }
    let other = Schedule::every("a", 2 * HOUR, job()).replace(true);
    assert_eq!(stage.add(&other).map(Added::as_str), Ok("replaced"));
    assert_eq!(stage.record().changed.unwrap().what, ChangeKind::Replaced);
    assert_eq!([Added::Created, Added::Unchanged].map(Added::as_str), ["created", "unchanged"]);
}

#[test]
fn a_view_has_the_stored_payload_of_the_jobs() {
    let stage = Stage::new();
    let stored = stage.record().spec.template.payload;
    assert_eq!(stored.bytes(), b"\"sales\"");
    let id = ScheduleId::new("a").unwrap();
    let shown = stage.world.run(stage.schedules.get(&id)).unwrap();
    assert_eq!(shown.record.unwrap().payload, stored);
}

#[test]
fn a_single_tick_must_be_in_the_future() {
    let stage = Stage::empty();
    let once = |at: SystemTime| stage.add(&Schedule::at("a", at, job()));
    for past in [BEGINNING.into(), SystemTime::from(BEGINNING) - HOUR] {
        assert!(matches!(once(past), Err(ScheduleError::Past { .. })));
    }
    assert_eq!(once(SystemTime::from(BEGINNING) + Duration::from_millis(1)), Ok(Added::Created));
}

#[test]
fn a_new_rule_of_an_existing_schedule_must_tick_too() {
    let stage = Stage::new();
    let past = Schedule::at("a", BEGINNING.into(), job()).replace(true);
    assert!(matches!(stage.add(&past), Err(ScheduleError::Past { .. })));
    let change = |change: ScheduleChange| stage.world.run(stage.schedules.change(&named("a"), &change));
    let past = change(ScheduleChange::new().at(BEGINNING.into()));
    assert!(matches!(past, Err(ScheduleError::Past { .. })), "{past:?}");
    change(ScheduleChange::new().at(SystemTime::from(BEGINNING) + HOUR)).unwrap();
    stage.world.pass(2 * HOUR);
    change(ScheduleChange::new().overlap(Overlap::Forbid)).unwrap();
}

#[test]
fn a_namespace_has_a_limited_number_of_schedules() {
    let stage = Stage::empty();
    let fill = |count| stage.world.tree().stat(path::SCHEDULES, |node| node.children = count);
    fill(MAX_SCHEDULES);
    let error = stage.add(&hourly()).unwrap_err();
    assert_eq!(error, ScheduleError::TooMany { schedules: MAX_SCHEDULES });
    assert_eq!((error.class(), error.remedy()), (ErrorClass::Conflict, Remedy::FixInput));
    assert!(!error.is_retryable(), "a node would retry until an operator removes a schedule");
    fill(MAX_SCHEDULES - 1);
    assert_eq!(stage.add(&hourly()), Ok(Added::Created));
    assert_eq!(stage.add(&hourly()), Ok(Added::Unchanged), "an existing one needs no room");
}

#[test]
fn an_addition_with_a_lost_reply_is_read_back() {
    for lost in [Answer::LoseReply, Answer::LoseRequest] {
        let stage = Stage::empty();
        stage.world.once(Request::is_write, [lost]);
        assert_eq!(stage.add(&hourly()), Ok(Added::Created));
        assert_eq!(stage.version(), 0);
    }
}

#[test]
fn only_a_call_that_may_have_written_has_an_unknown_outcome() {
    let unsent = Stage::empty();
    unsent.world.link(Link::Down);
    let error = unsent.add(&hourly()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unavailable, "{error:?}");
    let calls: [fn(&Stage) -> ScheduleError; 4] = [
        |stage| stage.add(&Schedule::every("a", 2 * HOUR, job()).replace(true)).unwrap_err(),
        |stage| stage.world.run(stage.schedules.remove(&named("a"))).unwrap_err(),
        |stage| stage.world.run(stage.schedules.pause(&named("a"))).unwrap_err(),
        |stage| stage.world.run(stage.schedules.trigger(&named("a"))).unwrap_err(),
    ];
    for (n, call) in calls.into_iter().enumerate() {
        let stage = Stage::new();
        stage.lose_after_write(&Answer::LoseReply);
        let error = call(&stage);
        assert_eq!(error.class(), ErrorClass::Unknown, "{error:?}");
        assert_eq!(error.job().is_some(), n == 3, "a trigger names its job");
        assert_eq!(error.remedy(), if n == 3 { Remedy::ReadBack } else { error.class().remedy() });
        let stage = Stage::new();
        stage.world.link(Link::Down);
        let error = call(&stage);
        assert_eq!(error.class(), ErrorClass::Unavailable, "{error:?}");
        let stage = Stage::new();
        stage.world.script(|request, tree| {
            if request.is_write() {
                tree.stat("/schedules/a", |node| node.version += 1);
            }
            Answer::Serve
        });
        let error = call(&stage);
        assert!(matches!(error, ScheduleError::Contended { tries: TRIES, .. }), "{error:?}");
        let stage = Stage::new();
        stage.world.tree().put("/schedules/a", *b"?");
        if n != 1 {
            let error = call(&stage);
            assert_eq!(error.class(), ErrorClass::Unreadable, "{error:?}");
        }
    }
}

#[test]
fn after_a_lost_reply_no_error_says_that_nothing_was_written() {
    let calls: [fn(&Stage) -> ScheduleError; 4] = [
        |stage| stage.add(&Schedule::every("a", 2 * HOUR, job()).replace(true)).unwrap_err(),
        |stage| stage.world.run(stage.schedules.remove(&named("a"))).unwrap_err(),
        |stage| stage.world.run(stage.schedules.pause(&named("a"))).unwrap_err(),
        |stage| stage.world.run(stage.schedules.trigger(&named("a"))).unwrap_err(),
    ];
    for call in calls {
        let stage = Stage::new();
        let mut written = false;
        stage.world.script(move |request, tree| {
            if !request.is_write() {
                return Answer::Serve;
            }
            if !std::mem::replace(&mut written, true) {
                return Answer::LoseRequest;
            }
            tree.stat("/schedules/a", |node| node.version += 1);
            Answer::Serve
        });
        let error = call(&stage);
        assert_eq!(error.class(), ErrorClass::Unknown, "{error:?}");
    }
    let stage = Stage::empty();
    stage.world.script(|request, tree| {
        if !request.is_write() {
            return Answer::Serve;
        }
        tree.stat(path::SCHEDULES, |node| node.children = MAX_SCHEDULES);
        Answer::LoseRequest
    });
    let error = stage.add(&hourly()).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unknown, "{error:?}");
}

#[test]
fn a_removal_reports_whether_it_removed_the_schedule() {
    let stage = Stage::new();
    let remove = |stage: &Stage| stage.world.run(stage.schedules.remove(&named("a")));
    assert_eq!((remove(&stage), remove(&stage)), (Ok(true), Ok(false)));
    for lost in [Answer::LoseReply, Answer::LoseRequest] {
        let stage = Stage::new();
        stage.world.once(Request::is_write, [lost]);
        assert_eq!(remove(&stage), Ok(true));
        assert!(stage.world.tree().get("/schedules/a").is_none());
    }
}

#[test]
fn a_pause_and_a_resumption_are_written_once() {
    let stage = Stage::new();
    let state = |view: Result<ScheduleView, ScheduleError>| view.unwrap().state();
    let pause = || state(stage.world.run(stage.schedules.pause(&named("a"))));
    let resume = || state(stage.world.run(stage.schedules.resume(&named("a"))));
    assert_eq!((resume(), stage.version()), (TICKING, 0), "it was not paused");
    stage.world.once(Request::is_write, [Answer::LoseReply]);
    assert_eq!((pause(), stage.version()), (PAUSED, 1));
    assert_eq!(stage.record().changed.unwrap().what, ChangeKind::Paused);
    assert_eq!((pause(), stage.version()), (PAUSED, 1));
    assert_eq!((resume(), stage.version()), (TICKING, 2));
    assert_eq!(stage.record().changed.unwrap().what, ChangeKind::Resumed);
    let absent = stage.world.run(stage.schedules.pause(&named("b"))).unwrap_err();
    assert_eq!(absent, ScheduleError::NotFound(named("b")));
}

#[test]
fn a_change_writes_only_a_different_spec() {
    let stage = Stage::new();
    let change = |grace| {
        let change = ScheduleChange::default().grace(grace);
        stage.world.run(stage.schedules.change(&named("a"), &change)).unwrap().record.unwrap()
    };
    let same = change(Duration::from_secs(60));
    assert_eq!((same.spec_version, stage.version()), (1, 0));
    let changed = change(2 * HOUR);
    assert_eq!((changed.grace, changed.spec_version, stage.version()), (2 * HOUR, 2, 1));
    assert_eq!(stage.record().changed.unwrap().what, ChangeKind::Replaced);
    let view = stage.world.run(stage.schedules.get(&named("a"))).unwrap();
    assert_eq!(view.record.unwrap().grace, 2 * HOUR);
}

#[test]
fn schedules_are_listed_by_name_with_those_that_cannot_be_read() {
    let stage = Stage::new();
    for name in ["c", "b"] {
        stage.add(&Schedule::every(name, HOUR, job())).unwrap();
    }
    stage.world.tree().put("/schedules/b", *b"?");
    stage.world.tree().put("/schedules/not a name", *b"?");
    let views = stage.world.run(stage.schedules.list(None, 1_000)).unwrap().items;
    let states = views.iter().map(|view| (view.id.as_str(), view.state())).collect::<Vec<_>>();
    assert_eq!(states, [("a", TICKING), ("b", None), ("c", TICKING)]);
    assert_eq!((views[1].next(), views[1].last_job()), (None, None));
    assert!(views[0].next().is_some());
}

#[test]
fn each_schedule_is_in_one_page_whatever_the_limit_is() {
    let stage = Stage::empty();
    let names = (0..60).map(|n| format!("s{n:02}")).collect::<Vec<_>>();
    for name in &names {
        stage.add(&Schedule::every(name, HOUR, job())).unwrap();
    }
    for limit in [1, 7, 59, 60, 61, 1_000] {
        assert_eq!(stage.pages(limit).concat(), names, "{limit}");
        assert_eq!(stage.pages(limit).len(), 60_usize.div_ceil(limit));
    }
    assert!(stage.world.run(stage.schedules.list(Some(&named("s59")), 7)).unwrap().items.is_empty());
}

#[test]
fn a_page_of_schedules_with_large_payloads_ends_early() {
    let stage = Stage::empty();
    // The first 25 are small, so the next read takes many schedules.
    let length = |n| if n < 25 { 10 } else { 16_000 };
    let names = (0..200).map(|n| format!("s{n:03}")).collect::<Vec<_>>();
    for (n, name) in names.iter().enumerate() {
        stage.add(&Schedule::every(name, HOUR, Job::new("report", &"x".repeat(length(n))))).unwrap();
    }
    let pages = stage.pages(1_000);
    assert_eq!(pages.concat(), names);
    let sizes = pages.iter().map(Vec::len).collect::<Vec<_>>();
    assert!(sizes[0] == 25 + 66 || sizes[0] == 25 + 65, "the page ends at 1 MiB: {sizes:?}");
}

#[test]
fn a_page_has_at_least_one_schedule_and_leaves_out_removed_ones() {
    let stage = Stage::empty();
    for name in ["a", "b", "c"] {
        stage.add(&Schedule::every(name, HOUR, job())).unwrap();
    }
    assert_eq!(stage.pages(0), [["a"], ["b"], ["c"]]);
    let mut listed = false;
    stage.world.script(move |request, tree| {
        if std::mem::replace(&mut listed, matches!(request, Request::List(_))) {
            tree.delete("/schedules/b");
        }
        Answer::Serve
    });
    assert_eq!(stage.pages(10), [["a", "c"]]);
}

#[test]
fn a_schedule_after_its_only_tick_is_over_and_names_its_last_job() {
    let stage = Stage::empty();
    let at = SystemTime::from(BEGINNING) + HOUR;
    stage.add(&Schedule::at("a", at, job())).unwrap();
    let view = || stage.world.run(stage.schedules.get(&named("a"))).unwrap();
    assert_eq!((view().state(), view().next(), view().last_job()), (TICKING, Some(at), None));
    stage.world.tree().update("/schedules/a", |record: ScheduleRecord| ScheduleRecord {
        cursor: BEGINNING + 2 * HOUR,
        last_tick: Some(BEGINNING + HOUR),
        ..record
    });
    assert_eq!((view().state(), view().next()), (Some(ScheduleState::Ended), None));
    let tick = crate::schedule::tick_id(&named("a"), at);
    assert_eq!(view().last_job(), Some(tick));
    stage.world.tree().update("/schedules/a", |mut record: ScheduleRecord| {
        record.spec.template.job_id = Some(id("own"));
        record
    });
    assert_eq!(view().last_job(), Some(id("own")));
}

#[test]
fn a_trigger_with_a_lost_reply_or_request_makes_one_job() {
    for (lost, n) in
        [(Answer::LoseReply, 1), (Answer::LoseRequest, 2), (Answer::Refuse(0, Reason::BadVersion), 2)]
    {
        let stage = Stage::new();
        stage.world.once(Request::is_write, [lost]);
        stage.world.requests();
        let handle = stage.world.run(stage.schedules.trigger(&named("a"))).unwrap();
        assert_eq!((handle.accepted(), handle.generation()), (crate::client::Accepted::New, 1));
        let record = stage.world.record(handle.id());
        assert_eq!(record.kind.as_str(), "report");
        assert_eq!(stage.world.requests().iter().filter(|request| request.is_write()).count(), n);
        let parent = bellwether_core::path::SubBucket::of(handle.id());
        assert_eq!(stage.world.tree().children(&parent.path()).unwrap().len(), 1);
    }
}

#[test]
fn a_trigger_of_a_schedule_with_a_job_id_opens_that_job_again() {
    let stage = Stage::empty();
    stage.add(&hourly().job_id("own")).unwrap();
    let trigger = || stage.world.run(stage.schedules.trigger(&named("a"))).unwrap();
    assert_eq!((trigger().generation(), trigger().is_duplicate()), (1, true));
    let client = stage.world.client();
    stage.world.run(client.cancel(&id("own"))).unwrap();
    assert_eq!((trigger().generation(), trigger().id()), (2, &id("own")));
    let other = Job::new("other", &1).id("own").if_exists(IfExists::Same);
    let conflict = stage.world.run(client.submit(other)).unwrap_err();
    assert!(matches!(conflict, SubmitError::Conflict { same_kind: false, .. }));
}

#[test]
fn a_trigger_that_is_rejected_uses_the_job_id_that_the_schedule_has_got() {
    let stage = Stage::new();
    let own = Stage::empty();
    own.add(&hourly().job_id("own")).unwrap();
    let (changed, mut rejected) = (own.record(), false);
    stage.world.script(move |request, tree| {
        if request.is_write() && !std::mem::replace(&mut rejected, true) {
            tree.put("/schedules/a", wire::encode(&changed));
            tree.stat("/schedules/a", |node| node.version += 1);
        }
        Answer::Serve
    });
    let triggered = stage.world.run(stage.schedules.trigger(&named("a"))).unwrap();
    assert_eq!(triggered.id(), &id("own"));
}

#[test]
fn an_error_of_the_client_without_a_write_is_its_own() {
    let late = Unavailable::NotInTime { within: HOUR, reason: String::new(), served: true };
    let by = World::new().client().by();
    let given = || ScheduleError::Client(Error::Unavailable(late.clone()));
    assert_eq!(unsure(given(), &named("a"), by, false), given());
    assert!(matches!(unsure(given(), &named("a"), by, true), ScheduleError::Unknown { .. }));
    let other = || ScheduleError::NotFound(named("a"));
    assert_eq!(unsure(other(), &named("a"), by, true), other());
}

#[test]
fn a_change_has_each_value_that_was_set_and_keeps_the_others() {
    let spec = Stage::new().record().spec;
    let changed = |change: &ScheduleChange| change.of(spec.clone()).map_err(|error| error.to_string());
    let change = ScheduleChange::new();
    assert_eq!(changed(&change), Ok(spec.clone()));
    let at = When::At(WallMillis(0) + HOUR);
    let at_once = change.clone().every(HOUR).at(SystemTime::UNIX_EPOCH + HOUR);
    assert_eq!(changed(&at_once), Ok(ScheduleSpec { when: at, ..spec.clone() }), "the last rule counts");
    let nightly = When::cron("30 2 * * *", "Europe/Berlin").unwrap();
    let zoned = change.clone().cron("30 2 * * *").zone("Europe/Berlin");
    assert_eq!(changed(&zoned), Ok(ScheduleSpec { when: nightly, ..spec.clone() }));
    let every = When::Every { interval: HOUR, anchor: WallMillis(1_000) };
    let anchored = change.clone().every(HOUR).anchor(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    assert_eq!(changed(&anchored), Ok(ScheduleSpec { when: every, ..spec.clone() }));
    let skip = ScheduleSpec { misfire: Misfire::Skip, ..spec.clone() };
    assert_eq!(changed(&change.clone().misfire(crate::schedule::Misfire::Skip)), Ok(skip));
    let queue = ScheduleSpec { overlap: Overlap::Queue, ..spec.clone() };
    assert_eq!(changed(&change.clone().overlap(Overlap::Queue)), Ok(queue));
    let grace = ScheduleSpec { grace: 2 * HOUR, ..spec.clone() };
    assert_eq!(changed(&change.clone().grace(2 * HOUR)), Ok(grace));
    let replaced = change.clone().every(HOUR).anchor(SystemTime::UNIX_EPOCH).cron("30 2 * * *").zone("UTC");
    assert_eq!(
        changed(&replaced.every(HOUR)),
        changed(&change.clone().every(HOUR)),
        "with its zone or anchor"
    );
    for (change, said) in [
        (change.clone().every(Duration::ZERO), "every must be 1s to 366d"),
        (change.clone().cron("x"), "cron expression \"x\" has 1 fields"),
        (change.clone().zone("UTC"), "zone needs cron"),
        (change.clone().every(HOUR).zone("UTC"), "zone needs cron"),
        (change.clone().anchor(SystemTime::UNIX_EPOCH), "anchor needs every"),
    ] {
        let refused = changed(&change).unwrap_err();
        assert!(refused.starts_with(said), "{refused}");
    }
}

#[test]
fn a_change_of_a_limit_keeps_the_other_limit_and_needs_the_policy() {
    let policy = |change: ScheduleChange, misfire| {
        let spec = ScheduleSpec { misfire, ..Stage::new().record().spec };
        change.of(spec).map(|spec| spec.misfire).map_err(|error| error.to_string())
    };
    let catch_up = |limit, within| Misfire::CatchUp { limit, within };
    let change = ScheduleChange::new;
    assert_eq!(policy(change().catch_up_limit(5), catch_up(3, HOUR)), Ok(catch_up(5, HOUR)));
    assert_eq!(policy(change().catch_up_within(2 * HOUR), catch_up(3, HOUR)), Ok(catch_up(3, 2 * HOUR)));
    let set = change().misfire(crate::schedule::Misfire::CatchUp);
    assert_eq!(policy(set.clone(), catch_up(3, HOUR)), Ok(catch_up(10, 24 * HOUR)));
    assert_eq!(policy(set.catch_up_limit(5), Misfire::Skip), Ok(catch_up(5, 24 * HOUR)));
    let once = change().misfire(crate::schedule::Misfire::Once);
    assert_eq!(policy(once, catch_up(3, HOUR)), Ok(Misfire::Once));
    let refused = |field| Err(format!("{field} needs misfire catch_up"));
    assert_eq!(policy(change().catch_up_limit(5), Misfire::Once), refused("catch_up_limit"));
    assert_eq!(policy(change().catch_up_within(HOUR), Misfire::Skip), refused("catch_up_within"));
}

#[test]
fn an_added_schedule_has_a_note_of_who_added_it() {
    let changed = Stage::new().record().changed.unwrap();
    assert_eq!((changed.what, changed.by.to_string()), (ChangeKind::Added, "tester".to_owned()));
}

#[test]
fn an_invalid_change_is_refused_before_the_schedule_is_read() {
    let stage = Stage::new();
    stage.world.requests();
    let change = ScheduleChange::new();
    for (change, said) in [
        (change.clone().zone("UTC"), "zone needs cron"),
        (change.clone().grace(Duration::ZERO), "grace must be 1s to 7d"),
        (change.clone().catch_up_limit(101), "catch_up_limit must be 1 to 100"),
        (change.clone().catch_up_within(Duration::ZERO), "catch_up_within must be 1s to 366d"),
        (change.misfire(crate::schedule::Misfire::Skip).catch_up_limit(1), "catch_up_limit needs misfire"),
    ] {
        let refused = change.check().unwrap_err().to_string();
        assert!(refused.starts_with(said), "{refused}");
        let error = stage.world.run(stage.schedules.change(&named("absent"), &change)).unwrap_err();
        assert_eq!(error.to_string(), refused);
    }
    assert_eq!(stage.world.requests().len(), 0);
}
