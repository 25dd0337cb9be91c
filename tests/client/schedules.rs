//! Schedules: adding, changing, listing and triggering them, also with lost replies.

use std::time::{Duration, SystemTime};

use bellwether::client::{Added, Error, IfExists, ScheduleChange, ScheduleError, ScheduleRecordView};
use bellwether::schedule::{Misfire, Overlap, When};
use bellwether::{Client, Job, Lane, Remedy, Schedule, ScheduleId, State};
use bellwether_core::path;
use bellwether_core::txn::Op;
use bellwether_testkit::{Cut, Proxy, Request, eventually, namespace, op};

use crate::fake_cluster::{FakeCluster, SOON, client, id};

const HOUR: Duration = Duration::from_secs(3_600);

fn job() -> Job {
    Job::new("report", &"sales").max_attempts(3)
}

fn hourly(name: &str) -> Schedule {
    Schedule::every(name, HOUR, job())
}

fn named(name: &str) -> ScheduleId {
    ScheduleId::new(name).unwrap()
}

async fn read(client: &Client, name: &str) -> ScheduleRecordView {
    client.schedules().get(&named(name)).await.unwrap().record.unwrap()
}

async fn connected(client: &Client) {
    eventually("the client is connected again", SOON, async || client.is_connected()).await;
}

fn multi(text: &'static str) -> impl Fn(&Request<'_>) -> bool + Send + 'static {
    move |request| request.op == op::MULTI && request.mentions(text)
}

#[tokio::test]
async fn adding_a_schedule_again_is_the_same_schedule_and_another_spec_is_a_conflict_or_a_replacement() {
    let client = client(&namespace("schedule-add")).await;
    let add = async |schedule: Schedule| client.schedules().add(&schedule).await;
    assert_eq!(add(hourly("a")).await.unwrap().as_str(), "created");
    assert_eq!(add(hourly("a")).await.unwrap().as_str(), "unchanged");
    assert_eq!(add(hourly("a").replace(true)).await, Ok(Added::Unchanged));
    assert_eq!(read(&client, "a").await.spec_version, 1);
    let others = |name: &str| {
        [
            (Schedule::every(name, 2 * HOUR, job()), "time to tick"),
            (hourly(name).misfire(Misfire::Skip), "misfire policy"),
            (hourly(name).grace(2 * HOUR), "misfire policy"),
            (hourly(name).overlap(Overlap::Forbid), "overlap policy"),
            (Schedule::every(name, HOUR, Job::new("other", &"sales").max_attempts(3)), "kind of job"),
            (Schedule::every(name, HOUR, Job::new("report", &"costs").max_attempts(3)), "payload"),
            (hourly(name).job_id("report"), "job id"),
            (Schedule::every(name, HOUR, job().max_attempts(4)), "job policy or placement"),
        ]
    };
    for n in 0..others("").len() {
        let name = format!("b{n}");
        let (other, differs) = others(&name)[n].clone();
        add(hourly(&name)).await.unwrap();
        assert_eq!(add(other.clone()).await, Err(ScheduleError::Conflict { id: named(&name), differs }));
        assert_eq!(read(&client, &name).await.spec_version, 1);
        assert_eq!(add(other.replace(true)).await.unwrap().as_str(), "replaced");
        assert_eq!(read(&client, &name).await.spec_version, 2, "{differs}");
    }
}

#[tokio::test]
async fn a_schedule_whose_only_instant_has_passed_is_refused() {
    let client = client(&namespace("schedule-past")).await;
    let at = SystemTime::UNIX_EPOCH + HOUR;
    let past = Schedule::at("a", at, job());
    assert_eq!(client.schedules().add(&past).await, Err(ScheduleError::Past { id: named("a"), at }));
    let future = Schedule::at("a", SystemTime::now() + HOUR, job());
    assert_eq!(client.schedules().add(&future).await, Ok(Added::Created));
    let refused = client.schedules().add(&past.replace(true)).await;
    assert_eq!(refused, Err(ScheduleError::Past { id: named("a"), at }));
}

#[tokio::test]
async fn schedules_are_listed_by_name_and_an_unreadable_one_can_only_be_removed() {
    let to = namespace("schedule-list");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let schedules = client.schedules();
    for n in (0..120).rev() {
        schedules.add(&hourly(&format!("s{n:03}"))).await.unwrap();
    }
    let broken = named("s007");
    fake.overwrite(path::schedule(&broken), b"garbage".to_vec()).await;
    let list = schedules.list(None, 1_000).await.unwrap().items;
    let names = list.iter().map(|view| view.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names, (0..120).map(|n| format!("s{n:03}")).collect::<Vec<_>>());
    let unreadable = list.iter().filter(|view| view.record.is_err()).map(|view| &view.id).collect::<Vec<_>>();
    assert_eq!(unreadable, [&broken]);
    assert!(schedules.get(&broken).await.unwrap().record.is_err());
    for refused in [
        schedules.pause(&broken).await.unwrap_err(),
        schedules.trigger(&broken).await.unwrap_err(),
        schedules.add(&hourly("s007").replace(true)).await.unwrap_err(),
    ] {
        assert!(matches!(&refused, ScheduleError::Unreadable { id, .. } if *id == broken), "{refused}");
    }
    assert_eq!(schedules.remove(&broken).await, Ok(true));
    assert_eq!(schedules.remove(&broken).await, Ok(false));
    assert_eq!(schedules.get(&broken).await, Err(ScheduleError::NotFound(broken.clone())));
    assert_eq!(schedules.pause(&broken).await, Err(ScheduleError::NotFound(broken)));
}

#[tokio::test]
async fn changes_that_change_nothing_keep_the_version_and_a_pause_hides_the_next_tick() {
    let client = client(&namespace("schedule-change")).await;
    let (schedules, name) = (client.schedules(), named("a"));
    schedules.add(&hourly("a")).await.unwrap();
    let record = |view: bellwether::client::ScheduleView| view.record.unwrap();
    let paused = record(schedules.pause(&name).await.unwrap());
    assert_eq!((paused.paused, paused.next), (true, None));
    assert_eq!(record(schedules.pause(&name).await.unwrap()), paused, "paused already");
    let resumed = record(schedules.resume(&name).await.unwrap());
    assert!(!resumed.paused && resumed.next > Some(SystemTime::now()));
    assert_eq!(record(schedules.resume(&name).await.unwrap()), resumed, "not paused");

    let same = ScheduleChange::default().grace(resumed.grace).overlap(resumed.overlap);
    assert_eq!(record(schedules.change(&name, &same).await.unwrap()).spec_version, 1);
    let interval = When::Every { interval: 2 * HOUR, anchor: SystemTime::UNIX_EPOCH };
    let change = ScheduleChange::new().every(2 * HOUR).misfire(Misfire::Skip).grace(2 * HOUR);
    let changed = record(schedules.change(&name, &change.overlap(Overlap::Forbid)).await.unwrap());
    assert_eq!((changed.spec_version, changed.when, changed.grace), (2, interval, 2 * HOUR));
    assert_eq!((changed.misfire, changed.overlap), (Misfire::Skip, Overlap::Forbid));
    assert_eq!((changed.kind, changed.options), (resumed.kind, resumed.options), "the job is kept");
    let refused = schedules.change(&name, &ScheduleChange::default().grace(Duration::ZERO)).await;
    assert!(matches!(refused, Err(ScheduleError::Invalid(_))), "{refused:?}");
}

#[tokio::test]
async fn a_trigger_submits_one_job_in_the_lane_of_queued_ticks() {
    let client = client(&namespace("schedule-trigger")).await;
    let schedules = client.schedules();
    schedules.add(&hourly("free")).await.unwrap();
    schedules.add(&hourly("queued").overlap(Overlap::Queue)).await.unwrap();
    let mut ids = Vec::new();
    for (name, lane) in [("free", None), ("free", None), ("queued", Some(Lane::new("schedule:queued")))] {
        let handle = schedules.trigger(&named(name)).await.unwrap();
        let view = client.get(handle.id()).await.unwrap().unwrap();
        assert_eq!((view.state, view.kind.unwrap().as_str()), (State::Queued, "report"));
        assert_eq!(view.lane.is_some(), lane.is_some(), "{name}");
        assert!(!ids.contains(handle.id()) && !handle.is_duplicate());
        ids.push(handle.id().clone());
    }
    assert_eq!(read(&client, "free").await.ticked, 0, "a trigger is no tick");
}

#[tokio::test]
async fn a_trigger_of_a_schedule_with_a_job_id_opens_that_job_again_once_it_has_ended() {
    let client = client(&namespace("schedule-job-id")).await;
    let schedules = client.schedules();
    schedules.add(&hourly("a").job_id("report")).await.unwrap();
    assert!(!schedules.trigger(&named("a")).await.unwrap().is_duplicate());
    assert!(schedules.trigger(&named("a")).await.unwrap().is_duplicate(), "it is open");
    client.cancel(&id("report")).await.unwrap();
    assert!(!schedules.trigger(&named("a")).await.unwrap().is_duplicate());
    assert_eq!(client.get(&id("report")).await.unwrap().unwrap().generation, 2);
    client.cancel(&id("report")).await.unwrap();
    let other = Job::new("report", &"other").id("report").if_exists(IfExists::Again);
    let refused = client.submit(other).await.unwrap_err();
    assert_eq!(refused.job(), Some(&id("report")));
}

#[tokio::test]
async fn a_change_with_a_lost_reply_or_request_is_made_once() {
    for applied in [true, false] {
        let to = namespace("schedule-lost");
        let proxy = Proxy::to(&to);
        let client = Client::builder(proxy.connect_string()).deadline(SOON).connect().await.unwrap();
        let (schedules, name) = (client.schedules(), named("a"));
        let lose = |text: &'static str| match applied {
            true => proxy.swallow_reply_and_cut(multi(text), Cut::Reset),
            false => proxy.drop_request_and_cut(multi(text), Cut::Reset),
        };
        let lost = lose("/schedules/a");
        assert_eq!(schedules.add(&hourly("a")).await, Ok(Added::Created), "its own write, read back");
        lost.fired().await;
        let lost = lose("/schedules/a");
        assert_eq!(schedules.add(&hourly("a").grace(HOUR).replace(true)).await, Ok(Added::Replaced));
        lost.fired().await;
        let lost = lose("/schedules/a");
        assert!(schedules.pause(&name).await.unwrap().record.unwrap().paused);
        lost.fired().await;
        let lost = lose("/jobs/");
        let job = schedules.trigger(&name).await.unwrap();
        lost.fired().await;
        let view = client.get(job.id()).await.unwrap().unwrap();
        assert_eq!((view.state, view.generation), (State::Queued, 1));
        let page = client.list_page(&Default::default(), None, 10).await.unwrap();
        assert_eq!(page.items.len(), 1, "one trigger is one job");
        assert_eq!(read(&client, "a").await.spec_version, 2);
        let lost = lose("/schedules/a");
        assert_eq!(schedules.remove(&name).await, Ok(true));
        lost.fired().await;
    }
}

/// The reply is lost, and ZooKeeper does not come back within the deadline.
#[tokio::test]
async fn a_change_without_an_answer_in_time_is_unknown_and_one_that_was_not_sent_is_not() {
    let to = namespace("schedule-unknown");
    let (proxy, fake) = (Proxy::to(&to), FakeCluster::new(&to).await);
    let within = Duration::from_secs(4);
    let client = Client::builder(proxy.connect_string()).deadline(within).connect().await.unwrap();
    let (schedules, name) = (client.schedules(), named("a"));
    schedules.add(&hourly("a")).await.unwrap();
    // Open connections stay open.
    proxy.refuse();
    let lost = proxy.swallow_reply_and_cut(multi("/schedules/a"), Cut::Reset);
    assert_eq!(schedules.pause(&name).await, Err(ScheduleError::Unknown { id: name.clone(), within }));
    lost.fired().await;
    let unsent = schedules.pause(&name).await.unwrap_err();
    assert!(matches!(unsent, ScheduleError::Client(Error::Unavailable(_))), "{unsent}");
    proxy.accept();
    connected(&client).await;
    assert!(read(&client, "a").await.paused);

    proxy.refuse();
    let lost = proxy.swallow_reply_and_cut(multi("/jobs/"), Cut::Reset);
    let triggered = schedules.trigger(&name).await.unwrap_err();
    lost.fired().await;
    let ScheduleError::TriggerUnknown { job, .. } = &triggered else { panic!("{triggered}") };
    assert_eq!((triggered.remedy(), triggered.job()), (Remedy::ReadBack, Some(job)));
    fake.record(job).await;
    proxy.accept();
    connected(&client).await;

    proxy.refuse();
    let lost = proxy.swallow_reply_and_cut(multi("/schedules/a"), Cut::Reset);
    assert_eq!(schedules.remove(&name).await, Err(ScheduleError::Unknown { id: name.clone(), within }));
    lost.fired().await;
}

/// Another client changes the schedule between each read and write.
#[tokio::test]
async fn a_change_that_is_overtaken_is_decided_again() {
    let to = namespace("schedule-overtaken");
    let (proxy, fake) = (Proxy::to(&to), FakeCluster::new(&to).await);
    let client = Client::builder(proxy.connect_string()).deadline(SOON).connect().await.unwrap();
    let (schedules, name) = (client.schedules(), named("a"));
    schedules.add(&hourly("a")).await.unwrap();
    let read = proxy
        .hold_reply(|request: &Request<'_>| request.op == op::GET_DATA && request.mentions("/schedules/a"));
    let overtake = async {
        read.fired().await;
        let node = fake.read(path::schedule(&name)).await;
        let set = Op::Set { path: path::schedule(&name), data: node.data, version: node.version };
        fake.apply(vec![set]).await;
        read.release();
    };
    let (paused, ()) = tokio::join!(schedules.pause(&name), overtake);
    assert!(paused.unwrap().record.unwrap().paused);
    assert_eq!(fake.read(path::schedule(&name)).await.version, 2);
}
