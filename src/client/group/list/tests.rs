//! Pages of groups.

use std::sync::Arc;

use bellwether_core::group::{GroupRecord, Stage};
use bellwether_core::path;

use super::*;
use crate::client::Untyped;
use crate::client::group::Group;
use crate::client::in_memory::World;
use crate::client::page::MAX_LOOKED_AT;

fn stage(groups: usize) -> (Arc<World>, Client) {
    let world = World::new();
    let client = world.client();
    for n in 0..groups {
        world.run(client.group::<Untyped>(Group::new("sum", format!("g{n}")).total(1))).unwrap();
    }
    (world, client)
}

fn pages(world: &World, client: &Client, stage: Option<GroupStage>, limit: usize) -> Vec<Vec<String>> {
    let (mut pages, mut from) = (Vec::new(), None::<GroupId>);
    loop {
        let page = world.run(client.list_groups(stage, from.as_ref(), limit)).unwrap();
        pages.push(page.items.into_iter().map(|group| group.id.to_string()).collect());
        match page.next {
            Some(next) => from = Some(next),
            None => return pages,
        }
    }
}

#[test]
fn each_group_is_in_one_page() {
    let (world, client) = stage(30);
    let all = (0..30).map(|n| format!("g{n}")).collect::<BTreeSet<_>>();
    for limit in [1, 7, 29, 30, 31] {
        let pages = pages(&world, &client, None, limit);
        assert!(pages.iter().all(|page| page.len() <= limit));
        assert_eq!(pages.len(), 30 / limit + 1);
        let ids = pages.concat();
        assert_eq!((ids.len(), ids.into_iter().collect::<BTreeSet<_>>()), (30, all.clone()));
    }
}

#[test]
fn groups_are_listed_by_their_stage_and_those_that_cannot_be_read_only_without_one() {
    let (world, client) = stage(3);
    let path = |name: &str| path::group(&GroupId::new(name).unwrap());
    let joining = |record: GroupRecord| GroupRecord { stage: Stage::Joining, ..record };
    world.tree().update(&path("g1"), joining);
    world.tree().put(&path("g2"), *b"?");
    let list = |stage| {
        let mut ids = pages(&world, &client, stage, 10).concat();
        ids.sort();
        ids
    };
    assert_eq!(list(Some(GroupStage::Open)), ["g0"]);
    assert_eq!(list(Some(GroupStage::Joining)), ["g1"]);
    assert_eq!(list(None), ["g0", "g1", "g2"]);
    let page = world.run(client.list_groups(None, None, 10)).unwrap();
    let unreadable = page.items.iter().filter(|group| group.record.is_none()).collect::<Vec<_>>();
    assert_eq!(unreadable.len(), 1);
    let record = page.items.iter().find_map(|group| group.record.clone()).unwrap();
    assert_eq!((record.kind.as_str(), record.total), ("sum", Some(1)));
}

#[test]
fn a_page_looks_at_a_limited_number_of_groups() {
    let (world, client) = stage(1);
    let data = world.tree().get(&path::group(&GroupId::new("g0").unwrap())).unwrap().data;
    for n in 1..MAX_LOOKED_AT + 1 {
        world.tree().put(&path::group(&GroupId::new(format!("g{n}")).unwrap()), data.clone());
    }
    assert_eq!(pages(&world, &client, Some(GroupStage::Done), 10), [[""; 0], [""; 0]]);
}
