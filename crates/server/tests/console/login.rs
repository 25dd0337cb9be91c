//! Tokens and roles.

use bellwether_gateway::Protection;
use bellwether_gateway::access::Role;

use crate::ask::Ask;
use crate::browser::browse;
use crate::stage::{Secrets, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_logs_in_sees_everything_and_can_change_nothing() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage =
        Stage::with("console-login", |builder| builder.protection(Protection::default().tokens(tokens)))
            .await;
    let job = Ask::post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).token(secrets.of(Role::Submit));
    job.of(stage.address()).await.is(201);
    create_schedule_and_group(&stage, &secrets).await;
    browse(stage.address(), async |page| {
        page.open("#/settings").await;
        page.fill("token", "wrong").await;
        page.click("Log in").await;
        page.shows("does not know the token").await;
        page.fill("token", secrets.of(Role::Read)).await;
        page.click("Log in").await;
        page.shows("Log out read").await;
        page.shows("Records at most").await;
        for button in ["Save", "Purge…"] {
            assert!(!page.is_enabled(button).await, "{button}");
        }
        page.run("location.hash = '#/audit'").await;
        page.shows("This page needs the role operate").await;
        page.run("location.hash = '#/jobs'").await;
        page.click("Select all loaded jobs").await;
        for button in ["Cancel selected", "Retry selected", "Purge selected"] {
            assert!(!page.is_enabled(button).await, "{button}");
        }
        page.run("location.hash = '#/schedules/nightly'").await;
        for button in ["Trigger now", "Pause", "Edit", "Remove"] {
            assert!(!page.is_enabled(button).await, "{button}");
        }
        page.run("location.hash = '#/groups/report-1'").await;
        assert!(!page.is_enabled("Abandon").await);
        page.click("Log out read").await;
        page.shows("This gateway requires a token.").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_can_edit_schedules_and_abandon_groups_and_sees_refused_requests() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage =
        Stage::with("console-operator", |builder| builder.protection(Protection::default().tokens(tokens)))
            .await;
    create_schedule_and_group(&stage, &secrets).await;
    // Callers choose request ids, so two lines may have the same one.
    for token in ["unknown", secrets.of(Role::Read)] {
        let refused = Ask::post("/v1/jobs", "{}").token(token).header("x-request-id: same");
        refused.of(stage.address()).await;
    }
    browse(stage.address(), async |page| {
        page.open("#/schedules/nightly").await;
        page.fill("token", secrets.of(Role::Operate)).await;
        page.click("Log in").await;
        assert!(page.is_enabled("Edit").await);
        page.run("location.hash = '#/groups/report-1'").await;
        assert!(page.is_enabled("Abandon").await);
        page.run("location.hash = '#/audit'").await;
        page.shows("the last 100 requests that were refused").await;
        page.shows("401").await;
        page.shows("403").await;
        // The console's own requests before the login were refused, too: they have other paths.
        let lines = "return document.querySelectorAll('tbody span[title=\"/v1/jobs\"]').length";
        assert_eq!(page.run(lines).await, 2, "{}", page.text().await);
    })
    .await;
}

/// Creates the schedule `nightly` and the group `report-1`.
async fn create_schedule_and_group(stage: &Stage, secrets: &Secrets) {
    let operator = secrets.of(Role::Operate);
    let schedule = r#"{"id": "nightly", "cron": "30 2 * * *", "job": {"kind": "sum"}}"#;
    Ask::post("/v1/schedules", schedule).token(operator).of(stage.address()).await.is(201);
    let group = r#"{"kind": "sum", "id": "report-1"}"#;
    Ask::post("/v1/groups", group).token(operator).of(stage.address()).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_can_change_the_settings() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage =
        Stage::with("console-admin", |builder| builder.protection(Protection::default().tokens(tokens)))
            .await;
    browse(stage.address(), async |page| {
        page.open("#/settings").await;
        page.fill("token", secrets.of(Role::Admin)).await;
        page.click("Log in").await;
        page.shows("Log out admin").await;
        assert!(page.is_enabled("Save").await);
    })
    .await;
}
