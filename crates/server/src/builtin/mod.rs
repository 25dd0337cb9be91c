//! The built-in kinds: small jobs to try a cluster with, and `exec`, which runs programs.
//!
//! | kind | payload | result |
//! | --- | --- | --- |
//! | `sum` | `{"first": 1, "second": 2}`, or an array of numbers | their sum |
//! | `echo` | anything | the same |
//! | `sleep` | `{"millis": 100}` | the same, after that time; reports progress, and the next attempt sleeps the rest |
//! | `fail` | `{"message": "why", "times": 2}` | fails every attempt, or the first `times` |
//! | `exec` | `{"argv": ["/usr/bin/date"], "stdin": "", "retry_after": "1m"}` | `{"code": 0, "stdout": "…", "stderr": ""}` |
//! | `exec` | `{"name": "backup", "values": {"db": "orders"}}`, also `stdin` and `retry_after` | the same |
//!
//! `exec` exists only for programs that the operator of the node has allowed ([`Exec`]). A program that exits with 65
//! (`EX_DATAERR`) ends its job as dead, and with 75 (`EX_TEMPFAIL`) it asks for another attempt after `retry_after`. It reports
//! progress by lines such as `40 sending` to the descriptor in `BELLWETHER_PROGRESS_FD`.
//!
//! `sleep` and `exec` renew their leases automatically: their duration depends on payload and program, and is limited
//! by the job's timeout.

pub(crate) mod exec;
mod sleep;
mod sum;

pub use exec::{Exec, ExecUser, ExecUserError, InvalidProgram, Program};

use std::sync::Arc;

use serde::Deserialize;

use bellwether::handler::{self, HandlerError, Handlers, with_state};

/// Returns all built-in kinds; `exec` only if a program is allowed.
pub fn handlers(exec: Exec) -> Handlers {
    samples().and(programs(exec))
}

/// Returns the kinds to try a cluster with.
pub fn samples() -> Handlers {
    let sleep =
        handler::job("sleep", |context, sleep: sleep::Sleep| async move { sleep.sleep(&context).await });
    Handlers::new()
        .job("sum", |_, numbers: sum::Numbers| async move { numbers.sum() })
        .add(handler::raw("echo", |context| async move { Ok(context.payload().clone()) }))
        .add(sleep.auto_renew(true))
        .job("fail", |context, Fail { message, times }| async move {
            match times {
                Some(times) if context.attempt() > times => Ok(context.attempt()),
                Some(_) | None => Err(HandlerError::new(message)),
            }
        })
}

/// Returns the kind `exec`; nothing if no program is allowed.
pub fn programs(exec: Exec) -> Handlers {
    if exec.is_empty() {
        return Handlers::new();
    }
    let exec = with_state(Arc::new(exec)).job("exec", |exec, context, command: exec::Command| async move {
        exec::run(&context, command, &exec).await
    });
    Handlers::new().add(exec.auto_renew(true))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    message: String,
    times: Option<u32>,
}

#[cfg(test)]
mod tests;
