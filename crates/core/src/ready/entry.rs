//! Entries of records that wait.

use std::fmt;
use std::str::FromStr;

use super::number;
use crate::job::Priority;
use crate::name::JobId;

/// The name of a record's entry in a slot: the milliseconds in the slot's minute, the priority, the job, and the attempt that
/// waits. So a name denotes one attempt of one generation, and a late delete of an earlier attempt's entry does not find a
/// later one. The end `~` says that the znode has data ([`QueueEntry`](crate::job::QueueEntry)): without it, path and name say
/// everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordEntry {
    /// Milliseconds in the minute: orders the entries of a slot.
    pub millis: u16,
    /// The priority: rank and priority give the time since which the job waits.
    pub priority: Priority,
    /// The job.
    pub job: JobId,
    /// The generation of the attempt.
    pub generation: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// Whether the znode has data.
    pub has_data: bool,
}

impl fmt::Display for RecordEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = if self.has_data { "~" } else { "" };
        let Self { millis, priority, job, generation, attempt, .. } = self;
        write!(f, "{millis:05}{}{job}+{generation}.{attempt}{data}", priority.get())
    }
}

impl FromStr for RecordEntry {
    type Err = ();

    /// Parses the name of an entry. A job id has no `+`.
    fn from_str(name: &str) -> Result<Self, ()> {
        let (millis, rest) = name.split_at_checked(5).ok_or(())?;
        let (priority, rest) = rest.split_at_checked(1).ok_or(())?;
        let priority =
            priority.parse::<u8>().ok().and_then(|priority| Priority::new(priority).ok()).ok_or(())?;
        let (rest, has_data) = rest.strip_suffix('~').map_or((rest, false), |rest| (rest, true));
        let (job, attempt) = rest.split_once('+').ok_or(())?;
        let (generation, attempt) = attempt.split_once('.').ok_or(())?;
        let digits = millis.bytes().all(|byte| byte.is_ascii_digit());
        let millis = millis.parse::<u16>().map_err(|_| ())?;
        if !digits || millis >= 60_000 {
            return Err(());
        }
        let job = JobId::new(job).map_err(|_| ())?;
        let (generation, attempt) = (number(generation).ok_or(())?, number(attempt).ok_or(())?);
        Ok(Self { millis, priority, job, generation, attempt, has_data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> RecordEntry {
        let (job, priority) = (JobId::new("a").unwrap(), Priority::HIGHEST);
        RecordEntry { millis: 7, priority, job, generation: 1, attempt: 1, has_data: true }
    }

    #[test]
    fn a_name_reads_back() {
        for job in ["a", "sum:batch-7:12", "nightly@20261121T030000Z", &"j".repeat(128)] {
            let job = JobId::new(job).unwrap();
            for has_data in [false, true] {
                let entry = RecordEntry {
                    millis: 59_999,
                    job: job.clone(),
                    generation: 2,
                    attempt: 11,
                    has_data,
                    ..entry()
                };
                assert_eq!(entry.to_string().parse(), Ok(entry));
            }
        }
        let first = RecordEntry { has_data: false, ..entry() };
        assert_eq!([first.to_string(), entry().to_string()], ["000079a+1.1", "000079a+1.1~"]);
    }

    #[test]
    fn a_foreign_name_is_refused() {
        for foreign in [
            "",
            "000075a",
            "000075+1.1",
            "600005a+1.1",
            "00007a+1.1",
            "+00075a+1.1",
            "000075a+1",
            "000075a+01.1",
            "000075a+1.1~~",
            "000075a~+1.1",
            "000075a+1.1.1",
            "000075a b+1.1",
            "éé",
        ] {
            assert_eq!(foreign.parse::<RecordEntry>(), Err(()), "{foreign:?}");
        }
    }
}
