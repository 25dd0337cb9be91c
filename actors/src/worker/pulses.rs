//! The pulses of a worker's attempts, by job *and attempt*: an abandoned blocking handler may still report, and its
//! notification must not empty the pulse of the next attempt.
//!
//! A pulse is kept from the start of its attempt until the attempt is reported, or is known to be closed by another
//! node. The pulse of a reported attempt is kept apart until its close is settled. So there are at most as many pulses as
//! jobs in the worker's inbox.

use std::collections::HashMap;

use bellwether_core::name::JobId;

use super::pulse::{Attended, Closed, Pulse, Word};

/// The pulse of each job's current attempt: a worker runs one attempt of a job at a time.
#[derive(Debug, Default)]
pub(super) struct Pulses(HashMap<JobId, (u32, Attended)>);

impl Pulses {
    pub(super) fn begin(&mut self, (job, attempt): Word, pulse: Attended) {
        self.0.insert(job, (attempt, pulse));
    }

    pub(super) fn get(&self, (job, attempt): &Word) -> Option<&Pulse> {
        self.0.get(job).filter(|(current, _)| current == attempt).map(|(_, pulse)| &**pulse)
    }

    /// Takes out the pulse of a reported attempt.
    pub(super) fn report(&mut self, word: &Word) -> Option<Attended> {
        self.get(word)?;
        self.0.remove(&word.0).map(|(_, pulse)| pulse)
    }

    /// Another process closed the attempt.
    pub(super) fn fenced(&mut self, word: &Word) {
        if let Some(pulse) = self.report(word) {
            pulse.close(Closed::Fenced);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bellwether_core::job::Progress;
    use bellwether_core::time::Millis;

    use super::*;

    fn word(attempt: u32) -> Word {
        (JobId::new("a").unwrap(), attempt)
    }

    fn pulse(attempt: u32) -> Attended {
        Attended::new(Arc::new(Pulse::new(word(attempt), None, Millis(0), Progress::default())))
    }

    #[test]
    fn a_late_report_of_an_ended_attempt_does_not_empty_the_pulse_of_the_next() {
        let mut pulses = Pulses::default();
        pulses.begin(word(1), pulse(1));
        let second = pulse(2);
        second.renew(Duration::from_secs(9));
        pulses.begin(word(2), second);
        assert!(pulses.get(&word(1)).is_none());
        pulses.fenced(&word(1));
        let said = pulses.get(&word(2)).map(Pulse::take);
        assert_eq!(said.and_then(|said| said.renew), Some(Duration::from_secs(9)));
    }

    #[test]
    fn an_ended_attempt_leaves_no_pulse() {
        let mut pulses = Pulses::default();
        pulses.begin(word(1), pulse(1));
        drop(pulses.report(&word(1)));
        assert!(pulses.0.is_empty());
    }
}
