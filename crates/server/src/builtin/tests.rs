use std::time::Duration;

use bellwether::Payload;
use bellwether::{JobId, Kind};
use bellwether_testkit::eventually;
use serde_json::{Value, json};

use super::{Exec, ExecUser, handlers};
use bellwether::handler::JobContext;

const SOON: Duration = Duration::from_secs(20);

fn context(kind: &str, payload: &Value) -> JobContext {
    let payload = Payload::json(payload.to_string().into_bytes()).unwrap();
    JobContext::detached(JobId::new("a").unwrap(), Kind::new(kind).unwrap(), payload)
}

fn allow(programs: &[&str]) -> Exec {
    Exec::new(programs.iter().map(|program| program.parse().unwrap())).unwrap()
}

async fn call(context: JobContext) -> Result<Value, String> {
    call_with(allow(&["/bin/sh", "/bin/cat"]), context).await
}

async fn call_with(exec: Exec, context: JobContext) -> Result<Value, String> {
    let handled = handlers(exec).call(context).await;
    handled
        .map(|result| serde_json::from_slice(result.bytes()).unwrap())
        .map_err(|error| error.message().to_owned())
}

async fn run(kind: &str, payload: Value) -> Result<Value, String> {
    call(context(kind, &payload)).await
}

fn sh(script: &str) -> Value {
    json!({"argv": ["/bin/sh", "-c", script]})
}

#[tokio::test]
async fn sum_adds_and_reports_an_overflow() {
    assert_eq!(run("sum", json!({"first": 1, "second": 2})).await, Ok(json!(3)));
    assert_eq!(run("sum", json!([1, 2, -4])).await, Ok(json!(-1)));
    assert_eq!(run("sum", json!({"first": 1, "second": 0.5})).await, Ok(json!(1.5)));
    for payload in [json!([i64::MAX, 1]), json!([u64::MAX])] {
        assert_eq!(run("sum", payload).await, Err("the sum overflows 64 bits".into()));
    }
    assert_eq!(run("sum", json!([f64::MAX, f64::MAX])).await, Err("the sum is not finite".into()));
    let refused = run("sum", json!({"first": 1})).await.unwrap_err();
    assert!(refused.ends_with(r#"expected {"first": 1, "second": 2} or an array of numbers"#), "{refused}");
}

#[tokio::test]
async fn echo_returns_its_payload() {
    assert_eq!(run("echo", json!({"a": [1]})).await, Ok(json!({"a": [1]})));
}

#[tokio::test]
async fn sleep_sleeps_until_it_is_cancelled() {
    assert_eq!(run("sleep", json!({"millis": 1})).await, Ok(json!({"millis": 1})));
    let long = context("sleep", &json!({"millis": 3_600_000}));
    long.cancellation().cancel();
    assert_eq!(call(long).await, Err("cancelled before the end of the sleep".into()));
}

#[tokio::test]
async fn fail_fails_the_requested_number_of_times() {
    assert_eq!(run("fail", json!({"message": "no"})).await, Err("no".into()));
    let twice = |attempt| context("fail", &json!({"message": "no", "times": 2})).with_attempt(attempt);
    assert_eq!(call(twice(2)).await, Err("no".into()));
    assert_eq!(call(twice(3)).await, Ok(json!(3)));
}

#[test]
fn exec_exists_only_if_a_program_is_allowed() {
    let exec = Kind::new("exec").unwrap();
    assert!(handlers(Exec::default()).kinds().all(|kind| *kind != exec));
    for program in ["/bin/sh", "x=/bin/sh"] {
        assert!(handlers(allow(&[program])).kinds().any(|kind| *kind == exec), "{program}");
    }
}

#[tokio::test]
async fn exec_runs_only_allowed_programs_by_their_exact_name() {
    for program in ["sh", "/usr/bin/env", "/bin/../bin/sh", ""] {
        let refused = run("exec", json!({"argv": [program, "-c", "true"]})).await.unwrap_err();
        assert_eq!(refused, format!("this worker does not allow the program {program:?}"));
    }
    let empty = run("exec", json!({"argv": []})).await.unwrap_err();
    assert_eq!(empty, "argv is empty: give a program and its arguments");
}

#[tokio::test]
async fn exec_fills_the_values_of_a_job_into_the_template_of_the_operator() {
    let exec = || allow(&["print=/usr/bin/printf %s|%s|%s -- {a} n={b}", "/bin/cat"]);
    let call = async |payload| handlers(exec()).call(context("exec", &payload)).await;
    let hostile = "x y; $(id) `id`\n{b}";
    let done = call(json!({"name": "print", "values": {"a": hostile, "b": ""}})).await.unwrap();
    let done: Value = serde_json::from_slice(done.bytes()).unwrap();
    assert_eq!(done["stdout"], format!("--|{hostile}|n="));

    for (payload, why) in [
        (json!({"name": "print", "values": {"a": ""}}), "the value \"b\" is missing"),
        (json!({"name": "print", "values": {"a": "", "b": "", "c": ""}}), "the program has no value \"c\""),
        (json!({"name": "print", "argv": ["/bin/cat"]}), "give argv or name"),
        (json!({"argv": ["/bin/cat"], "values": {"a": ""}}), "values need the name of a program"),
        (json!({}), "give argv or name"),
    ] {
        let error = call(payload).await.unwrap_err();
        assert_eq!((error.is_invalid(), error.message()), (true, why));
    }
    // Another worker may allow these.
    for (payload, what) in [
        (json!({"name": "other"}), "a program of the name \"other\""),
        (json!({"argv": ["/usr/bin/printf"]}), "the program \"/usr/bin/printf\""),
    ] {
        let error = call(payload).await.unwrap_err();
        assert_eq!(
            (error.is_invalid(), error.message()),
            (false, &*format!("this worker does not allow {what}"))
        );
    }
}

/// Attacks of a program on the process that runs it: files that only the process reads, its environment, its groups, and
/// signals.
#[tokio::test]
async fn exec_separates_its_programs_from_the_node_by_a_user() {
    let user = ExecUser::find("nobody").unwrap();
    if !nix::unistd::geteuid().is_root() {
        let error = user.check().await.unwrap_err().to_string();
        assert!(error.starts_with("this node cannot run programs as \"nobody\""), "{error}");
        return;
    }
    user.check().await.unwrap();
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, "hunter2").unwrap();
    let script = format!(
        "id -un; id -Gn; echo $HOME; cat {} /proc/$PPID/environ; kill -0 $PPID; true",
        secret.path().display()
    );
    let separated = allow(&["/bin/sh"]).user(user);
    let output = call_with(separated, context("exec", &sh(&script))).await.unwrap();
    assert_eq!(output["stdout"], "nobody\nnogroup\n/nonexistent\n");
    let denied = output["stderr"].as_str().unwrap().to_lowercase();
    assert_eq!(denied.lines().filter(|line| line.contains("permi")).count(), 3, "{denied}");
    // Without a user the same program reads everything.
    let output = call(context("exec", &sh(&script))).await.unwrap();
    assert!(output["stdout"].as_str().unwrap().contains("hunter2"), "{output}");
}

/// The guard of the group may end the programs, also if this process dies: it has their user.
#[tokio::test]
async fn exec_leaves_no_process_of_another_user_behind() {
    let user = ExecUser::find("nobody").unwrap();
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let (home, payload) = straggler("ps -o user= -p $(ps -o pgid= -p $$) >&2; exit 65");
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let ended = call_with(allow(&["/bin/sh"]).user(user), context("exec", &payload)).await.unwrap_err();
    assert_eq!(ended, "exit status: 65: nobody", "the leader of the group is the guard");
    let pid = pid(&home).await;
    eventually("the grandchild is dead", SOON, async || !lives(&pid)).await;
}

#[tokio::test]
async fn exec_passes_input_and_output_and_fails_with_the_end_of_stderr() {
    let output = run("exec", json!({"argv": ["/bin/cat"], "stdin": "hello"})).await;
    assert_eq!(output, Ok(json!({"code": 0, "stdout": "hello", "stderr": ""})));
    let failed = run("exec", sh("echo out; echo why >&2; exit 3")).await;
    assert_eq!(failed, Err("exit status: 3: why".into()));
}

#[tokio::test]
async fn exec_reads_all_output_and_keeps_its_beginning() {
    let output = run("exec", sh("printf start; head -c 1000000 /dev/zero | tr '\\0' x")).await.unwrap();
    let stdout = output["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("startxxx") && stdout.len() == 16 * 1024, "{} bytes", stdout.len());
}

#[tokio::test]
async fn exec_succeeds_even_if_its_output_is_not_text() {
    for byte in ["\\000", "\\377", "\\042"] {
        let script = format!("head -c 100000 /dev/zero | tr '\\000' '{byte}' | tee /dev/stderr");
        assert_eq!(run("exec", sh(&script)).await.unwrap()["code"], 0, "{byte}");
    }
}

#[tokio::test]
async fn exec_reports_invalid_and_retry_later_by_exit_status() {
    let call = async |payload: Value| {
        handlers(allow(&["/bin/sh"])).call(context("exec", &payload)).await.unwrap_err()
    };
    let invalid = call(sh("echo no account >&2; exit 65")).await;
    assert!(invalid.is_invalid());
    assert_eq!(invalid.message(), "exit status: 65: no account");
    assert_eq!(call(sh("exit 75")).await.retry_after(), Some(Duration::from_secs(60)));
    let mut soon = sh("exit 75");
    soon["retry_after"] = json!("5s");
    assert_eq!(call(soon).await.retry_after(), Some(Duration::from_secs(5)));
    let failed = call(sh("exit 64")).await;
    assert_eq!((failed.is_invalid(), failed.retry_after()), (false, None));
}

#[tokio::test]
async fn exec_reports_the_progress_that_the_program_writes_to_its_descriptor() {
    let script = r#"
        test "$BELLWETHER_PROGRESS_FD" = 3 || exit 1
        echo "10 begun" >&3
        head -c 100000 /dev/zero | tr '\\0' x >&3; echo >&3
        echo nonsense >&3
        printf '200 too much\n40 half way\nno end' >&3
    "#;
    let context = context("exec", &sh(script));
    let output = call(context.clone()).await.unwrap();
    let said = context.newest_progress();
    assert_eq!((said.percent(), said.message()), (Some(40), "half way"), "{output}");
}

#[tokio::test]
async fn exec_shows_progress_while_the_program_runs() {
    let context = context("exec", &sh("echo 70 waiting >&3; read -r never < /dev/zero"));
    let running = tokio::spawn(call(context.clone()));
    eventually("the progress is reported", SOON, async || context.newest_progress().percent() == Some(70))
        .await;
    context.cancellation().cancel();
    running.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn exec_hides_the_environment_of_the_node() {
    let output = run("exec", sh("env | cut -d= -f1 | sort")).await.unwrap();
    let names = output["stdout"].as_str().unwrap();
    assert!(names.contains("BELLWETHER_JOB\n") && !names.contains("CARGO"), "{names}");
}

fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is dead, but not yet reaped.
    !stat.is_empty() && !stat.contains(") Z ")
}

/// A grandchild that outlives its parent, and the directory of the file with its process id.
fn straggler(then: &str) -> (tempfile::TempDir, Value) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("pid");
    let script = format!("sleep 3600 & echo $! > {0}.new; mv {0}.new {0}; {then}", file.display());
    (home, sh(&script))
}

async fn pid(home: &tempfile::TempDir) -> String {
    let file = home.path().join("pid");
    bellwether_testkit::eventually_some("the grandchild has written its process id", SOON, async || {
        std::fs::read_to_string(&file).ok().map(|pid| pid.trim().to_owned())
    })
    .await
}

#[tokio::test]
async fn exec_leaves_no_process_behind_when_the_program_ends() {
    let (home, payload) = straggler("exit 0");
    run("exec", payload).await.unwrap();
    let pid = pid(&home).await;
    eventually("the grandchild is dead", SOON, async || !lives(&pid)).await;
}

#[tokio::test]
async fn exec_leaves_no_process_behind_when_it_is_dropped_or_cancelled() {
    for drop in [true, false] {
        let (home, payload) = straggler("wait");
        let context = context("exec", &payload);
        let cancellation = context.cancellation();
        let running = tokio::spawn(call(context));
        let pid = pid(&home).await;
        assert!(lives(&pid));
        if drop {
            running.abort()
        } else {
            cancellation.cancel()
        }
        eventually("the grandchild is dead", SOON, async || !lives(&pid)).await;
    }
}
