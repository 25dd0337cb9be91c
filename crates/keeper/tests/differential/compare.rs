//! Runs a script on two servers, step by step, until they differ.

use std::fmt::{self, Write as _};
use std::thread;

use crate::intended;
use crate::run::{Record, Run};
use crate::script::Step;
use crate::servers::{self, Kind, Server};

/// The first step at which two servers differ.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The index of the step.
    pub(crate) at: usize,
    step: Step,
    one: Record,
    other: Record,
}

/// Runs a script on a new ZooKeeper and on a new server of this kind.
pub(crate) fn compare(kind: Kind, script: &[Step]) -> Option<Difference> {
    let one = servers::reference();
    let release = servers::release(&one);
    let other = Server::fresh(kind, release);
    let (mut first, mut second) = (Run::new(one.address()), Run::new(other.address()));
    script.iter().enumerate().find_map(|(at, step)| {
        let (one, other) = thread::scope(|scope| {
            let one = scope.spawn(|| first.step(step));
            let other = second.step(step);
            (one.join().expect("a step cannot panic"), other)
        });
        let alike = one == other || intended::explains(release, step, &one, &other);
        (!alike).then(|| Difference { at, step: step.clone(), one, other })
    })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "step {}: {}", self.at, self.step)?;
        let mut text = String::new();
        for line in 0..self.one.len().max(self.other.len()) {
            match (self.one.get(line), self.other.get(line)) {
                (Some(one), Some(other)) if one == other => writeln!(text, "    both: {one}")?,
                (one, other) => {
                    if let Some(one) = one {
                        writeln!(text, "  expects: {one}")?;
                    }
                    if let Some(other) = other {
                        writeln!(text, "  answers: {other}")?;
                    }
                }
            }
        }
        f.write_str(&text)
    }
}
