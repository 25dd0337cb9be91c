//! The tree of a group.

use bellwether::{Group, Handlers, Job, Node};

use crate::browser::browse;
use crate::pages::{too_wide, violations};
use crate::stage::{SOON, Stage};

/// Members that have sub-jobs.
fn handlers() -> Handlers {
    let sum = Handlers::new().job("sum", |_, _: u32| async move { Ok(()) });
    let finished = sum.finished_job("parent", |_, _| async move { Ok("finished") });
    finished.job("parent", |context, children: u32| async move {
        let group = context.sub_jobs_of("sum").join(false).finished(true).open().await?;
        for number in 0..children {
            group.submit(number, Job::new("sum", &number)).await?;
        }
        Ok(())
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_their_sub_jobs_are_shown_as_a_tree() {
    let stage = Stage::new("console-tree").await;
    let node = Node::builder(&stage.to).handlers(handlers()).slots(4).start().await.unwrap();
    let client = bellwether::Client::connect(&stage.to).await.unwrap();
    let group = client.group(Group::new("parent", "night").total(2).join(false)).await.unwrap();
    group.submit_all([2_u32, 120].map(|children| Job::new("parent", &children))).await.unwrap();
    group.wait(SOON).await.unwrap();
    let inner = client.get(&"parent:night:1".parse().unwrap()).await.unwrap().unwrap().sub_jobs[0].clone();
    client.wait_group(&inner, SOON).await.unwrap();
    browse(stage.address(), async |page| {
        page.open("#/groups/night").await;
        page.shows("parent:night:1").await;
        let jobs = "return document.querySelectorAll('.tree a[href^=\"#/jobs/\"]').length";
        assert_eq!(page.run(jobs).await, 2);
        page.click(&format!("Members of {inner}")).await;
        page.until("the first hundred sub-jobs", async |page| page.run(jobs).await == 102).await;
        page.click("Show more members").await;
        page.until("all sub-jobs", async |page| page.run(jobs).await == 122).await;
        assert_eq!(violations(&page).await, Vec::<String>::new());
        page.looks(375, 900).await;
        assert!(too_wide(&page).await <= 0, "the tree fits on a small screen");
        page.screenshot("tree-small").await;
        // The refresh keeps the tree open.
        page.run("window.followed = performance.getEntriesByType('resource').length").await;
        page.until("the page is refreshed", async |page| {
            let more = "return performance.getEntriesByType('resource').length > window.followed + 3";
            page.run(more).await == true
        })
        .await;
        assert_eq!(page.run(jobs).await, 122);
        // Below the header, which stays in view.
        page.run("scrollTo(0, 0)").await;
        page.click(&format!("Members of {inner}")).await;
        page.until("the members only", async |page| page.run(jobs).await == 2).await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_links_to_its_join_and_to_the_finished_job_of_its_parent() {
    let stage = Stage::new("console-join").await;
    let handlers = handlers().join_job("sum", |_, _| async move { Ok("joined") });
    let node = Node::builder(&stage.to).handlers(handlers).slots(4).start().await.unwrap();
    let client = bellwether::Client::connect(&stage.to).await.unwrap();
    let group = client.group(Group::new("sum", "night").total(2)).await.unwrap();
    group.submit_all([1_u32, 2].map(|number| Job::new("sum", &number))).await.unwrap();
    client.submit(Job::new("parent", &3_u32).id("tree")).await.unwrap();
    group.wait(SOON).await.unwrap();
    stage.get("/v1/jobs/tree/wait").await.is(200);
    let inner = stage.get("/v1/jobs/tree").await.is(200).json()["sub_jobs"][0].as_str().unwrap().to_owned();
    stage.get(&format!("/v1/groups/{inner}/wait")).await.is(200);
    browse(stage.address(), async |page| {
        for (group, fact, result) in [("night", "Join", "joined"), (inner.as_str(), "Finished job", "finished")] {
            let link = format!(
                "const fact = [...document.querySelectorAll('dt')].find((dt) => dt.textContent === '{fact}'); \
                 return fact?.nextSibling.querySelector('a')"
            );
            page.open(&format!("#/groups/{group}")).await;
            page.until(fact, async |page| page.run(&format!("{link}?.href")).await.is_string()).await;
            page.run(&format!("{link}.click()")).await;
            page.shows("Ended as succeeded").await;
            page.shows(&format!("\"{result}\"")).await;
        }
    })
    .await;
    node.stop().await;
}
