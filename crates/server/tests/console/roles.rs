//! Each button is enabled for the roles that may use it, and for no other.

use bellwether_gateway::Protection;
use bellwether_gateway::access::Role;

use crate::ask::Ask;
use crate::browser::{Page, browse};
use crate::stage::{Secrets, Stage};

/// Pages and their buttons. `{node}` is the worker's node.
const OPERATE: &[(&str, &[&str])] = &[
    ("#/jobs/open", &["Cancel"]),
    ("#/jobs/ended", &["Retry"]),
    ("#/groups/report-1", &["Abandon"]),
    ("#/schedules/nightly", &["Trigger now", "Pause", "Edit", "Remove"]),
    ("#/kinds", &["Pause sum"]),
    ("#/workers", &["Change {node}", "Drain {node}"]),
    ("#/workers/{worker}", &["Change {node}", "Drain {node}"]),
];
const ADMIN: &[(&str, &[&str])] = &[("#/settings", &["Set", "Save", "Purge…"])];

/// Selects all jobs and checks the buttons of a selection.
async fn selection(page: &Page, role: Role) {
    page.run("location.hash = '#/jobs'").await;
    page.shows("2 loaded").await;
    page.click("Select all loaded jobs").await;
    for (button, needs) in [
        ("Cancel selected", Role::Operate),
        ("Retry selected", Role::Operate),
        ("Purge selected", Role::Admin),
    ] {
        assert_eq!(page.is_enabled(button).await, role.permits(needs), "{button}, {role:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_action_is_enabled_for_its_role_and_the_roles_above() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage =
        Stage::with("console-roles", |builder| builder.protection(Protection::default().tokens(tokens)))
            .await;
    let node = stage.node().await;
    let admin = secrets.of(Role::Admin);
    for (path, body) in [
        ("/v1/jobs", r#"{"id": "open", "kind": "nobody"}"#),
        ("/v1/jobs", r#"{"id": "ended", "kind": "nobody"}"#),
        ("/v1/jobs/ended/cancel", ""),
        ("/v1/schedules", r#"{"id": "nightly", "cron": "30 2 * * *", "job": {"kind": "sum"}}"#),
        ("/v1/groups", r#"{"kind": "sum", "id": "report-1"}"#),
    ] {
        let done = Ask::post(path, body).token(admin).of(stage.address()).await;
        assert!((200..300).contains(&done.status), "{path}: {}", done.text());
    }
    let workers = Ask::get("/v1/workers").token(admin).of(stage.address()).await.is(200).json();
    let [name, worker] = ["node", "id"].map(|field| workers[0][field].as_str().unwrap());
    for role in [Role::Read, Role::Submit, Role::Operate, Role::Admin] {
        browse(stage.address(), async |page| {
            page.open("#/jobs").await;
            page.fill("token", secrets.of(role)).await;
            page.click("Log in").await;
            page.shows(&format!("Log out {}", role.as_str())).await;
            selection(&page, role).await;
            for (pages, needs) in [(OPERATE, Role::Operate), (ADMIN, Role::Admin)] {
                for (address, buttons) in pages {
                    let address = address.replace("{worker}", worker);
                    page.run(&format!("location.hash = '{address}'")).await;
                    for button in *buttons {
                        let button = button.replace("{node}", name);
                        assert_eq!(
                            page.is_enabled(&button).await,
                            role.permits(needs),
                            "{address}: {button}, {role:?}"
                        );
                    }
                }
            }
        })
        .await;
    }
    node.stop().await;
}
