//! The slots of a process. They outlive incarnations, and an operator can change their number while handlers run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    permits: Arc<Semaphore>,
    number: Arc<Mutex<Number>>,
}

#[derive(Debug)]
struct Number {
    slots: u32,
    /// Slots that end when their runs do, because the number was lowered.
    owed: u32,
}

/// A slot in use. It is returned when this is dropped.
#[derive(Debug)]
pub(super) struct SlotPermit {
    permit: Option<OwnedSemaphorePermit>,
    slots: Slots,
}

impl Slots {
    pub(super) fn new(slots: u32) -> Self {
        let permits = Arc::new(Semaphore::new(slots as usize));
        Self { permits, number: Arc::new(Mutex::new(Number { slots, owed: 0 })) }
    }

    fn number(&self) -> MutexGuard<'_, Number> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of free slots.
    pub(super) fn free(&self) -> usize {
        self.permits.available_permits()
    }

    /// Sets the number of slots. Runs that use more slots than remain continue.
    pub(super) fn resize(&self, slots: u32) {
        let mut number = self.number();
        let more = slots.saturating_sub(number.slots);
        let kept = more.min(number.owed);
        number.owed -= kept;
        self.permits.add_permits((more - kept) as usize);
        let fewer = number.slots.saturating_sub(slots);
        let ended = u32::try_from(self.permits.forget_permits(fewer as usize)).unwrap_or(fewer);
        number.owed += fewer - ended;
        number.slots = slots;
    }

    /// Takes a slot if one is free.
    pub(super) fn try_acquire(&self) -> Option<SlotPermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok().map(|permit| self.permit(permit))
    }

    /// Waits for a slot.
    pub(super) async fn acquire(&self) -> SlotPermit {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        self.permit(permit.expect("the slots are never closed"))
    }

    fn permit(&self, permit: OwnedSemaphorePermit) -> SlotPermit {
        SlotPermit { permit: Some(permit), slots: self.clone() }
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        // The permit is released under the lock: between the two, `resize` would count it as still used.
        let mut number = self.slots.number();
        match self.permit.take() {
            Some(permit) if number.owed > 0 => {
                number.owed -= 1;
                permit.forget();
            }
            permit => drop(permit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_slots_end_with_the_runs_that_use_them() {
        let slots = Slots::new(4);
        let mut used: Vec<_> = (0..3).map(|_| slots.try_acquire().unwrap()).collect();
        slots.resize(1);
        assert_eq!(slots.free(), 0);
        used.pop();
        used.pop();
        assert_eq!(slots.free(), 0, "one run still uses the slot that remains");
        used.pop();
        assert_eq!(slots.free(), 1);
    }

    #[test]
    fn more_slots_first_keep_those_that_would_end() {
        let slots = Slots::new(2);
        let used: Vec<_> = (0..2).map(|_| slots.try_acquire().unwrap()).collect();
        slots.resize(0);
        slots.resize(3);
        assert_eq!(slots.free(), 1);
        drop(used);
        assert_eq!(slots.free(), 3);
    }

    #[tokio::test]
    async fn a_waiting_run_gets_a_slot_that_is_added() {
        let slots = Slots::new(0);
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { drop(slots.acquire().await) }
        });
        slots.resize(1);
        waiting.await.unwrap();
        assert_eq!(slots.free(), 1);
    }
}
