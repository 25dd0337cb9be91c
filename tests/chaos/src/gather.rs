//! The history of a run, from the truth and the records of all processes.

use std::path::{Path, PathBuf};

use bellwether_sim::history::{Answer, Event, EventKind};

use crate::failure::Failure;
use crate::record;

/// Merges all records into one history, with calls before transactions and these before their effects.
pub(crate) fn gather(
    dir: &Path,
    truth: Vec<Event>,
    killed_clients: &[(u32, u64)],
    client_end: u64,
) -> Result<Vec<Event>, Failure> {
    let mut history = truth;
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.join("records"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.sort();
    for file in files {
        history.extend(record::read(&file)?);
    }
    for (client, killed) in killed_clients {
        history.extend(unanswered(&history, *client, (*killed).min(client_end)));
    }
    sort(&mut history);
    Ok(history)
}

fn sort(history: &mut [Event]) {
    history.sort_by_key(|event| (event.at, order(&event.what)));
}

/// The order of events in the same millisecond: a call can be the cause of a transaction, all others are its effects.
fn order(what: &EventKind) -> u8 {
    match what {
        EventKind::Invoke { .. } => 0,
        EventKind::Txn { .. } => 1,
        EventKind::Return { .. }
        | EventKind::Run { .. }
        | EventKind::Leadership { .. }
        | EventKind::Link { .. }
        | EventKind::LeaderWrites { .. }
        | EventKind::Evicted { .. }
        | EventKind::Node { .. }
        | EventKind::Refused { .. }
        | EventKind::Healed => 2,
    }
}

/// Adds unknown answers for the open calls of a client that was killed.
fn unanswered(history: &[Event], client: u32, killed: u64) -> Vec<Event> {
    let mut open = std::collections::BTreeSet::new();
    for event in history {
        match &event.what {
            EventKind::Invoke { client: by, call, .. } if *by == client => {
                open.insert(*call);
            }
            EventKind::Return { call, .. } => {
                open.remove(call);
            }
            _ => {}
        }
    }
    let why = "the client was killed";
    let answer = |call| EventKind::Return { call, answer: Answer::Unknown { why: why.to_owned() } };
    open.into_iter().map(|call| Event { at: killed, what: answer(call) }).collect()
}

#[cfg(test)]
mod tests {
    use bellwether_sim::history::Call;

    use super::*;

    #[test]
    fn in_the_same_millisecond_a_call_comes_before_transactions_and_its_answer_after_them() {
        let job = bellwether_core::name::JobId::new("a").expect("a letter");
        let call = EventKind::Invoke { client: 1, call: 7, what: Call::Cancel { job }, deadline: None };
        let txn = EventKind::Txn { zxid: 1, session: 1, ops: Vec::new() };
        let answer = EventKind::Return { call: 7, answer: Answer::Unknown { why: String::new() } };
        let at = |at: u64, what: &EventKind| Event { at, what: what.clone() };
        let mut history = vec![at(6, &txn), at(5, &answer), at(5, &txn), at(5, &call)];
        sort(&mut history);
        assert_eq!(history, [at(5, &call), at(5, &txn), at(5, &answer), at(6, &txn)]);
    }
}
