//! Attacks of programs of the kind `exec` on their node.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use bellwether_testkit::binary_or;
use serde_json::{Value, json};

use super::run::{command, ran, run, run_in};
use super::service::Service;

const DEV: [&str; 3] = ["dev", "--listen", "127.0.0.1:0"];
const SECRET: &str = "hunter2";

/// A copy of the command that every user may run, because the directory of the build may be closed to others.
struct Copied {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Copied {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let path = directory.path().join("bellwether");
        std::fs::copy(binary_or(env!("CARGO_BIN_EXE_bellwether")), &path).unwrap();
        Self { _directory: directory, path }
    }

    /// `bellwether dev` with the options, run by the user `nobody` with these capabilities.
    fn dev(&self, capabilities: &str, options: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]);
        command.arg(format!("--inh-caps={capabilities}")).arg(format!("--ambient-caps={capabilities}"));
        command.arg(&self.path).args(["--output", "json"]).args(DEV).args(options);
        command
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Runs a shell script as a job and returns its output.
fn script(node: &Service, script: &str) -> Value {
    let payload = json!({"argv": ["/bin/sh", "-c", script]}).to_string();
    let submit = ["job", "submit", "exec", &payload, "--wait", "--output", "json"];
    run_in(node.zookeeper(), &submit).exits(0).json()["result"].clone()
}

#[tokio::test]
async fn a_program_of_the_same_user_reads_neither_the_environment_nor_the_memory_of_its_node() {
    // Root reads everything.
    let copied = is_root().then(Copied::new);
    let mut dev = match &copied {
        Some(copied) => copied.dev("-all", &["--allow-exec", "/bin/sh"]),
        None => command(&[&["--output", "json"], &DEV[..], &["--allow-exec", "/bin/sh"]].concat()),
    };
    let node = Service::spawn(dev.env("BELLWETHER_ZOOKEEPER_PASSWORD", SECRET));
    let output = script(&node, "id -u; cat /proc/$PPID/environ; head -c 1 /proc/$PPID/mem; true");
    assert!(!output["stdout"].as_str().unwrap().contains(SECRET), "{output}");
    let denied = output["stderr"].as_str().unwrap();
    assert_eq!(denied.matches("Permission denied").count(), 2, "{output}");
    let (_, said) = node.end().await;
    assert!(said.contains("THE PROGRAMS OF allow_exec ARE NOT SEPARATED FROM THIS NODE"), "{said}");
}

#[tokio::test]
async fn programs_of_another_user_get_no_capability_of_their_node() {
    if !is_root() {
        let dev = [&DEV[..], &["--allow-exec", "/bin/sh", "--exec-user", "nobody"]].concat();
        run(&dev).exits(2).says("this node cannot run programs as \"nobody\"");
        return;
    }
    let copied = Copied::new();
    let options = ["--allow-exec", "/bin/sh", "--exec-user", "daemon"];
    let node = Service::spawn(&mut copied.dev("-all,+setuid,+setgid,+kill", &options));
    let output =
        script(&node, "id -un; id -Gn; grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status; kill -0 $PPID; true");
    let none = ["Prm", "Eff", "Amb"].map(|set| format!("Cap{set}:\t0000000000000000\n")).concat();
    assert_eq!(output["stdout"], format!("daemon\ndaemon\n{none}"));
    assert!(output["stderr"].as_str().unwrap().contains("not permitted"), "{output}");
    let (code, said) = node.end().await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("NOT SEPARATED"), "{said}");
    // Without one of the capabilities the node does not start.
    for capabilities in ["-all", "-all,+setuid,+setgid", "-all,+setuid,+kill"] {
        ran(&mut copied.dev(capabilities, &options))
            .exits(2)
            .says("this node cannot run programs as \"daemon\"");
    }
}

#[tokio::test]
async fn a_node_without_the_sample_kinds_runs_only_its_programs() {
    let options = ["--no-sample-kinds", "--allow-exec", "/bin/sh"];
    let node = Service::start(&[&DEV[..], &options].concat());
    assert_eq!(script(&node, "echo done")["stdout"], json!("done\n"));
    let workers = run_in(node.zookeeper(), &["worker", "list", "--output", "json"]).exits(0).json();
    assert_eq!(workers[0]["kinds"], json!(["exec"]), "{workers}");
    node.end().await;
}

#[test]
fn an_exec_option_that_separates_nothing_is_refused() {
    let with = |options: &[&str]| run(&[&DEV[..], options].concat()).exits(2);
    with(&["--allow-exec", "sh"]).says("\"sh\" is not an absolute path");
    with(&["--allow-exec", "x=/bin/sh {a"]).says("has a single brace");
    with(&["--allow-exec", "x=/bin/a", "--allow-exec", "x=/bin/b"]).says("two programs have the name \"x\"");
    with(&["--exec-user", "nobody"]).says("exec_user needs allow_exec");
    with(&["--no-sample-kinds"]).says("with no_sample_kinds the worker has no kinds: give allow_exec");
    with(&["--allow-exec", "/bin/sh", "--exec-user", "root"])
        .says("programs must not run as root or in its group");
    with(&["--allow-exec", "/bin/sh", "--exec-user", "nouser"]).says("there is no user \"nouser\"");
}
