//! Tokens and roles.

use bellwether_server::http::access::Role;

use crate::ask::Ask;
use crate::browser::browse;
use crate::stage::{Secrets, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_logs_in_sees_everything_and_can_change_nothing() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage = Stage::with("console-login", |builder| builder.tokens(tokens)).await;
    let job = Ask::post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).token(secrets.of(Role::Submit));
    job.of(stage.address()).await.is(201);
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
        page.click("Log out read").await;
        page.shows("This gateway requires a token.").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_can_change_the_settings() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage = Stage::with("console-admin", |builder| builder.tokens(tokens)).await;
    browse(stage.address(), async |page| {
        page.open("#/settings").await;
        page.fill("token", secrets.of(Role::Admin)).await;
        page.click("Log in").await;
        page.shows("Log out admin").await;
        assert!(page.is_enabled("Save").await);
    })
    .await;
}
