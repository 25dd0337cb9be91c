//! The death of a job creates its dead-letter job, whichever process ends it.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::client::JobOptions;
use bellwether::handler::{DeadLetter, dead_letter_job, with_state};
use bellwether::testing::Cluster;
use bellwether::{HandlerError, Handlers, JobKind, State, handler};
use bellwether_testkit::eventually;

use crate::stage::{Gate, LEASE, SOON, job, over};

struct Bill;

impl JobKind for Bill {
    const NAME: &'static str = "bill";
    type Payload = u32;
    type Result = ();

    fn defaults() -> JobOptions {
        JobOptions::new().max_attempts(1).dead_letter(true)
    }
}

type Letters = Arc<Mutex<Vec<(String, String)>>>;

fn note<K>(letters: &Letters, letter: &DeadLetter<K>) {
    letters.lock().unwrap().push((letter.job.to_string(), letter.error.clone()));
}

/// Handlers of jobs that die, and of their dead-letter jobs.
fn handlers(gate: &Gate, letters: &Letters) -> Handlers {
    let refuses = handler::<Bill>(|_, _| async { Err(HandlerError::new("no funds")) });
    let hangs = handler::job("hangs", |_, (): ()| async { pending::<Result<(), HandlerError>>().await });
    // The thread ignores its cancellation, so the leader takes the job after the lease.
    let blocks = with_state(gate.clone()).blocking_job("blocks", |gate, _, (): ()| {
        gate.block();
        Ok(())
    });
    let noted = letters.clone();
    let bills = handler::dead_letter::<Bill>(move |_, letter| {
        let noted = noted.clone();
        async move {
            note(&noted, &letter);
            assert_eq!(letter.payload().unwrap(), Some(7));
            Ok(())
        }
    });
    let others = ["hangs", "blocks", "nobody"].map(|kind| {
        let noted = letters.clone();
        dead_letter_job(kind, move |_, letter| {
            note(&noted, &letter);
            async { Ok(()) }
        })
    });
    let all = Handlers::new().add(refuses).add(hangs.lease(LEASE)).add(blocks.lease(LEASE)).add(bills);
    others.into_iter().fold(all, Handlers::add)
}

#[tokio::test]
async fn each_death_has_one_dead_letter_job_whichever_process_ends_the_job() {
    let (gate, letters) = (Gate::new(), Letters::default());
    let cluster = Cluster::builder(handlers(&gate, &letters)).start().await.unwrap();
    let client = cluster.client();
    client.submit(Bill::job(&7).id("by-the-worker")).await.unwrap();
    for (kind, id) in [("hangs", "by-its-lease"), ("blocks", "by-the-leader")] {
        client.submit(job(kind, id).max_losses(1).dead_letter(true)).await.unwrap();
    }
    let expires = job("nobody", "by-its-expiry").expires_in(Duration::from_secs(1)).dead_letter(true);
    client.submit(expires).await.unwrap();
    client.submit(job("nobody", "without").expires_in(Duration::from_secs(1))).await.unwrap();

    for id in ["by-the-worker", "by-its-lease", "by-the-leader", "by-its-expiry", "without"] {
        let view = over(&cluster, id).await;
        assert_eq!(view.state, State::Dead, "{view:?}");
    }
    eventually("the handlers of the dead-letter jobs have run", SOON, async || {
        letters.lock().unwrap().len() >= 4
    })
    .await;
    client.retry(&"by-the-worker".parse().unwrap()).await.unwrap();
    eventually("the second death has its own dead-letter job", SOON, async || {
        letters.lock().unwrap().len() >= 5
    })
    .await;
    gate.open();
    cluster.stop().await.unwrap();
    let mut letters = letters.lock().unwrap().clone();
    letters.sort();
    let [expiry, lease, leader, first, second] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((expiry.0.as_str(), first), ("by-its-expiry", second));
    assert_eq!(first, &("by-the-worker".to_owned(), "no funds".to_owned()));
    for (letter, id) in [(lease, "by-its-lease"), (leader, "by-the-leader")] {
        assert_eq!(letter.0, id);
        assert!(letter.1.contains("expired without a renewal"), "{letter:?}");
    }
}
