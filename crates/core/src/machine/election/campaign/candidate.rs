//! The names of candidates: `{uuid}-n-{sequence}`.

use uuid::Uuid;

/// A child of `/election` that is a candidate.
///
/// Ordered by sequence, then by name: a total order, so that every candidate sees the same first one. Sequences are
/// compared as numbers. They have ten digits up to 2³¹ candidacies; then ZooKeeper's counter becomes negative. Even
/// then the order is total, and the epoch fences the leader.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    sequence: i64,
    pub(super) name: String,
    pub(super) uuid: Uuid,
}

impl Candidate {
    /// Parses a child's name; `None` for a foreign one: an operator may create any child there.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (uuid, sequence) = name.split_once("-n-")?;
        let uuid = Uuid::try_parse(uuid).ok().filter(|parsed| parsed.hyphenated().to_string() == uuid)?;
        let digits = sequence.strip_prefix('-').unwrap_or(sequence);
        if digits.len() < 10 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        Some(Self { sequence: sequence.parse().ok()?, name: name.to_owned(), uuid })
    }
}

/// Returns the names of the candidates in their order, without foreign children.
#[must_use]
pub fn in_order(children: &[String]) -> Vec<String> {
    let mut candidates = children.iter().filter_map(|name| Candidate::parse(name)).collect::<Vec<_>>();
    candidates.sort();
    candidates.into_iter().map(|candidate| candidate.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uuid: u128, sequence: &str) -> String {
        format!("{}-n-{sequence}", Uuid::from_u128(uuid).hyphenated())
    }

    #[test]
    fn the_sequence_decides_and_not_the_name() {
        let mut candidates =
            [name(1, "10000000000"), name(2, "9999999999"), name(9, "0000000001"), name(3, "-2147483648")]
                .map(|name| Candidate::parse(&name).unwrap());
        candidates.sort();
        assert_eq!(candidates.map(|candidate| candidate.uuid.as_u128()), [3, 9, 2, 1]);
    }

    #[test]
    fn foreign_children_are_not_candidates() {
        let spelt_otherwise = format!("{}-n-0000000001", Uuid::from_u128(1).simple());
        for foreign in [
            "",
            "-n-",
            "lock-0000000001",
            "web-1-n-0000000001",
            &spelt_otherwise,
            &name(1, ""),
            &name(1, "1"),
            &name(1, "+000000001"),
            &name(1, "00000000x1"),
            &name(1, "99999999999999999999"),
        ] {
            assert_eq!(Candidate::parse(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn candidates_are_listed_in_their_order_without_foreign_children() {
        let (first, second) = (name(9, "0000000001"), name(1, "0000000002"));
        let children = [second.clone(), "lock-0000000001".to_owned(), first.clone()];
        assert_eq!(in_order(&children), [first, second]);
    }
}
