//! A check of the sources: every test of the documentation that must not compile names its error, because without a code any error passes,
//! for example a renamed method. `cargo xtask test` compares the codes.

use crate::sources;

/// Returns the lines that begin such a test without a code.
fn without_code(source: &str) -> Vec<(usize, &str)> {
    let lines = source.lines().enumerate().map(|(at, line)| (at + 1, line));
    let begins = |line: &str| line.contains("```") && line.contains("compile_fail");
    lines.filter(|(_, line)| begins(line) && !line.contains("compile_fail,E")).collect()
}

#[test]
fn a_test_without_a_code_is_found() {
    assert_eq!(without_code("/// ```compile_fail\n/// ```compile_fail,E0308\n/// ```\n").len(), 1);
}

#[test]
fn every_test_that_must_not_compile_names_its_error() {
    let (mut tests, mut faults) = (0, Vec::new());
    for (path, source) in sources::read(&["*.rs", "*.md"]) {
        // This file has an example of the fault.
        if path.ends_with(file!().rsplit('/').next().unwrap()) {
            continue;
        }
        tests += source.matches("```compile_fail,E").count();
        let found = without_code(&source);
        faults.extend(found.into_iter().map(|(line, text)| format!("{}:{line}: {text}", path.display())));
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(tests > 10, "{tests}");
}
