use super::*;

fn id(name: &str) -> GroupId {
    GroupId::new(name).unwrap()
}

fn record() -> GroupRecord {
    GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), WallMillis(1))
}

fn parent() -> Parent {
    Parent {
        job: JobId::new("p:x").unwrap(),
        kind: Kind::new("p").unwrap(),
        generation: 1,
        finish: true,
        first: None,
        membership: None,
        depth: 1,
        lane: None,
        outer_lanes: Vec::new(),
    }
}

#[test]
fn only_a_group_of_sub_jobs_has_a_composed_name() {
    assert!(GroupId::plain("nightly-7").is_ok());
    let refused = GroupId::plain("a@1").unwrap_err().to_string();
    assert_eq!(refused, "group has '@' at byte 1: only [A-Za-z0-9._-] are allowed");
    let payload = Payload::json(*b"1").unwrap();
    let job = JobRecord::new(Kind::new("p").unwrap(), payload, Uuid::from_u128(0x7a), WallMillis(1));
    let short = JobId::new("p:x").unwrap();
    assert_eq!(GroupId::of_sub_jobs(&short, &job).as_str(), "p:x@1.0000007a");
    let again = JobRecord { token: Uuid::from_u128(0x7b), ..job.clone() };
    assert_ne!(
        GroupId::of_sub_jobs(&short, &job),
        GroupId::of_sub_jobs(&short, &again),
        "another submission"
    );
    let long = JobId::new("x".repeat(128)).unwrap();
    let retried = JobRecord { generation: 2, ..job.clone() };
    let (one, two) = (GroupId::of_sub_jobs(&long, &job), GroupId::of_sub_jobs(&long, &retried));
    assert_eq!((one.as_str().len(), one.as_str().starts_with('@')), (33, true));
    assert_ne!(one, two);
}

#[test]
fn check_reports_each_violated_bound() {
    let total = GroupRecord { total: Some(MAX_MEMBERS + 1), ..record() };
    assert_eq!(
        total.check(&id("g")).unwrap_err().to_string(),
        "total of group g is 1000001: at most 1000000 are allowed; nest groups for more"
    );
    let long = "x".repeat(124);
    assert!(matches!(record().check(&id(&long)), Err(GroupError::IdTooLong { .. })));
    let outer = Membership { group: id("g"), role: Role::Member(1), counted: true };
    let own = GroupRecord { parent: Some(Parent { membership: Some(outer), ..parent() }), ..record() };
    assert_eq!(own.check(&id("g")).unwrap_err().to_string(), "job p:x cannot be its own parent");
    let deep = GroupRecord { parent: Some(Parent { depth: MAX_DEPTH + 1, ..parent() }), ..record() };
    assert!(matches!(deep.check(&id("g")), Err(GroupError::Depth { .. })));
    let fine = GroupRecord { total: Some(MAX_MEMBERS), parent: Some(parent()), ..record() };
    assert_eq!(fine.check(&id("g")), Ok(()));
}

#[test]
fn a_total_is_set_once_and_may_be_repeated() {
    let sealed = record().sealed(&id("g"), 3).unwrap();
    assert_eq!(sealed.sealed(&id("g"), 3), Ok(sealed.clone()));
    assert_eq!(
        sealed.sealed(&id("g"), 4).unwrap_err().to_string(),
        "group g was sealed with a total of 3, not 4: a total can be set only once"
    );
    assert_eq!(sealed.admits(&id("g"), 2, None), Ok(()));
    assert_eq!(
        sealed.admits(&id("g"), 3, None).unwrap_err().to_string(),
        "member 3 of group g is not below its total of 3: members are numbered from 0"
    );
}

#[test]
fn a_stopped_or_finished_group_states_why_it_accepts_no_members() {
    let stopped = GroupRecord { stopped: Some(Stop::Member(2)), stage: Stage::Joining, ..record() };
    assert_eq!(
        stopped.admits(&id("g"), 0, None).unwrap_err().to_string(),
        "group g accepts no new members: a member of the fail-fast group ended without success"
    );
    let over = GroupRecord { stage: Stage::Joining, ..record() };
    assert!(matches!(over.admits(&id("g"), 0, None), Err(GroupError::Closed { .. })));
}

/// S6: such a sub-job would wait for its parent's turn, and the parent for it.
#[test]
fn a_sub_job_is_refused_in_the_lanes_of_the_jobs_that_wait_for_it() {
    let lane = |name: &str| Lane::new(name).unwrap();
    let parent = Parent { lane: Some(lane("own")), outer_lanes: vec![lane("outer")], ..parent() };
    assert_eq!(parent.turn(), Some(Turn { lane: lane("own"), generation: 1 }));
    let group = GroupRecord { parent: Some(parent), ..record() };
    for held in ["own", "outer"] {
        let refused = group.admits(&id("g"), 0, Some(&lane(held)));
        assert_eq!(refused, Err(GroupError::Lane { group: id("g"), lane: lane(held) }));
    }
    assert_eq!(group.admits(&id("g"), 0, Some(&lane("other"))), Ok(()));
    assert_eq!(record().admits(&id("g"), 0, Some(&lane("own"))), Ok(()), "the group has no parent");
}

#[test]
fn stages_that_a_group_does_not_have_are_skipped() {
    let at = WallMillis(9);
    let stages = |mut group: GroupRecord| {
        let mut stages = Vec::new();
        while !matches!(group.stage, Stage::Done { .. }) {
            group.stage = group.next_stage(at);
            stages.push(group.stage);
        }
        stages
    };
    let done = Stage::Done { at };
    assert_eq!(stages(record()), [Stage::Joining, done]);
    assert_eq!(stages(GroupRecord { join: false, ..record() }), [done]);
    let nested = GroupRecord { parent: Some(parent()), ..record() };
    assert_eq!(stages(nested.clone()), [Stage::Joining, Stage::Finishing, done]);
    assert_eq!(stages(GroupRecord { join: false, ..nested }), [Stage::Finishing, done]);
}

#[test]
fn the_jobs_of_the_stages_have_distinct_ids_and_a_summary_as_payload() {
    let joining = GroupRecord { stage: Stage::Joining, total: Some(2), ..record() };
    let (job, record) = joining.stage_job(&id("g"), WallMillis(1)).unwrap().unwrap();
    assert_eq!((job.as_str(), record.kind.as_str()), ("sum.join:@g", "sum.join"));
    assert_eq!(
        record.payload.bytes(),
        br#"{"group":"g","kind":"sum","total":2,"parent":null,"stopped":null}"#
    );
    let finishing = GroupRecord { stage: Stage::Finishing, parent: Some(parent()), ..joining };
    let (job, record) = finishing.stage_job(&id("p:x@1"), WallMillis(1)).unwrap().unwrap();
    assert_eq!((job.as_str(), record.kind.as_str()), ("p.finished:@p:x@1", "p.finished"));
}

fn kind(name: &str) -> Kind {
    Kind::new(name).unwrap()
}

#[test]
fn a_parent_has_one_group_per_kind_and_at_most_sixteen() {
    let first = GroupRecord { parent: Some(Parent { finish: false, ..parent() }), ..record() };
    assert_eq!(first.extended(&kind("sum"), false), Ok(first.clone()), "it is the group of this kind itself");
    let mut extended = first.clone();
    for n in 0..15 {
        extended = extended.extended(&kind(&format!("kind-{n}")), false).unwrap();
    }
    assert_eq!(extended.extended(&kind("kind-3"), false), Ok(extended.clone()), "there is one of this kind");
    assert_eq!((extended.number_of(&kind("sum")), extended.number_of(&kind("kind-3"))), (None, Some(3)));
    assert_eq!(extended.further_groups(&id("p@1.7a")).nth(3), Some(id("p@1.7a.3")));
    assert_eq!(
        extended.extended(&kind("kind-15"), false).unwrap_err().to_string(),
        "job p:x cannot have a group of kind-15: it has sub-jobs of 16 kinds already; submit these as sub-jobs of a sub-job"
    );
}

#[test]
fn each_group_of_a_parent_may_request_its_finished_job() {
    let first = GroupRecord { parent: Some(Parent { finish: false, ..parent() }), ..record() };
    let finishes = |group: &GroupRecord| group.parent.as_ref().unwrap().finish;
    let asked = first.extended(&kind("other"), true).unwrap();
    assert!(finishes(&asked));
    assert!(
        finishes(&asked.extended(&kind("sum"), false).unwrap()),
        "a call without it does not withdraw it"
    );
}

#[test]
fn the_ids_of_a_further_groups_jobs_fit_for_the_longest_id_of_a_first_group() {
    let payload = Payload::json(*b"1").unwrap();
    let job = JobRecord::new(kind("p"), payload, Uuid::from_u128(0x7a), WallMillis(1));
    let longest = (1..=128).map(|n| GroupId::of_sub_jobs(&JobId::new("x".repeat(n)).unwrap(), &job));
    let longest = longest.max_by_key(|group| group.as_str().len()).unwrap();
    let group = GroupRecord { kind: kind(&"k".repeat(60)), ..record() };
    assert_eq!(group.check(&longest.further(14)), Ok(()));
}

#[test]
fn values_at_their_bounds_are_accepted() {
    assert_eq!(record().sealed(&id("g"), MAX_MEMBERS).unwrap().total, Some(MAX_MEMBERS));
    let refused = record().sealed(&id("g"), MAX_MEMBERS + 1);
    assert_eq!(refused, Err(GroupError::TotalTooLarge { group: id("g"), total: MAX_MEMBERS + 1 }));
    let deepest = GroupRecord { parent: Some(Parent { depth: MAX_DEPTH, ..parent() }), ..record() };
    assert_eq!(deepest.check(&id("g")), Ok(()));
    // The id of the last member, "sum:GROUP:999999", has 128 bytes.
    let alone = GroupRecord { join: false, ..record() };
    assert_eq!(alone.check(&id(&"g".repeat(117))), Ok(()));
    assert!(matches!(alone.check(&id(&"g".repeat(118))), Err(GroupError::IdTooLong { .. })));
}

#[test]
fn an_abandoned_group_is_closed_and_has_no_join() {
    let abandoned = record().abandoned();
    assert_eq!((abandoned.stopped, abandoned.closed), (Some(Stop::Abandoned), true));
    assert!(record().has_join() && !abandoned.has_join());
}

#[test]
fn the_join_is_part_of_the_trace_of_its_group() {
    let trace = crate::trace::TraceContext::new([1; 16], [2; 8], 1).ok();
    let group = GroupRecord { stage: Stage::Joining, trace, ..record() };
    let (_, join) = group.stage_job(&id("g"), WallMillis(9)).unwrap().unwrap();
    assert!(trace.is_some());
    assert_eq!(join.trace, trace);
}

#[test]
fn the_letter_of_an_end_starts_its_name() {
    let names = End::ALL.map(|end| (end.letter(), end.as_str()));
    assert_eq!(names, [('s', "succeeded"), ('c', "cancelled"), ('d', "dead")]);
}
