//! Sub-jobs of sub-jobs.

use bellwether::handler::with_state;
use bellwether::{Handlers, JobKind, JoinKind, ParentKind};

use crate::stage::{Runs, SOON, cluster, done, sub_jobs};

const LEVELS: u32 = 3;
const CHILDREN: u32 = 2;

struct Tree;

impl JobKind for Tree {
    const NAME: &'static str = "tree";
    type Payload = u32;
    type Result = u32;
}

impl JoinKind for Tree {
    type Joined = u32;
}

impl ParentKind for Tree {
    type SubJob = Self;
    type Finished = u32;
}

/// A node of a tree with two children, three levels deep. Each level's finished handler runs after all levels below.
fn tree(runs: &Runs) -> Handlers {
    let runs = with_state(runs.clone());
    Handlers::new()
        .add(runs.kind::<Tree>(|runs, context, level| async move {
            if level > 0 {
                let group = context.sub_jobs::<Tree>().finished(true).open().await?;
                for number in 0..CHILDREN {
                    group.submit(number, Tree::job(&(level - 1))).await?;
                }
            }
            runs.note(format!("node {level}"));
            Ok(level)
        }))
        .add(runs.join::<Tree>(|runs, _, mut members| async move {
            let (mut level, mut count) = (0, 0_u32);
            while let Some(member) = members.next().await? {
                level = member.into_result()? + 1;
                count += 1;
            }
            runs.note(format!("join {level}"));
            Ok(count)
        }))
        .add(runs.finished::<Tree>(|runs, _, finished| async move {
            runs.note(format!("finished {}", finished.parent_result()?));
            assert_eq!(finished.join_result()?, Some(CHILDREN));
            Ok(finished.group.succeeded)
        }))
}

/// S7
#[tokio::test]
async fn finished_handlers_run_from_the_leaves_to_the_root_three_deep() {
    let runs = Runs::default();
    let cluster = cluster(tree(&runs), 2).await;
    let client = cluster.client();
    let root = client.submit(Tree::job(&LEVELS).id("root")).await.unwrap();
    let group = sub_jobs(client, "root").await;
    let view = done(client, &group).await;
    assert_eq!((view.succeeded, view.total), (CHILDREN, Some(CHILDREN)), "sealed when the handler ended");
    assert_eq!(root.finished_result(SOON).await.unwrap(), CHILDREN);
    for level in 1..=LEVELS {
        let below = CHILDREN.pow(LEVELS - level) as usize;
        assert_eq!(runs.count(&format!("finished {level}")), below, "{:?}", runs.all());
        assert_eq!(runs.count(&format!("join {level}")), below);
    }
    assert_eq!(runs.count("node 0"), 8);
    assert!(runs.last("finished 1") < runs.first("join 3"), "{:?}", runs.all());
    assert!(runs.last("join 3") < runs.first("finished 3"));
    cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_member_with_sub_jobs_ends_after_them() {
    let runs = Runs::default();
    let cluster = cluster(tree(&runs), 1).await;
    let client = cluster.client();
    let group = client.group(Tree::group("forest").total(2)).await.unwrap();
    for number in 0..2 {
        group.submit(number, Tree::job(&1)).await.unwrap();
    }
    done(client, "forest").await;
    assert_eq!(runs.count("finished 1"), 2);
    assert!(runs.last("finished 1") < runs.first("join 2"), "{:?}", runs.all());
    cluster.stop().await.unwrap();
}
