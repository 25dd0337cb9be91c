//! The counts, the status and the stages of a group's view.

use bellwether_core::group::{FirstGroup, Parent};
use bellwether_core::time::WallMillis;
use uuid::Uuid;

use super::*;
use crate::client::Unavailable;
use crate::client::in_memory::{Answer, Request, World, id, kind};

fn group() -> GroupId {
    GroupId::new("g").unwrap()
}

fn record() -> GroupRecord {
    GroupRecord { total: Some(3), ..GroupRecord::new(kind("sum"), Uuid::nil(), WallMillis(1)) }
}

fn view(record: GroupRecord) -> GroupView {
    GroupView::new(&group(), record, &BTreeSet::new())
}

fn parent(finish: bool) -> Parent {
    Parent {
        job: id("p"),
        kind: kind("parent"),
        generation: 1,
        finish,
        first: None,
        membership: None,
        depth: 0,
        lane: None,
        outer_lanes: Vec::new(),
    }
}

fn counted(view: GroupView, open: &[u32], ended: &[(u32, End)]) -> GroupView {
    let mut view = view;
    view.count(Numbers { open: open.iter().copied().collect(), ended: ended.iter().copied().collect() });
    view
}

#[test]
fn members_are_counted_over_all_chunks_and_an_ended_one_is_not_open() {
    use End::{Cancelled, Dead, Succeeded};
    let view = view(GroupRecord { total: Some(20), ..record() });
    let view = counted(view, &[1, 2, 3], &[(3, Succeeded), (4, Succeeded), (5, Cancelled), (6, Dead)]);
    assert_eq!((view.open, view.succeeded, view.cancelled, view.dead), (2, 2, 1, 1));
    assert_eq!(view.missing(), Some(14));
    let view = counted(view, &[11], &[(12, Succeeded), (13, Cancelled), (14, Dead), (15, Dead)]);
    assert_eq!((view.open, view.succeeded, view.cancelled, view.dead), (3, 3, 2, 3));
    assert_eq!(view.missing(), Some(9));
    assert_eq!(GroupView { total: None, ..view.clone() }.missing(), None);
    assert_eq!(GroupView { total: Some(2), ..view }.missing(), Some(0), "never fewer than none");
}

#[test]
fn the_size_of_a_group_includes_its_missing_members() {
    let counts = GroupView { open: 1, succeeded: 2, cancelled: 4, dead: 8, ..view(record()) };
    assert_eq!(GroupView { total: None, ..counts.clone() }.size(), 15);
    assert_eq!(GroupView { total: Some(31), ..counts }.size(), 31);
}

#[test]
fn the_status_of_an_open_group_tells_what_it_waits_for() {
    let unsealed = view(GroupRecord { total: None, ..record() });
    assert_eq!(unsealed.status(), "open: its total is not set yet");
    let some = counted(view(record()), &[0, 1], &[]);
    assert_eq!(some.status(), "open: 1 of 3 members were not submitted, 2 are open");
    let all = counted(view(record()), &[0, 1], &[(2, End::Dead)]);
    assert_eq!(all.status(), "open: 2 of 3 members are open");
    let abandoned = view(GroupRecord { stopped: Some(Stop::Abandoned), ..record() });
    assert_eq!(counted(abandoned, &[0], &[]).status(), "open: it was abandoned, 1 members are open");
}

#[test]
fn the_status_of_a_later_stage_names_the_job_that_it_waits_for() {
    let joining = view(GroupRecord { stage: Stage::Joining, ..record() });
    let join = joining.join.clone().unwrap();
    assert_eq!(joining.status(), format!("joining: waits for {join}"));
    let finishing = view(GroupRecord { stage: Stage::Finishing, parent: Some(parent(true)), ..record() });
    let finish = finishing.finished.clone().unwrap();
    assert_eq!(finishing.status(), format!("finishing: waits for {finish}"));
    let done = view(GroupRecord { stage: Stage::Done { at: WallMillis(9) }, ..record() });
    assert_eq!((done.status().as_str(), done.done_at), ("done", Some(WallMillis(9).into())));
    assert_eq!(format!("{:>6}|", done.stage), "  done|");
}

#[test]
fn a_first_group_waits_only_for_further_groups_after_its_own_jobs_have_ended() {
    let ended = [(0, End::Succeeded), (1, End::Succeeded), (2, End::Succeeded)];
    let first = |stage, marks: &[Mark]| {
        let further = vec![kind("a"), kind("b")];
        let record = GroupRecord { stage, further, parent: Some(parent(false)), ..record() };
        GroupView::new(&group(), record, &marks.iter().copied().collect())
    };
    let open = counted(first(Stage::Open, &[]), &[], &ended);
    let named =
        |view: &GroupView, n: usize| format!("{}: group {} is not done", view.stage, view.further[n].id);
    assert_eq!(open.status(), named(&open, 0));
    let open = counted(first(Stage::Open, &[Mark::Further(0)]), &[], &ended);
    assert_eq!(open.further.iter().map(|further| further.is_done).collect::<Vec<_>>(), [true, false]);
    assert_eq!(open.status(), named(&open, 1));
    let both = counted(first(Stage::Open, &[Mark::Further(0), Mark::Further(1)]), &[], &ended);
    assert_eq!(both.status(), "open: 0 of 3 members are open");
    let member = counted(first(Stage::Open, &[]), &[2], &ended[..2]);
    assert_eq!(member.status(), "open: 1 of 3 members are open");
    let missing = counted(first(Stage::Open, &[]), &[], &ended[..2]);
    assert_eq!(missing.status(), "open: 1 of 3 members were not submitted, 0 are open");

    let joining = counted(first(Stage::Joining, &[]), &[], &ended);
    assert!(joining.status().starts_with("joining: waits for "), "{}", joining.status());
    let joined = counted(first(Stage::Joining, &[Mark::Join]), &[], &ended);
    assert_eq!(joined.status(), named(&joined, 0));
}

#[test]
fn a_group_has_its_later_jobs_once_they_were_created() {
    let at = |stage| {
        let view = view(GroupRecord { stage, parent: Some(parent(true)), ..record() });
        (view.join.is_some(), view.finished.is_some())
    };
    assert_eq!(at(Stage::Open), (false, false));
    assert_eq!(at(Stage::Joining), (true, false));
    assert_eq!(at(Stage::Finishing), (true, true));
    assert_eq!(at(Stage::Done { at: WallMillis(9) }), (true, true));
    let without =
        GroupRecord { join: false, stage: Stage::Finishing, parent: Some(parent(false)), ..record() };
    assert_eq!((view(without.clone()).join, view(without).finished), (None, None));
}

#[test]
fn a_stopped_group_has_its_reason() {
    let stopped = |stop| {
        let view = view(GroupRecord { stopped: Some(stop), ..record() });
        (view.stopped.unwrap(), view.is_abandoned)
    };
    assert_eq!(stopped(Stop::Member(7)), ("member 7 ended without success".into(), false));
    assert_eq!(stopped(Stop::Parent), ("its parent ended without success".into(), false));
    assert_eq!(stopped(Stop::Outer), ("the group that it is nested in was stopped".into(), false));
    assert_eq!(stopped(Stop::Abandoned), ("it was abandoned".into(), true));
    assert_eq!((view(record()).stopped, view(record()).is_abandoned), (None, false));
    let further = Parent { first: Some(FirstGroup { group: group(), number: 0 }), ..parent(false) };
    let further = view(GroupRecord { parent: Some(further), ..record() });
    assert_eq!((further.first, further.parent), (Some(group()), Some(id("p"))));
}

#[test]
fn a_group_is_read_with_the_members_of_all_chunks() {
    let world = World::new();
    let client = world.client();
    assert_eq!(world.run(client.get_group(&group())), Ok(None));
    let handle = world.run(client.group(crate::Group::new("sum", "g").total(9_000))).unwrap();
    for number in [0, 4_095, 4_096, 8_999] {
        world.run(handle.submit(number, crate::Job::new("sum", &number))).unwrap();
    }
    let view = world.run(handle.view()).unwrap();
    assert_eq!((view.open, view.missing(), view.stage), (4, Some(8_996), GroupStage::Open));
    assert_eq!(world.run(client.group_chunks(&group(), client.by())), Ok(vec![0, 1, 2]));
}

#[test]
fn a_wait_for_a_group_ends_when_it_is_done_and_not_before() {
    let world = World::new();
    let client = world.client();
    let within = Duration::from_secs(60);
    let absent = world.run(client.wait_group(&group(), within)).unwrap_err();
    assert_eq!(absent.class(), ErrorClass::NotFound);
    world.run(client.group::<crate::client::Untyped>(crate::Group::new("sum", "g").total(1))).unwrap();

    let began = world.now();
    let error = world.run(client.wait_group(&group(), within)).unwrap_err();
    let GroupWaitError::TimedOut { last: Some(last), .. } = &error else { panic!("{error:?}") };
    assert_eq!((last.missing(), error.class()), (Some(1), ErrorClass::TimedOut));
    assert!(world.now().since(began) >= within);
    assert!(error.to_string().ends_with("open: 1 of 1 members were not submitted, 0 are open"), "{error}");

    let path = path::group(&group());
    let advance = |stage| world.tree().update(&path, |record: GroupRecord| GroupRecord { stage, ..record });
    advance(Stage::Joining);
    world.run(client.wait_joined(&group(), within)).unwrap_err();
    advance(Stage::Finishing);
    world.run(client.wait_joined(&group(), within)).unwrap();
    world.run(client.wait_group(&group(), within)).unwrap_err();
    advance(Stage::Done { at: WallMillis(9) });
    assert_eq!(world.run(client.wait_group(&group(), within)).unwrap().stage, GroupStage::Done);

    world.link(crate::client::in_memory::Link::Down);
    let error = world.run(client.wait_group(&group(), within)).unwrap_err();
    let unserved = |error: &GroupWaitError| {
        matches!(
            error,
            GroupWaitError::Client(Error::Unavailable(Unavailable::NotInTime { served: false, .. }))
        )
    };
    assert!(unserved(&error), "{error:?}");
}

#[test]
fn a_wait_is_woken_by_the_change_of_the_group() {
    let world = World::new();
    let client = world.client();
    world.run(client.group::<crate::client::Untyped>(crate::Group::new("sum", "g").total(1))).unwrap();
    let path = path::group(&group());
    world.script({
        let mut glances = 0;
        move |request, tree| {
            glances += u32::from(matches!(request, Request::Glance(_)));
            // After the first look.
            if glances == 1 && request.is_write() {
                tree.update(&path, |record: GroupRecord| GroupRecord {
                    stage: Stage::Done { at: WallMillis(9) },
                    ..record
                });
            }
            Answer::Serve
        }
    });
    let began = world.now();
    let other = world.client();
    let both = async {
        let id = group();
        let wait = client.wait_group(&id, Duration::from_secs(60));
        futures::join!(wait, other.submit(crate::Job::new("sum", &1)))
    };
    let (view, _) = world.run(both);
    assert_eq!((view.unwrap().stage, world.now().since(began)), (GroupStage::Done, Duration::ZERO));
}
