//! Sub-jobs of sub-jobs.

use bellwether::handler::with_state;
use bellwether::{Group, Handlers, Job};
use serde_json::json;

use crate::stage::{Runs, cluster, done, result, sub_jobs};

const LEVELS: u32 = 3;
const CHILDREN: u32 = 2;

/// A node of a tree with two children, three levels deep. Each level's finished handler runs after all levels below.
fn tree(runs: &Runs) -> Handlers {
    let runs = with_state(runs.clone());
    Handlers::new()
        .add(runs.job("tree", |runs, context, level: u32| async move {
            if level > 0 {
                let group = context.sub_jobs("tree").open().await?;
                for number in 0..CHILDREN {
                    group.submit(number, Job::new("tree", &(level - 1))?).await?;
                }
            }
            runs.note(format!("node {level}"));
            Ok(level)
        }))
        .add(runs.join("tree", |runs, _, mut members| async move {
            let (mut level, mut count) = (0, 0_u32);
            while let Some(member) = members.next().await? {
                level = member.result::<u32>().unwrap_or_default() + 1;
                count += 1;
            }
            runs.note(format!("join {level}"));
            Ok(count)
        }))
        .add(runs.finished("tree", |runs, _, finished| async move {
            let level = finished.parent.result.as_ref().map(|level| level.bytes().to_vec());
            runs.note(format!("finished {}", String::from_utf8(level.unwrap_or_default())?));
            Ok(finished.group.succeeded)
        }))
}

/// S7
#[tokio::test]
async fn finished_handlers_run_from_the_leaves_to_the_root_three_deep() {
    let runs = Runs::default();
    let cluster = cluster(tree(&runs), 2).await;
    let client = cluster.client();
    client.submit(Job::new("tree", &LEVELS).unwrap().id("root")).await.unwrap();
    let group = sub_jobs(client, "root").await;
    let view = done(client, &group).await;
    assert_eq!((view.succeeded, view.total), (CHILDREN, Some(CHILDREN)), "sealed when the handler ended");
    assert_eq!(result(client, &format!("tree.finished:@{group}")).await, json!(2));
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
    let group = client.group(Group::new("tree", "forest").unwrap().total(2)).await.unwrap();
    for number in 0..2 {
        group.submit(number, Job::new("tree", &1).unwrap()).await.unwrap();
    }
    done(client, "forest").await;
    assert_eq!(runs.count("finished 1"), 2);
    assert!(runs.last("finished 1") < runs.first("join 2"), "{:?}", runs.all());
    cluster.stop().await.unwrap();
}
