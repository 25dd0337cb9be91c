//! Runs commands concurrently, and prints the output of each as a whole when it has ended.
//!
//! cargo runs one test program at a time, so the machine idles while the last test of a program waits. nextest would
//! also run tests of several programs at once, but each test in a process of its own: the tests of a program share a
//! server, and a ZooKeeper takes seconds to start.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use crate::failure::Failure;

/// A command and the name that it is reported with.
pub(crate) struct Job {
    pub(crate) title: String,
    pub(crate) command: Command,
}

/// Another task of this program as a job.
pub(crate) fn task(words: &[&str]) -> Result<Job, Failure> {
    let title = format!("cargo xtask {}", words[0]);
    let this = std::env::current_exe().map_err(|source| Failure::Launch { line: title.clone(), source })?;
    let mut command = Command::new(this);
    command.args(words);
    Ok(Job { title, command })
}

/// Runs a job while this thread does `work`. The output of the job is kept in `folder` and printed when it has ended.
pub(crate) fn beside<T>(
    job: Job,
    folder: &Path,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    thread::scope(|scope| {
        let job = scope.spawn(|| run(vec![job], 1, false, folder));
        let worked = work();
        let ran = job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and_then(|worked| ran.map(|()| worked))
    })
}

/// The jobs that wait, and the failures so far.
struct Queue {
    waiting: VecDeque<Job>,
    started: usize,
    failures: Vec<Failure>,
}

/// Runs the jobs in this order, `streams` at a time. Their output is kept in `folder` while they run. After a failure
/// the running jobs end but no further job starts, unless `keep_going`. Returns the first failure.
pub(crate) fn run(jobs: Vec<Job>, streams: usize, keep_going: bool, folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder)
        .map_err(|source| Failure::Launch { line: format!("mkdir {}", folder.display()), source })?;
    let total = jobs.len();
    let queue = Mutex::new(Queue { waiting: jobs.into(), started: 0, failures: Vec::new() });
    let print = Mutex::new(());
    thread::scope(|scope| {
        for stream in 0..streams {
            let (queue, print, log) = (&queue, &print, folder.join(format!("{stream}.log")));
            scope.spawn(move || {
                while let Some((number, job)) = next(queue) {
                    eprintln!("xtask: [{number}/{total}] {}", job.title);
                    if let Err(failure) = one(job, &log, print) {
                        let mut queue = lock(queue);
                        queue.failures.push(failure);
                        if !keep_going {
                            queue.waiting.clear();
                        }
                    }
                }
            });
        }
    });
    let failures = lock(&queue).failures.drain(..).collect::<Vec<_>>();
    for failure in failures.iter().skip(1) {
        eprintln!("xtask: {failure}");
    }
    failures.into_iter().next().map_or(Ok(()), Err)
}

fn next(queue: &Mutex<Queue>) -> Option<(usize, Job)> {
    let mut queue = lock(queue);
    let job = queue.waiting.pop_front()?;
    queue.started += 1;
    Some((queue.started, job))
}

/// Runs a job with its output in a file, then prints the output while no other job prints.
fn one(job: Job, log: &Path, print: &Mutex<()>) -> Result<(), Failure> {
    let Job { title, mut command } = job;
    let begun = Instant::now();
    let ended = logged(&mut command, log);
    let took = begun.elapsed().as_secs_f64();
    let _printing = lock(print);
    eprintln!("     Running {title}");
    let printed = File::open(log).and_then(|mut output| io::copy(&mut output, &mut io::stdout().lock()));
    let printed = printed.and_then(|_| io::stdout().flush());
    match ended.and_then(|status| printed.map(|()| status)) {
        Ok(status) if status.success() => {
            eprintln!("xtask: took {took:.0} s: {title}");
            Ok(())
        }
        Ok(status) => Err(Failure::Command { line: title, status }),
        Err(source) => Err(Failure::Launch { line: title, source }),
    }
}

fn logged(command: &mut Command, log: &Path) -> io::Result<ExitStatus> {
    let output = File::create(log)?;
    let errors = output.try_clone()?;
    command.stdin(Stdio::null()).stdout(output).stderr(errors).status()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Job {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Job { title: script.to_owned(), command }
    }

    #[test]
    fn jobs_run_at_the_same_time() {
        let dir = tempfile::tempdir().unwrap();
        let [left, right] = ["left", "right"].map(|name| dir.path().join(name));
        // Each waits for the file that the other one creates.
        let meet = |mine: &Path, other: &Path| {
            let (mine, other) = (mine.display(), other.display());
            shell(&format!(
                "touch {mine}; i=0; while ! [ -e {other} ]; do i=$((i+1)); [ $i -lt 600 ] || exit 1; sleep 0.1; done"
            ))
        };
        run(vec![meet(&left, &right), meet(&right, &left)], 2, false, dir.path()).unwrap();
    }

    #[test]
    fn work_beside_a_job_fails_if_one_of_both_does() {
        let dir = tempfile::tempdir().unwrap();
        let work = || Err::<(), _>(Failure::DataDir);
        assert_eq!(beside(shell("true"), dir.path(), || Ok(7)).unwrap(), 7);
        assert!(matches!(beside(shell("true"), dir.path(), work), Err(Failure::DataDir)));
        assert!(matches!(beside(shell("false"), dir.path(), || Ok(7)), Err(Failure::Command { .. })));
    }

    #[test]
    fn after_a_failure_no_job_starts_unless_told_to_keep_going() {
        for keep_going in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let later = dir.path().join("later");
            let jobs = vec![shell("exit 3"), shell(&format!("touch {}", later.display())), shell("exit 4")];
            let failure = run(jobs, 1, keep_going, dir.path()).unwrap_err();
            assert!(failure.to_string().contains("exit 3"), "the first failure is not reported: {failure}");
            assert_eq!(later.exists(), keep_going);
        }
    }
}
