//! Entries of records that wait.

use std::fmt;
use std::str::FromStr;

use super::number;
use crate::name::JobId;

/// The name of a record's entry in a slot: the milliseconds in the slot's minute, the job, and the attempt that waits. So a name
/// denotes one attempt of one generation, and a late delete of an earlier attempt's entry does not find a later one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordEntry {
    /// Milliseconds in the minute: orders the entries of a slot.
    pub millis: u16,
    /// The job.
    pub job: JobId,
    /// The generation of the attempt.
    pub generation: u32,
    /// The number of the attempt.
    pub attempt: u32,
}

impl fmt::Display for RecordEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:05}{}+{}.{}", self.millis, self.job, self.generation, self.attempt)
    }
}

impl FromStr for RecordEntry {
    type Err = ();

    /// Parses the name of an entry. The entry of a segment has no `+`, and neither has a job id.
    fn from_str(name: &str) -> Result<Self, ()> {
        let (millis, rest) = name.split_at_checked(5).ok_or(())?;
        let (job, attempt) = rest.split_once('+').ok_or(())?;
        let (generation, attempt) = attempt.split_once('.').ok_or(())?;
        let digits = millis.bytes().all(|byte| byte.is_ascii_digit());
        let millis = millis.parse::<u16>().map_err(|_| ())?;
        if !digits || millis >= 60_000 {
            return Err(());
        }
        let job = JobId::new(job).map_err(|_| ())?;
        let (generation, attempt) = (number(generation).ok_or(())?, number(attempt).ok_or(())?);
        Ok(Self { millis, job, generation, attempt })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::segment::{EntryName, SegmentId};

    #[test]
    fn a_name_reads_back() {
        for job in ["a", "sum:batch-7:12", "nightly@20261121T030000Z", &"j".repeat(128)] {
            let job = JobId::new(job).unwrap();
            let entry = RecordEntry { millis: 59_999, job, generation: 2, attempt: 11 };
            assert_eq!(entry.to_string().parse(), Ok(entry));
        }
        let first = RecordEntry { millis: 7, job: JobId::new("a").unwrap(), generation: 1, attempt: 1 };
        assert_eq!(first.to_string(), "00007a+1.1");
    }

    #[test]
    fn a_foreign_name_is_refused() {
        for foreign in [
            "",
            "00007a",
            "00007+1.1",
            "60000a+1.1",
            "0007a+1.1",
            "+0007a+1.1",
            "00007a+1",
            "00007a+01.1",
            "00007a+1.1~",
            "00007a+1.1.1",
            "00007a b+1.1",
            "éé",
        ] {
            assert_eq!(foreign.parse::<RecordEntry>(), Err(()), "{foreign:?}");
        }
    }

    /// Both kinds of entries share the slots.
    #[test]
    fn the_entries_of_records_and_of_segments_are_distinguished_by_name() {
        let segment = SegmentId::new(Uuid::from_u128(7), 4, 1_000).unwrap();
        let packed = EntryName { millis: 7, segment, nonce: None }.to_string();
        assert_eq!(packed.parse::<RecordEntry>(), Err(()));
        let record = RecordEntry { millis: 7, job: JobId::new("a").unwrap(), generation: 1, attempt: 1 };
        assert_eq!(record.to_string().parse::<EntryName>(), Err(()));
    }
}
