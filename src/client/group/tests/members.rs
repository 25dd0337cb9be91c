//! Members of groups: submitted, listed and retried.

use super::*;

#[test]
fn a_member_must_fit_its_group() {
    let (world, _, handle) = open();
    let submit = |number, job: Job| world.run(handle.submit(number, job)).map(|handle| handle.accepted());
    let refused = |job: Job| match submit(0, job).unwrap_err() {
        SubmitError::Group(error) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(refused(Job::new("product", &1)), GroupError::Kind { .. }));
    assert!(matches!(refused(job().id("own")), GroupError::OwnId { .. }));
    assert!(matches!(refused(job().if_exists(IfExists::Again)), GroupError::MemberReopened { .. }));
    let most = bellwether_core::budget::MAX_MEMBERS;
    let over = submit(most, job()).unwrap_err();
    assert!(matches!(over, SubmitError::Group(GroupError::NumberTooLarge { number, .. }) if number == most));
    assert_eq!(submit(most - 1, job()), Ok(Accepted::New));
    assert_eq!(submit(most - 1, job()), Ok(Accepted::Same));
    let member = world.record(&JobId::member(&kind("sum"), &g(), most - 1).unwrap());
    assert_eq!(
        member.membership,
        Some(Membership { group: g(), role: Role::Member(most - 1), counted: true })
    );
}

#[test]
fn all_members_are_submitted_and_counted_up_to_the_first_error() {
    let (world, _, handle) = open();
    assert_eq!(world.run(handle.submit_all((0..5).map(|_| job()))).unwrap(), 5);
    assert_eq!(world.run(handle.view()).unwrap().open, 5);
    world.run(handle.submit_last(7, job())).unwrap();
    let view = world.run(handle.view()).unwrap();
    assert_eq!((view.open, view.total), (6, Some(8)));
    world.run(handle.submit_last(8, job())).unwrap_err();
    world.run(handle.submit_all([job(), Job::new("product", &1)])).unwrap_err();
}

#[test]
fn a_member_of_a_changed_group_is_decided_again() {
    let (world, client, handle) = open();
    let other = world.run(client.existing_group::<Untyped>(&g())).unwrap();
    world.run(other.seal(4)).unwrap();
    assert_eq!(world.run(handle.submit(3, job())).unwrap().accepted(), Accepted::New);
    assert_eq!(handle.known.look().1, 1);
    let over = world.run(handle.submit(4, job())).unwrap_err();
    assert!(matches!(over, SubmitError::Group(GroupError::NumberTooLarge { total: 4, .. })), "{over:?}");
    update(&world, |record| GroupRecord { stopped: Some(Stop::Member(3)), ..record });
    let stopped = world.run(handle.submit(2, job())).unwrap_err();
    assert!(matches!(stopped, SubmitError::Group(GroupError::Closed { .. })), "{stopped:?}");
    assert!(world.run(handle.submit(3, job())).unwrap().is_duplicate(), "an existing member is found");
}

#[test]
fn a_member_of_a_removed_group_is_refused_and_other_jobs_of_its_round_are_accepted() {
    let (world, client, handle) = open();
    let chunks = world.tree().children(&path::group(&g())).unwrap();
    let below = chunks.iter().map(|name| format!("{}/{name}", path::group(&g())));
    below.for_each(|path| world.tree().delete(&path));
    world.tree().delete(&path::group(&g()));
    let (member, other) =
        world.run(async { futures::join!(handle.submit(0, job()), client.submit(job().id("other"))) });
    let error = member.unwrap_err();
    assert!(matches!(error, SubmitError::Group(GroupError::NotFound { .. })), "{error:?}");
    assert_eq!(other.unwrap().accepted(), Accepted::New);
}

#[test]
fn a_member_that_may_have_been_applied_is_not_refused_with_its_group() {
    let (world, _, handle) = open();
    let mut lost = false;
    world.script(move |request, tree| match request.is_write() && !std::mem::replace(&mut lost, true) {
        true => {
            tree.put(&path::group(&g()), *b"?");
            Answer::LoseRequest
        }
        false => Answer::Serve,
    });
    let error = world.run(handle.submit(0, job())).unwrap_err();
    assert!(matches!(error, SubmitError::Unknown { repeatable: true, .. }), "{error:?}");
    let error = world.run(handle.submit(1, job())).unwrap_err();
    assert!(matches!(error, SubmitError::Client(Error::GroupUnreadable { .. })), "{error:?}");
}

#[test]
fn the_first_members_of_chunks_create_them() {
    let (world, _, handle) = open();
    let jobs = [0, 4_096, 8_192, 1].map(|number| (number, job()));
    let answers = world.run(futures::StreamExt::collect::<Vec<_>>(handle.submit_stream(jobs)));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(world.run(handle.view()).unwrap().open, 4);

    // An operator has deleted the places of a chunk.
    let (world, _, handle) = open();
    world.apply(&txn::make_chunk(&g(), 1)[..1]);
    world.run(handle.submit(4_096, job())).unwrap();
    assert_eq!(world.run(handle.view()).unwrap().open, 1);
    // The reply to the creation is lost.
    let (world, _, handle) = open();
    let makes =
        |request: &Request| matches!(request, Request::Commit(ops) if *ops == txn::make_chunk(&g(), 1));
    world.once(makes, [Answer::LoseReply]);
    world.run(handle.submit(4_096, job())).unwrap();
    // A member's other operations are refused for their own reason.
    let (world, _, handle) = open();
    world.run(handle.submit(0, job())).unwrap();
    world.once(Request::is_write, [Answer::Refuse(3, Reason::NoAuth)]);
    let error = world.run(handle.submit(1, job())).unwrap_err();
    assert!(matches!(error, SubmitError::Refused { reason: Reason::NoAuth, .. }), "{error:?}");
}

#[test]
fn members_are_listed_from_a_number_on() {
    let (world, client, handle) = open();
    let numbers = [0, 1, 4_095, 4_096, 4_097, 8_192];
    for number in numbers {
        world.run(handle.submit(number, job())).unwrap();
    }
    let list = |from| {
        let mut members = client.group_members::<Untyped>(&g()).first(from);
        assert_eq!(members.group(), &g());
        let mut found = Vec::new();
        while let Some(member) = world.run(members.next()).unwrap() {
            found.push(member.number);
        }
        found
    };
    for from in [0, 1, 2, 4_095, 4_096, 4_097, 8_192, 8_193] {
        let expected = numbers.into_iter().filter(|number| *number >= from).collect::<Vec<_>>();
        assert_eq!(list(from), expected, "from {from}");
    }
    world.requests();
    list(4_096);
    let chunks = world
        .requests()
        .into_iter()
        .filter(|request| matches!(request, Request::List(paths) if paths[0].contains("/0")));
    assert!(chunks.count() <= 8);
    let absent = GroupId::new("none").unwrap();
    let error = world.run(client.group_members::<Untyped>(&absent).next()).unwrap_err();
    assert_eq!(error, GroupError::NotFound { group: absent }.into());
    let error = world.run(client.group_members::<Product>(&g()).next()).unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::Kind { .. })));
}

#[test]
fn more_members_than_a_page_are_listed_in_order() {
    let (world, client, handle) = open();
    world.run(handle.submit_all((0..250).map(|_| job()))).unwrap();
    let mut members = client.group_members::<Untyped>(&g());
    for number in 0..250 {
        assert_eq!(world.run(members.next()).unwrap().unwrap().number, number);
    }
    assert_eq!(world.run(members.next()).unwrap(), None);
    world.tree().delete(&path::record(&JobId::member(&kind("sum"), &g(), 7).unwrap()));
    let mut members = client.group_members::<Untyped>(&g()).first(7);
    let seventh = world.run(members.next()).unwrap().unwrap();
    assert_eq!(seventh.end, MemberEnd::Unreadable(None));
}

#[test]
fn a_retried_member_returns_to_a_group_that_waits_for_it() {
    for (stage, counted) in [(Stage::Open, true), (Stage::Joining, false)] {
        let (world, client, handle) = open();
        let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
        world.run(handle.submit(0, job())).unwrap();
        let member = JobId::member(&kind("sum"), &g(), 0).unwrap();
        world.assign(&member, worker);
        world.close(&member, worker, Ending::Invalid("boom".into()));
        update(&world, |record| GroupRecord { stage, ..record });
        assert_eq!(world.run(client.retry(&member)), Ok(Retried::Reopened(2)));
        assert_eq!(world.record(&member).membership.unwrap().counted, counted);
        let view = world.run(client.get_group(&g())).unwrap().unwrap();
        assert_eq!((view.open, view.dead), if counted { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn a_part_of_a_group_is_awaited_only_in_its_stage() {
    let at = |stage| GroupRecord { stage, ..record(1) };
    let part = |role| Membership { group: g(), role, counted: true };
    let done = Stage::Done { at: WallMillis(1) };
    let roles = [Role::Member(1), Role::Join, Role::Finish];
    for (stage, awaited) in [
        (Stage::Open, [true, false, false]),
        (Stage::Joining, [false, true, false]),
        (Stage::Finishing, [false, false, true]),
        (done, [false, false, false]),
    ] {
        assert_eq!(roles.map(|role| super::retry::waits(&at(stage), &part(role))), awaited);
    }
}

#[test]
fn a_member_of_a_group_whose_places_an_operator_has_deleted_is_refused() {
    let (world, client, handle) = open();
    world.tree().remove_all(&path::members(&g()));
    let (member, other) =
        world.run(async { futures::join!(handle.submit(0, job()), client.submit(job().id("other"))) });
    let error = member.unwrap_err();
    assert!(matches!(error, SubmitError::Group(GroupError::NotFound { .. })), "{error:?}");
    assert_eq!(other.unwrap().accepted(), Accepted::New);
}

#[test]
fn a_member_without_a_trace_belongs_to_that_of_its_group() {
    let trace = |id: &str| format!("00-{id:0>32}-00000000000000ab-01").parse::<TraceContext>().unwrap();
    let (world, _, handle) = stage(Group::new("sum", "g").traceparent(trace("1")));
    let submitted = |number, job: Job| {
        let submitted = world.run(handle.submit(number, job)).unwrap();
        world.record(submitted.id()).trace
    };
    assert_eq!(submitted(0, job()), Some(trace("1")));
    assert_eq!(submitted(1, job().traceparent(trace("2"))), Some(trace("2")));
}

#[test]
fn the_debug_texts_of_a_group_and_its_members_name_the_group() {
    let (_, client, handle) = open();
    assert_eq!(format!("{handle:?}"), format!("GroupHandle({:?})", g()));
    assert_eq!(format!("{:?}", client.group_members::<Untyped>(&g())), format!("Members({:?})", g()));
}
