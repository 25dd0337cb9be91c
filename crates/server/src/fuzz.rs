//! Fuzz targets of this crate: functions that take any bytes and must not panic. See `src/fuzz.rs` of the library for the
//! drivers.

use bellwether::{JobContext, JobId, Kind, Payload};
use futures::FutureExt as _;

use crate::builtin::Exec;
pub use crate::cli::fuzz::{command_line, configuration};
#[cfg(fuzzing)]
pub use bellwether_gateway::fuzz::{credentials, http};

/// A payload for a built-in kind, chosen by the first byte: the handler accepts it, or the attempt fails with a reason.
pub fn builtin(bytes: &[u8]) {
    // No payload can name this program, so nothing is executed.
    const UNNAMED: &str = "/a-program-that-no-payload-names-5c1f2a";
    let Some((choice, payload)) = bytes.split_first() else { return };
    let kinds = ["sum", "echo", "sleep", "fail", "exec"];
    let kind = Kind::new(kinds[usize::from(*choice) % kinds.len()]).expect("a name");
    let Ok(payload) = Payload::json(payload) else { return };
    let unnamed = UNNAMED.parse().expect("an absolute path");
    let handlers = crate::builtin::handlers(Exec::new([unnamed]).expect("one program"));
    let context = JobContext::detached(JobId::new("fuzzed").expect("a name"), kind, payload);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _guard = runtime.enter();
    // A handler that sleeps is not awaited.
    if let Some(Err(error)) = handlers.call(context).now_or_never() {
        assert!(!error.message().is_empty(), "a failure has a message");
    }
}

#[cfg(test)]
mod tests {
    use bellwether_testkit::fuzz::{Corpus, JSON, MUTANTS};

    #[test]
    fn any_payload_of_a_built_in_kind_is_accepted_or_fails_the_attempt() {
        Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"), "builtin").exercise(
            MUTANTS,
            &JSON,
            super::builtin,
        );
    }
}
