//! The messages of `cargo --message-format=json`.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// A line of cargo's output.
#[derive(Deserialize)]
#[serde(tag = "reason")]
pub(crate) enum Message {
    #[serde(rename = "compiler-artifact")]
    Artifact(Artifact),
    #[serde(rename = "compiler-message")]
    Said { message: Diagnostic },
    #[serde(other)]
    Other,
}

/// A result of the compiler.
#[derive(Deserialize)]
pub(crate) struct Artifact {
    executable: Option<PathBuf>,
    manifest_path: PathBuf,
    profile: Profile,
    target: Target,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

/// A message of the compiler.
#[derive(Deserialize)]
pub(crate) struct Diagnostic {
    pub(crate) level: String,
    pub(crate) spans: Vec<Span>,
}

#[derive(Deserialize)]
pub(crate) struct Span {
    pub(crate) file_name: String,
    byte_start: usize,
    byte_end: usize,
}

impl Span {
    pub(crate) fn bytes(&self) -> Range<usize> {
        self.byte_start..self.byte_end
    }
}

/// An executable file with tests.
#[derive(Debug)]
pub(crate) struct TestProgram {
    pub(crate) path: PathBuf,
    /// The name of the target, e.g. `client`.
    pub(crate) name: String,
    /// Whether it is an integration test, and not the unit tests of a library or a command.
    pub(crate) is_integration: bool,
    /// The file with its root module.
    pub(crate) source: PathBuf,
    /// The directory of its package.
    pub(crate) folder: PathBuf,
}

impl Artifact {
    /// The test program, if the artifact is one.
    pub(crate) fn test_program(self) -> Option<TestProgram> {
        let path = self.executable.filter(|_| self.profile.test)?;
        Some(TestProgram {
            path,
            name: self.target.name,
            is_integration: self.target.kind.iter().any(|kind| kind == "test"),
            source: self.target.src_path,
            folder: self.manifest_path.parent().map(Path::to_owned).unwrap_or_default(),
        })
    }
}

impl TestProgram {
    /// Its source, its package and its path, e.g. `tests/trust.rs of zk (target/debug/deps/trust-1)`.
    pub(crate) fn title(&self) -> String {
        let source = self.source.strip_prefix(&self.folder).unwrap_or(&self.source);
        let package = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{} of {package} ({})", source.display(), self.path.display())
    }

    /// Sets the directory and the variable that cargo sets for a test program.
    pub(crate) fn place(&self, command: &mut Command) {
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
    }
}

/// The messages in this output. Lines that are none are skipped.
pub(crate) fn parse(output: &str) -> impl Iterator<Item = Message> {
    output.lines().filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Message {
        parse(line).next().unwrap()
    }

    #[test]
    fn a_test_program_is_found_with_the_folder_of_its_package() {
        let line = |test: bool| {
            let profile = format!(r#"{{"test":{test},"opt_level":"0"}}"#);
            let target = r#"{"name":"client","kind":["test"],"src_path":"/p/tests/client/main.rs"}"#;
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"p","manifest_path":"/p/Cargo.toml","target":{target},"profile":{profile},"executable":"/t/p-1","fresh":true}}"#
            )
        };
        let Message::Artifact(artifact) = only(&line(true)) else { panic!("another message") };
        let program = artifact.test_program().unwrap();
        assert_eq!((program.name.as_str(), program.is_integration), ("client", true));
        let mut command = Command::new(&program.path);
        program.place(&mut command);
        assert_eq!(command.get_current_dir(), Some(Path::new("/p")));
        let Message::Artifact(artifact) = only(&line(false)) else { panic!("another message") };
        assert!(artifact.test_program().is_none(), "a program without tests was taken for a test program");
    }

    #[test]
    fn errors_have_the_bytes_that_they_refer_to_and_other_lines_are_ignored() {
        let error = only(
            r#"{"reason":"compiler-message","message":{"level":"error","message":"m","spans":[{"file_name":"src/a.rs","byte_start":3,"byte_end":5,"is_primary":true}],"children":[]}}"#,
        );
        assert!(matches!(error, Message::Said { message } if message.spans[0].bytes() == (3..5)));
        assert!(matches!(only(r#"{"reason":"build-finished","success":true}"#), Message::Other));
        assert_eq!(parse("Compiling p\n").count(), 0);
    }
}
