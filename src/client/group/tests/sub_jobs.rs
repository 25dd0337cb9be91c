//! Groups of sub-jobs and their parents.

use super::*;

/// A running attempt of the job `p`.
fn running(job: Job) -> (Arc<World>, Client, Attempt, WorkerId) {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["parent"], 9, &[]));
    world.run(client.submit(job.id("p"))).unwrap();
    world.assign(&id("p"), worker);
    let attempt = Attempt {
        job: id("p"),
        kind: kind("parent"),
        generation: 1,
        attempt: 1,
        fencing_token: 0,
        worker,
        finish: true,
    };
    (world, client, attempt, worker)
}

fn sub_group(world: &World, client: &Client, attempt: &Attempt, name: &str) -> Result<GroupHandle, Error> {
    world.run(client.sub_group::<Untyped>(attempt, Group::new(name, "ignored")))
}

#[test]
fn the_first_sub_group_is_marked_in_the_assignment_and_lists_the_further_ones() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client, attempt, worker) = running(Job::new("parent", &1).lane("l"));
        world.once(Request::is_write, [lost.clone()]);
        let first = sub_group(&world, &client, &attempt, "sum").unwrap();
        let stored: GroupRecord = world.tree().decoded(&path::group(first.id()));
        let parent = stored.parent.unwrap();
        assert_eq!((parent.job, parent.finish, parent.first, parent.depth), (id("p"), true, None, 0));
        assert_eq!((parent.lane, parent.outer_lanes), (Lane::new("l").ok(), vec![]));
        let assignment: bellwether_core::job::Assignment =
            world.tree().decoded(&path::assignment(worker, &id("p")));
        assert!(assignment.spawned);

        world.once(Request::is_write, [lost]);
        let further = sub_group(&world, &client, &attempt, "product").unwrap();
        assert_eq!(further.id(), &first.id().further(0));
        let stored: GroupRecord = world.tree().decoded(&path::group(first.id()));
        assert_eq!(stored.further, [kind("product")]);
        let stored: GroupRecord = world.tree().decoded(&path::group(further.id()));
        let parent = stored.parent.unwrap();
        assert_eq!((parent.finish, parent.first.unwrap().group), (false, first.id().clone()));

        // The same calls again find the same groups, and write nothing.
        world.requests();
        assert_eq!(sub_group(&world, &client, &attempt, "sum").unwrap().id(), first.id());
        assert_eq!(sub_group(&world, &client, &attempt, "product").unwrap().id(), further.id());
        assert_eq!(writes(&world), 0);
        let view = world.run(client.get(&id("p"))).unwrap().unwrap();
        assert_eq!(view.sub_jobs, [first.id().clone(), further.id().clone()]);
    }
}

#[test]
fn an_attempt_that_was_closed_creates_no_group() {
    let (world, client, attempt, worker) = running(Job::new("parent", &1));
    let later = Attempt { attempt: 2, ..attempt.clone() };
    let error = sub_group(&world, &client, &later, "sum").unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::AttemptClosed { .. })));
    world.close(&id("p"), worker, Ending::Failed("boom".into()));
    let error = sub_group(&world, &client, &attempt, "sum").unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::AttemptClosed { .. })));
}

#[test]
fn a_group_that_exists_without_its_mark_is_marked() {
    let (world, client, attempt, worker) = running(Job::new("parent", &1));
    let first = sub_group(&world, &client, &attempt, "sum").unwrap();
    let path = path::assignment(worker, &id("p"));
    world.tree().update(&path, |assignment: bellwether_core::job::Assignment| {
        bellwether_core::job::Assignment { spawned: false, ..assignment }
    });
    assert_eq!(sub_group(&world, &client, &attempt, "sum").unwrap().id(), first.id());
    assert!(world.tree().decoded::<bellwether_core::job::Assignment>(&path).spawned);
}

#[test]
fn a_nested_group_is_one_level_deeper_and_knows_the_lanes_around_it() {
    let (world, client, attempt, worker) = running(Job::new("parent", &1).lane("outer"));
    let first = sub_group(&world, &client, &attempt, "sum").unwrap();
    let mut attempt = attempt;
    for depth in 1..3 {
        let outer = match depth {
            1 => first.clone(),
            _ => world
                .run(client.existing_group(&GroupId::of_sub_jobs(&attempt.job, &world.record(&attempt.job))))
                .unwrap(),
        };
        let kind_name = if depth == 1 { "sum" } else { "product" };
        let member =
            world.run(outer.submit(0, Job::new(kind_name, &1).lane(format!("lane{depth}")))).unwrap();
        world.assign(member.id(), worker);
        attempt = Attempt { job: member.id().clone(), kind: kind(kind_name), finish: false, ..attempt };
        let nested = sub_group(&world, &client, &attempt, "product").unwrap();
        let stored: GroupRecord = world.tree().decoded(&path::group(nested.id()));
        let parent = stored.parent.unwrap();
        assert_eq!(parent.depth, depth);
        assert_eq!(parent.outer_lanes.len(), depth as usize);
    }
}

#[test]
fn a_parent_is_not_retried_before_its_sub_jobs_are_done() {
    let (world, client, attempt, worker) = running(Job::new("parent", &1).lane("l"));
    let first = sub_group(&world, &client, &attempt, "sum").unwrap();
    world.close(&id("p"), worker, Ending::Invalid("boom".into()));
    assert!(world.record(&id("p")).spawned);
    let error = world.run(client.retry(&id("p"))).unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::Spawned { .. })), "{error:?}");
    let turn = path::turn(&world.record(&id("p")).turn().unwrap(), &id("p"));
    assert!(world.tree().get(&turn).is_some(), "its turn lasts until its sub-jobs are done");
    // An operator removes the group. Its turn is left over.
    let children = world.tree().children(&path::group(first.id())).unwrap();
    let below = children.iter().map(|name| format!("{}/{name}", path::group(first.id())));
    below.for_each(|path| world.tree().delete(&path));
    world.tree().delete(&path::group(first.id()));
    assert_eq!(world.run(client.retry(&id("p"))), Ok(Retried::Reopened(2)));
    assert!(world.tree().get(&turn).is_none());
    assert_eq!(world.run(client.get(&id("p"))).unwrap().unwrap().state, State::Queued);

    let (world, client, attempt, worker) = running(Job::new("parent", &1));
    let first = sub_group(&world, &client, &attempt, "sum").unwrap();
    world.close(&id("p"), worker, Ending::Invalid("boom".into()));
    world.tree().update(&path::group(first.id()), |record: GroupRecord| GroupRecord {
        stage: Stage::Done { at: WallMillis(1) },
        ..record
    });
    assert_eq!(world.run(client.retry(&id("p"))), Ok(Retried::Reopened(2)));
}

#[test]
fn a_job_with_open_sub_jobs_is_not_opened_again() {
    let (world, client, attempt, worker) = running(Job::new("parent", &1));
    let first = sub_group(&world, &client, &attempt, "sum").unwrap();
    world.close(&id("p"), worker, Ending::Succeeded(Payload::json(*b"1").unwrap()));
    let again = || Job::new("parent", &1).id("p").if_exists(IfExists::Again);
    assert_eq!(world.run(client.submit(again())).unwrap().accepted(), Accepted::Same);
    let sub_jobs = world.tree().get(&path::group(first.id())).unwrap();
    world.tree().put(&path::group(first.id()), *b"?");
    assert_eq!(
        world.run(client.submit(again())).unwrap().accepted(),
        Accepted::Same,
        "its record cannot be read"
    );
    world.tree().put(&path::group(first.id()), sub_jobs.data);
    world.tree().update(&path::group(first.id()), |record: GroupRecord| GroupRecord {
        stage: Stage::Done { at: WallMillis(1) },
        ..record
    });
    assert_eq!(world.run(client.submit(again())).unwrap().accepted(), Accepted::Again(2));
}

#[test]
fn a_member_of_a_segment_gets_sub_jobs_when_it_has_a_record() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 9, &[]));
    let segment = world.pack(1, 5);
    world.assign_segment(segment, worker);
    let attempt = |number| Attempt {
        job: crate::client::in_memory::member(segment, number),
        kind: kind("sum"),
        generation: 1,
        attempt: 1,
        fencing_token: 0,
        worker,
        finish: false,
    };
    let (parent, ended) = (attempt(0), attempt(1));
    world.succeed_members(segment, worker, bellwether_core::segment::Members::one(1));
    let group = async {
        let extract = async {
            client.0.session.sleep(bellwether_core::segment::EXTRACT_AFTER).await;
            world.extract_members(segment, worker, bellwether_core::segment::Members::one(0));
        };
        let group = client.sub_group::<Untyped>(&parent, Group::new("product", "ignored"));
        futures::join!(group, extract).0
    };
    let group = world.run(group).unwrap();
    let assignment: bellwether_core::job::Assignment =
        world.tree().decoded(&path::assignment(worker, &parent.job));
    assert!(assignment.spawned);
    let stored: GroupRecord = world.tree().decoded(&path::group(group.id()));
    assert_eq!(stored.parent.unwrap().job, parent.job);
    let error = sub_group(&world, &client, &ended, "product").unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::AttemptClosed { .. })));
}
