//! Waiting for a usable session, and the outcomes of requests.

use bellwether_zk::NamespaceError;

use super::*;
use crate::client::Client;
use crate::client::in_memory::{Answer, Link, Request, World};

const WITHIN: Duration = Duration::from_secs(5);

fn refused() -> NamespaceError {
    NamespaceError::Absent { chroot: "/x".into(), known: 8 }
}

fn session(client: &Client) -> &Session {
    &client.0.session
}

#[test]
fn a_deadline_is_the_given_time_ahead_but_at_most_a_hundred_years() {
    let world = World::new();
    let client = world.client();
    let by = client.0.session.by(WITHIN);
    assert_eq!((by.at.since(world.now()), by.within), (WITHIN, WITHIN));
    let forever = client.0.session.by(Duration::MAX);
    let years = Duration::from_secs(100 * 365 * 24 * 3600);
    assert_eq!((forever.at.since(world.now()), forever.within), (years, Duration::MAX));
    assert_eq!(client.0.session.by(years).at, forever.at);
}

#[test]
fn a_session_is_usable_while_it_is_connected_and_served() {
    let world = World::new();
    let client = world.client();
    assert!(client.is_connected());
    for link in [Link::Lagging, Link::Down, Link::Connecting(None), Link::Refused(refused()), Link::Closed] {
        world.link(link);
        assert!(!client.is_connected());
    }
}

#[test]
fn a_call_waits_for_the_connection_until_its_deadline() {
    let world = World::new();
    let client = world.client();
    let by = || client.0.session.by(WITHIN);
    for link in [Link::Down, Link::Lagging, Link::Connecting(None)] {
        world.link(link);
        let began = world.now();
        world.run(session(&client).usable_by(by())).map(drop).unwrap_err();
        assert_eq!(world.now().since(began), WITHIN);
        let began = world.now();
        let later = async {
            session(&client).sleep(Duration::from_secs(2)).await;
            world.link(Link::Up);
        };
        let (usable, ()) = world.run(async { futures::join!(session(&client).usable_by(by()), later) });
        assert!(usable.is_ok());
        assert_eq!(world.now().since(began), Duration::from_secs(2));
    }
}

#[test]
fn a_lagging_session_is_looked_at_again_without_a_change_of_its_status() {
    let world = World::new();
    let client = world.client();
    world.link(Link::Lagging);
    let later = async {
        session(&client).sleep(Duration::from_secs(1)).await;
        world.serve();
    };
    let began = world.now();
    let (usable, ()) =
        world.run(async { futures::join!(session(&client).usable_by(session(&client).by(WITHIN)), later) });
    assert!(usable.is_ok());
    assert!(world.now().since(began) <= Duration::from_secs(1) + LAG);
}

#[test]
fn a_refused_or_closed_session_ends_the_wait_at_once() {
    let world = World::new();
    let client = world.client();
    for (link, reason) in
        [(Link::Refused(refused()), Unavailable::Refused(refused())), (Link::Closed, Unavailable::Closed)]
    {
        world.link(link);
        let began = world.now();
        let unusable = world.run(session(&client).usable_by(session(&client).by(WITHIN)));
        assert_eq!(unusable.map(drop), Err(reason));
        assert_eq!(world.now(), began);
    }
}

#[test]
fn the_reason_of_a_missed_deadline_is_the_state_of_the_session() {
    let world = World::new();
    let client = world.client();
    let by = session(&client).by(WITHIN);
    for (link, said, was_served) in [
        (Link::Connecting(Some("refused")), "refused", false),
        (Link::Connecting(None), "no answer from server:2181", false),
        (Link::Up, "server:2181 accepted a session but did not answer", true),
        (Link::Lagging, "server:2181 accepted a session but did not answer", true),
        (Link::Down, "the connection to server:2181 is lost", false),
    ] {
        world.link(link);
        let expected = Unavailable::NotInTime { within: WITHIN, reason: said.to_owned(), served: was_served };
        assert_eq!(session(&client).not_in_time(by), expected);
    }
    world.link(Link::Refused(refused()));
    assert_eq!(session(&client).not_in_time(by), Unavailable::Refused(refused()));
}

#[test]
fn a_read_is_repeated_after_a_lost_connection_and_ends_at_its_deadline() {
    let world = World::new();
    let client = world.client();
    let read = || {
        let by = session(&client).by(WITHIN);
        world.run(session(&client).read(by, |zk| zk.get(path::JOBS.to_owned())))
    };
    world.once(|_| true, [Answer::LoseReply, Answer::LoseRequest]);
    assert!(read().unwrap().is_some());
    assert_eq!(world.requests().len(), 3);
    world.once(|_| true, [Answer::Refuse(0, Reason::NoAuth)]);
    assert_eq!(read(), Err(Error::Refused(Reason::NoAuth)));
    world.once(|_| true, [Answer::Hang]);
    let began = world.now();
    assert!(matches!(read(), Err(Error::Unavailable(Unavailable::NotInTime { served: true, .. }))));
    assert_eq!(world.now().since(began), WITHIN);
}

#[test]
fn only_absent_things_are_read_again_after_the_server_has_caught_up() {
    let world = World::new();
    let client = world.client();
    let get = |paths: &[&str]| {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        let (session, look) = (session(&client), |zk: Zk, paths| zk.get_many(paths));
        world.run(session.read_each(session.by(WITHIN), paths, Option::is_none, look)).unwrap()
    };
    assert_eq!(get(&["/jobs", "/ready"]).iter().flatten().count(), 2);
    assert_eq!(world.requests().len(), 1);
    // The server lags behind until it is synced.
    world.script(|request, tree| {
        if *request == Request::Sync {
            tree.put("/jobs/00/late", *b"");
        }
        Answer::Serve
    });
    let found = get(&["/jobs/00/late", "/jobs", "/jobs/00/never"]);
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false]);
    let again = Request::Get(vec!["/jobs/00/late".into(), "/jobs/00/never".into()]);
    assert_eq!(world.requests()[1..], [Request::Sync, again]);
}

#[test]
fn a_write_is_applied_rejected_or_unknown_and_a_refusal_is_an_error() {
    let world = World::new();
    let client = world.client();
    let commit = |answer: Answer| {
        world.once(|_| true, [answer]);
        let by = session(&client).by(WITHIN);
        world.run(session(&client).commit(by, vec![bellwether_core::txn::read_clock()]))
    };
    assert_eq!(commit(Answer::Serve), Ok(Written::Applied));
    for unknown in [Answer::LoseReply, Answer::LoseRequest, Answer::Hang] {
        assert_eq!(commit(unknown), Ok(Written::Unknown));
    }
    for reason in [Reason::NoNode, Reason::NodeExists, Reason::BadVersion, Reason::NotSent] {
        assert_eq!(commit(Answer::Refuse(0, reason)), Ok(Written::Rejected));
    }
    for reason in [
        Reason::NotEmpty,
        Reason::NoAuth,
        Reason::OverBudget("x".into()),
        Reason::Refused("x".into()),
        Reason::Other("x".into()),
    ] {
        assert_eq!(commit(Answer::Refuse(0, reason.clone())), Err(Error::Refused(reason)));
    }
}

#[test]
fn a_follower_of_the_session_learns_of_its_end() {
    let world = World::new();
    let client = world.client();
    let later = async {
        session(&client).sleep(Duration::from_secs(1)).await;
        world.link(Link::Down);
        session(&client).sleep(Duration::from_secs(1)).await;
        world.link(Link::Closed);
    };
    let began = world.now();
    world.run(async { futures::join!(session(&client).over(), later) });
    assert_eq!(world.now().since(began), Duration::from_secs(2));
}

#[test]
fn a_timer_ends_after_its_time_and_a_timeout_only_if_the_future_is_later() {
    let world = World::new();
    let client = world.client();
    let session = session(&client);
    let began = world.now();
    world.run(session.sleep(WITHIN));
    assert_eq!(world.now().since(began), WITHIN);
    world.run(session.timeout(WITHIN, std::future::pending::<()>())).unwrap_err();
    assert_eq!(world.now().since(began), 2 * WITHIN);
    assert_eq!(world.run(session.timeout(WITHIN, async { 7 })), Ok(7));
    assert_eq!(world.now().since(began), 2 * WITHIN);
}

#[test]
fn a_closed_client_reports_that_to_the_calls_of_its_other_handles() {
    let world = World::new();
    let client = world.client();
    let other = client.clone();
    assert_eq!(world.run(client.open_znodes()), Some(vec!["/open".to_owned()]));
    assert!(client.node_builder().is_none(), "it was not connected by an address");
    world.run(client.close());
    assert!(!other.is_connected());
    let closed = world.run(session(&other).usable_by(session(&other).by(WITHIN)));
    assert_eq!(closed.map(drop), Err(Unavailable::Closed));
}
