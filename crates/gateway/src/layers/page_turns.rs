//! Turns for reading pages of jobs, groups, lanes and schedules.
//!
//! A page of jobs costs about ten milliseconds of a processor, and a caller may ask for as many as it may have requests. So one page of
//! each caller is read at a time, and a few of all callers. If pages of a caller wait for their turn, the caller also pauses after each page
//! for as long as the page took: its pages use at most half of one processor. A caller that asks for one page after the other never
//! pauses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as FairMutex, OwnedMutexGuard, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::admission::Key;
use super::credentials::Caller;

#[derive(Debug)]
pub(crate) struct PageTurns {
    /// Pages that are read at the same time.
    all: Semaphore,
    /// Has at most as many callers as there are requests.
    callers: Mutex<HashMap<Key, Pages>>,
}

/// The pages of one caller that are read or wait.
#[derive(Debug)]
struct Pages {
    number: usize,
    /// Held while a page is read. The end of the pause after the last page.
    turn: Arc<FairMutex<Instant>>,
}

/// The turn of one page, until it is dropped.
#[derive(Debug)]
pub(crate) struct PageTurn<'a> {
    began: Instant,
    // The order of the fields is the order in which they are dropped.
    pause_until: OwnedMutexGuard<Instant>,
    _of_all: SemaphorePermit<'a>,
    _place: Place<'a>,
}

/// A page is read or waits.
#[derive(Debug)]
struct Place<'a> {
    turns: &'a PageTurns,
    key: Key,
}

impl PageTurns {
    pub(crate) fn new(at_once: usize) -> Self {
        Self { all: Semaphore::new(at_once), callers: Mutex::default() }
    }

    /// Waits for the turn of this caller. The turns of a caller, and of all callers, are in the order of their requests.
    pub(crate) async fn next(&self, caller: &Caller) -> PageTurn<'_> {
        let (place, turn) = self.enter(Key::of(caller));
        let pause_until = match Arc::clone(&turn).try_lock_owned() {
            Ok(free) => free,
            Err(_) => {
                let after_others = turn.lock_owned().await;
                sleep_until(*after_others).await;
                after_others
            }
        };
        let of_all = self.all.acquire().await.expect("the semaphore is never closed");
        PageTurn { began: Instant::now(), pause_until, _of_all: of_all, _place: place }
    }

    fn enter(&self, key: Key) -> (Place<'_>, Arc<FairMutex<Instant>>) {
        let mut callers = self.callers();
        let new = || Pages { number: 0, turn: Arc::new(FairMutex::new(Instant::now())) };
        let pages = callers.entry(key.clone()).or_insert_with(new);
        pages.number += 1;
        (Place { turns: self, key }, Arc::clone(&pages.turn))
    }

    fn callers(&self) -> MutexGuard<'_, HashMap<Key, Pages>> {
        // The numbers are valid at every moment.
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PageTurn<'_> {
    fn drop(&mut self) {
        let now = Instant::now();
        *self.pause_until = now + now.duration_since(self.began);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut callers = self.turns.callers();
        if let Some(pages) = callers.get_mut(&self.key) {
            pages.number -= 1;
            if pages.number == 0 {
                callers.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use tokio::time::sleep;

    use super::*;
    use crate::access::Role;
    use crate::layers::credentials::Credential;

    /// How long reading a page takes.
    const PAGE: Duration = Duration::from_millis(20);

    fn caller(name: &str) -> Caller {
        let credential = Credential::Token;
        Caller { credential, name: name.into(), role: Role::Read, scope: Arc::default(), address: None }
    }

    #[tokio::test]
    async fn one_page_of_a_caller_and_a_few_of_all_are_read_at_a_time() {
        let turns = PageTurns::new(2);
        let [a, b, c] = ["a", "b", "c"].map(caller);
        let first = turns.next(&a).await;
        assert!(turns.next(&a).now_or_never().is_none(), "one page of a caller");
        let _of_b = turns.next(&b).now_or_never().expect("another caller does not wait");
        assert!(turns.next(&c).now_or_never().is_none(), "two pages of all callers");
        drop(first);
        assert!(turns.next(&c).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_caller_whose_pages_wait_pauses_as_long_as_each_page_took() {
        let turns = PageTurns::new(8);
        let a = caller("a");
        let first = turns.next(&a).await;
        let mut second = Box::pin(turns.next(&a));
        assert!(second.as_mut().now_or_never().is_none());
        sleep(PAGE).await;
        drop(first);
        let ended = Instant::now();
        let second = second.await;
        assert!(ended.elapsed() >= PAGE, "{:?}", ended.elapsed());
        let _of_b = turns.next(&caller("b")).now_or_never().expect("another caller does not pause");
        drop(second);
    }

    #[tokio::test]
    async fn a_caller_that_asks_for_one_page_after_the_other_does_not_pause() {
        let turns = PageTurns::new(8);
        let a = caller("a");
        for _ in 0..3 {
            let page = turns.next(&a).now_or_never().expect("without a pause");
            sleep(PAGE).await;
            drop(page);
        }
    }

    #[tokio::test]
    async fn a_page_whose_request_ends_early_leaves_its_turn_to_the_next_one() {
        let turns = PageTurns::new(8);
        let a = caller("a");
        let first = turns.next(&a).await;
        let mut waits = Box::pin(turns.next(&a));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(waits);
        drop(first);
        assert!(turns.callers().is_empty(), "callers without pages are forgotten");
        assert!(turns.next(&a).now_or_never().is_some());
    }
}
