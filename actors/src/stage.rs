//! Runs a concern without a host, for unit tests.

use bellwether_core::time::{Millis, WallMillis};

use crate::{Concern, Context, Out, Trust};

/// A concern with its outputs.
pub(crate) struct Stage<C: Concern> {
    concern: C,
    rng: fastrand::Rng,
}

impl<C: Concern> Stage<C> {
    /// Starts the concern and returns it with its first outputs.
    pub(crate) fn start(args: C::Args) -> (Self, Vec<Out<C>>) {
        let (mut rng, mut out) = (fastrand::Rng::with_seed(1), Vec::new());
        let concern = C::start(&mut context(&mut rng, &mut out), args);
        (Self { concern, rng }, out)
    }

    /// Lets the concern handle a message and returns its outputs.
    pub(crate) fn handle(&mut self, msg: C::Msg) -> Vec<Out<C>> {
        let mut out = Vec::new();
        self.concern.handle(&mut context(&mut self.rng, &mut out), msg);
        out
    }
}

fn context<'a, C: Concern>(rng: &'a mut fastrand::Rng, out: &'a mut Vec<Out<C>>) -> Context<'a, C> {
    let trust = Some(Trust { session: 1, until: Millis(10_000) });
    let wall = WallMillis(1_700_000_000_000);
    Context { now: Millis(1_000), wall, local: wall, trust, rng, out }
}

/// The paths of the requested watches.
pub(crate) fn watched<C: Concern>(out: &[Out<C>]) -> Vec<&str> {
    out.iter()
        .filter_map(|out| match out {
            Out::Watch(_, path, _) => Some(path.as_str()),
            _ => None,
        })
        .collect()
}
