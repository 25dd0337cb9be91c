//! The candidates for the leadership.

use bellwether::InstantText;
use bellwether::client::rfc3339;
use bellwether::election::{Candidate, Candidates};
use serde::Serialize;
use utoipa::ToSchema;

use super::name;

/// The candidates for the leadership.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Candidates)]
pub struct CandidatesDocument {
    /// The candidates in their order: the first one is the leader, or the next one to lead.
    candidates: Vec<CandidateDocument>,
    /// Number of znodes among the candidates that are not listed, because they are foreign.
    unreadable: usize,
}

/// A candidate.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Candidate)]
struct CandidateDocument {
    /// The node; null if its name cannot be read.
    #[schema(required)]
    node: Option<String>,
    /// The ZooKeeper session of the candidate.
    #[schema(example = "0x100000000000001")]
    session: String,
    /// When it registered, by ZooKeeper's clock.
    since: InstantText,
    /// Whether it is the leader.
    leads: bool,
}

impl From<&Candidate> for CandidateDocument {
    fn from(candidate: &Candidate) -> Self {
        Self {
            node: name(candidate.node.as_ref()),
            session: format!("{:#x}", candidate.session),
            since: InstantText(candidate.since),
            leads: candidate.leads,
        }
    }
}

impl From<&Candidates> for CandidatesDocument {
    fn from(candidates: &Candidates) -> Self {
        Self {
            candidates: candidates.list.iter().map(Into::into).collect(),
            unreadable: candidates.unreadable,
        }
    }
}

impl CandidatesDocument {
    /// The rows of a table: node, state, since, session.
    pub fn rows(&self) -> Vec<[String; 4]> {
        let row = |candidate: &CandidateDocument| {
            let node = candidate.node.clone().unwrap_or_else(|| "(unreadable)".to_owned());
            let state = if candidate.leads { "leading" } else { "waiting" };
            [node, state.to_owned(), rfc3339(candidate.since.0), candidate.session.clone()]
        };
        self.candidates.iter().map(row).collect()
    }
}
