//! Logins by role: what a stolen login of a worker, client or gateway cannot change, and a cluster in which each process has the
//! login of its role.

use std::fmt::Write as _;
use std::time::Duration;

use bellwether::access_lists::{Role, Roles, inspect};
use bellwether::client::{Cancelled, JobHandle, Schedule};
use bellwether::{Access, Client, Group, HandlerError, Handlers, Job, Kind, Node, ScheduleId, Scheme, State};
use bellwether_core::path::{self, Bucket};
use bellwether_gateway::Gateway;
use bellwether_testkit::{Program, ZooKeeperServer, eventually, eventually_some};
use serde_json::json;
use zookeeper_client::{Acl, Acls, AuthId, Client as ZooKeeper, CreateMode, Error, Permission};

use crate::command::{command, ran};
use crate::stage::{self, SOON, bare, tree};
use crate::work::ask;

fn password(role: Role) -> String {
    format!("password-of-{role}")
}

fn plain(role: Role) -> Access {
    Access::login(Scheme::Digest, role.name(), password(role))
}

/// The file of the roles, as the command prints it line by line.
fn file() -> String {
    let mut file = "# the roles of this test\n".to_owned();
    for role in Role::ALL {
        let mut identity = command(&["access", "identity", role.name(), "--zookeeper-user", role.name()]);
        let (code, line, stderr) = ran(identity.env("BELLWETHER_ZOOKEEPER_PASSWORD", password(role)));
        assert_eq!(code, 0, "{stderr}");
        assert!(!line.contains(&password(role)), "{line}");
        writeln!(file, "{}", line.trim()).unwrap();
    }
    file
}

fn access(file: &str, role: Role) -> Access {
    plain(role).roles(file.parse::<Roles>().unwrap())
}

/// Creates the namespace with the command of an operator.
fn create(to: &str, file: &str) {
    let roles = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(roles.path(), file).unwrap();
    let run = |what: &str| {
        let mut command = command(&["access", what, "--zookeeper", to, "--zookeeper-user", "operator"]);
        command.env("BELLWETHER_ZOOKEEPER_PASSWORD", password(Role::Operator));
        ran(command.arg("--zookeeper-roles").arg(roles.path()))
    };
    for what in ["repair", "check"] {
        let done = run(what);
        assert_eq!(done.0, 0, "{done:?}");
    }
}

async fn client(to: &str, file: &str, role: Role) -> Client {
    Client::builder(to).access(access(file, role)).connect().await.unwrap()
}

async fn node(to: &str, file: &str, role: Role, handlers: Option<Handlers>) -> Node {
    let builder = Node::builder(to)
        .access(access(file, role))
        .node_id(format!("{role}-{}", uuid::Uuid::new_v4().simple()))
        .session_timeout(Duration::from_secs(2))
        .drain_grace(Duration::from_secs(1))
        .candidate(role == Role::Candidate);
    match handlers {
        Some(handlers) => builder.handlers(handlers).slots(4).start().await.unwrap(),
        None => builder.start().await.unwrap(),
    }
}

/// Also runs a job that fails when it is stopped.
fn handlers() -> Handlers {
    stage::handlers().job("stay", async |context, (): ()| {
        context.cancelled().await;
        Err::<(), _>(HandlerError::new("stopped"))
    })
}

/// Waits until a job has this state.
async fn state(client: &Client, job: &JobHandle, wanted: State) {
    let found = async || client.get(job.id()).await.ok().flatten().map(|view| view.state);
    eventually("the job has the state", SOON, async || found().await == Some(wanted)).await;
}

/// A session of the client library alone, with the password of a role.
async fn thief(to: &str, role: Role) -> ZooKeeper {
    bare(to, Some((role.name(), &password(role)))).await
}

fn is_refused<T: std::fmt::Debug>(what: &str, result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::NoAuth)), "{what}: {result:?}");
}

/// Tries to create a child, and to set and delete the znode.
async fn refused_everything(thief: &ZooKeeper, role: Role, path: &str) {
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let child = format!("{}/intruder", path.trim_end_matches('/'));
    is_refused(&format!("{role} sets {path}"), thief.set_data(path, b"intruder", None).await);
    is_refused(&format!("{role} creates {child}"), thief.create(&child, b"", &open).await);
    if path != "/" {
        is_refused(&format!("{role} deletes {path}"), thief.delete(path, None).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_login_of_a_role_changes_neither_leadership_nor_settings_nor_access_lists() {
    let server = ZooKeeperServer::builder().memory().start();
    let (to, file) = (server.connect_string() + "/roles", file());
    create(&to, &file);
    let leader = node(&to, &file, Role::Candidate, None).await;
    let worker = node(&to, &file, Role::Worker, Some(handlers())).await;
    let (app, gateway) = (client(&to, &file, Role::Client).await, client(&to, &file, Role::Gateway).await);
    gateway.pause_kind(&Kind::new("paused").unwrap(), "a test").await.unwrap();
    let nightly = Schedule::every("nightly", Duration::from_secs(3600), Job::new("double", &1));
    gateway.schedules().add(&nightly).await.unwrap();
    let sleeping = app.submit(Job::new("stay", &()).id("sleeping")).await.unwrap();
    state(&app, &sleeping, State::Running).await;
    let operator = thief(&to, Role::Operator).await;
    let candidates = operator.list_children(path::ELECTION).await.unwrap();
    let registered = operator.list_children(path::WORKERS).await.unwrap();
    let [registered] = &registered[..] else { panic!("{registered:?}") };
    let (registration, inbox) =
        (format!("{}/{registered}", path::WORKERS), format!("{}/{registered}", path::ASSIGNMENTS));
    let assignment = format!("{inbox}/sleeping");
    let record = path::record(sleeping.id());
    let znodes = tree(&operator).await;

    for role in [Role::Worker, Role::Client, Role::Gateway] {
        let thief = thief(&to, role).await;
        let candidates = candidates.iter().map(|name| path::candidate(name));
        let leadership = [path::EPOCH, path::LEADING, path::LAYOUT, path::ELECTION, path::FAILOVER, "/"];
        for path in leadership.map(str::to_owned).into_iter().chain(candidates) {
            // A setting is for gateways.
            if path != path::FAILOVER || role != Role::Gateway {
                refused_everything(&thief, role, &path).await;
            }
        }
        let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
        is_refused("the znode of a single leader", thief.create(path::LEADER, b"", &ephemeral).await);
        is_refused("a candidate", thief.create(&path::candidate("x-n-0000000000"), b"", &ephemeral).await);
        if role != Role::Gateway {
            let settings = [path::CONFIG, path::RETENTION, path::PAUSES, "/pauses/paused", path::SCHEDULES];
            for path in settings.into_iter().chain(["/schedules/nightly"]) {
                refused_everything(&thief, role, path).await;
            }
            is_refused("a registration", thief.set_data(&registration, b"intruder", None).await);
            is_refused("an attempt of another process", thief.delete(&assignment, None).await);
            is_refused("a record", thief.delete(&record, None).await);
            is_refused("a new assignment", thief.create(&format!("{inbox}/x"), b"", &ephemeral).await);
        }
        for path in &znodes {
            let changed = thief.set_acl(path, &Acls::anyone_all(), None).await;
            if !matches!(changed, Err(Error::NoNode)) {
                is_refused(&format!("{role} opens {path}"), changed);
            }
        }
    }
    let stranger = thief(&to, Role::Client).await;
    let fake = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    is_refused("a worker of a client", stranger.create("/workers/fake", b"", &fake).await);
    is_refused("an inbox of a client", stranger.create("/assignments/fake", b"", &fake).await);
    is_refused("strangers read", bare(&to, None).await.get_data(path::EPOCH).await);
    // The cluster works on.
    assert!(matches!(app.cancel(sleeping.id()).await.unwrap(), Cancelled::Requested(_)));
    sleeping.wait(SOON).await.unwrap();
    worker.stop().await;
    leader.stop().await;
}

/// The name of the present leader.
async fn leader(client: &Client) -> String {
    let found = async || client.leader().await.ok().flatten();
    eventually_some("a leader", SOON, found).await.node.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_a_login_per_role_runs_jobs_schedules_and_groups_and_survives_losses() {
    let server = ZooKeeperServer::builder().memory().start();
    let (to, file) = (server.connect_string() + "/roles", file());
    create(&to, &file);
    let first = node(&to, &file, Role::Candidate, None).await;
    let worker = node(&to, &file, Role::Worker, Some(handlers())).await;
    let (app, gateway) = (client(&to, &file, Role::Client).await, client(&to, &file, Role::Gateway).await);

    // Jobs of a client: with a lane, delayed, retried, with sub-jobs and in a group.
    let done = async |job: Job| {
        let job = app.submit(job).await.unwrap();
        assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded, "{}", job.id());
        job
    };
    done(Job::new("double", &1).lane("account")).await;
    done(Job::new("double", &1).delay(Duration::from_secs(1))).await;
    done(Job::new("flaky", &()).backoff(Duration::from_millis(10), Duration::from_millis(10))).await;
    done(Job::new("parent", &()).max_attempts(1)).await;
    let group = app.group(Group::new("double", "g").total(3)).await.unwrap();
    assert_eq!(group.submit_all((0..3_u64).map(|n| Job::new("double", &n))).await.unwrap(), 3);
    assert!(group.wait(SOON).await.is_ok());

    // A schedule of a gateway.
    let beat = Schedule::every("beat", Duration::from_secs(1), Job::new("double", &1));
    assert!(app.schedules().add(&beat).await.is_err(), "a client adds no schedule");
    gateway.schedules().add(&beat).await.unwrap();
    let id = ScheduleId::new("beat").unwrap();
    let ticked = async || gateway.schedules().get(&id).await.ok()?.record.ok().map(|record| record.ticked);
    eventually("it ticks", SOON, async || ticked().await.is_some_and(|ticked| ticked >= 2)).await;

    // The leader is lost.
    let lost = leader(&gateway).await;
    let successor = node(&to, &file, Role::Candidate, None).await;
    first.abort().await;
    eventually("another leader", SOON, async || leader(&gateway).await != lost).await;
    let before = ticked().await.unwrap();
    eventually("the other candidate ticks", SOON, async || {
        ticked().await.is_some_and(|ticked| ticked > before + 1)
    })
    .await;
    gateway.schedules().remove(&id).await.unwrap();

    // A worker is lost, and another one is drained.
    let sleeping = app.submit(Job::new("stay", &()).id("sleeping")).await.unwrap();
    state(&app, &sleeping, State::Running).await;
    let second = node(&to, &file, Role::Worker, Some(handlers())).await;
    worker.abort().await;
    let lost = async || app.get(sleeping.id()).await.ok().flatten().is_some_and(|view| view.losses == 1);
    eventually("the attempt is lost", SOON, lost).await;
    state(&app, &sleeping, State::Running).await;
    let third = node(&to, &file, Role::Worker, Some(handlers())).await;
    let live = async |count| gateway.workers().await.is_ok_and(|workers| workers.len() == count);
    eventually("the third worker registers", SOON, async || live(2).await).await;
    second.stop().await;
    eventually("the drained worker has left", SOON, async || live(1).await).await;
    state(&app, &sleeping, State::Running).await;
    app.cancel(sleeping.id()).await.unwrap();
    sleeping.wait(SOON).await.unwrap();

    remote_worker(&to, &file, &app).await;
    for place in [successor, third] {
        place.stop().await;
    }
    let lists = inspect(&to, &access(&file, Role::Operator), SOON).await.unwrap();
    assert_eq!(lists.differed, 0, "{lists:?}");
}

/// A gateway pauses a kind and runs a job on a remote worker.
async fn remote_worker(to: &str, file: &str, app: &Client) {
    let client = Client::builder(to).access(access(file, Role::Gateway)).open().await.unwrap();
    let gateway = Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap()).start().await.unwrap();
    let at = gateway.address();
    let base = format!("/v1/remote-workers/{}", uuid::Uuid::new_v4());
    let settings = json!({ "node_id": "r", "kinds": [{ "kind": "remote" }], "slots": 1 }).to_string();
    let (status, answer) = ask(at, &format!("PUT {base}"), &settings).await;
    assert_eq!(status, 200, "{answer}");
    let job = app.submit(Job::new("remote", &1)).await.unwrap();
    let poll = json!({ "running": [], "limit": 1, "timeout": "20s" }).to_string();
    let (status, answer) = ask(at, &format!("POST {base}/poll"), &poll).await;
    let attempt = &answer["attempts"][0];
    assert_eq!((status, attempt["kind"].as_str()), (200, Some("remote")), "{answer}");
    let ended = json!({ "job": attempt["job"], "attempt": attempt["attempt"], "fencing_token": attempt["fencing_token"],
        "outcome": { "succeeded": { "json": 1 } } });
    let (status, answer) =
        ask(at, &format!("POST {base}/finish"), &json!({ "attempts": [ended] }).to_string()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    gateway.stop().await;
}

#[tokio::test]
async fn a_list_that_gives_a_role_more_is_refused_and_repaired_by_the_operator_alone() {
    let server = ZooKeeperServer::builder().program(Program::Keeper).memory().start();
    let (to, file) = (server.connect_string() + "/roles", file());
    let absent = Client::builder(&to).access(access(&file, Role::Worker)).connect().await.unwrap_err();
    assert!(absent.to_string().contains("there is no namespace"), "only the operator creates it: {absent}");
    create(&to, &file);
    let operator = thief(&to, Role::Operator).await;
    let bucket = Bucket::all().last().unwrap().members();
    for path in [path::EPOCH, path::CONFIG, &bucket] {
        let (mut list, _) = operator.get_acl(path).await.unwrap();
        let right = list.clone();
        list.push(Acl::new(Permission::WRITE, AuthId::new("ip", "127.0.0.1")));
        operator.set_acl(path, &Acls::new(&list), None).await.unwrap();
        for role in Role::ALL {
            let refused = Client::builder(&to).access(access(&file, role)).connect().await.unwrap_err();
            assert!(
                refused.to_string().contains(&format!("/roles{path}: ip:127.0.0.1 may WRITE")),
                "{refused}"
            );
        }
        create(&to, &file);
        assert_eq!(operator.get_acl(path).await.unwrap().0, right, "{path}");
    }
    let refused = plain(Role::Client).roles("operator digest:x:y".parse().unwrap());
    let refused = Client::builder(&to).access(refused).connect().await.unwrap_err();
    assert!(refused.to_string().contains("has no role"), "{refused}");
}
