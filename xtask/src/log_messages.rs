//! A check of the sources: every log message is a sentence with a subject, e.g. `the node became leader`, so that a line can be
//! understood without the code that writes it. Values are fields of the line.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::LitStr;

use crate::sources;

/// The macros of tracing.
const MACROS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];
/// The methods of Python's `logging`.
const METHODS: [&str; 6] = ["debug(", "info(", "warning(", "error(", "exception(", "critical("];
/// Other ways to log in Python, whose messages this check would not find.
const REFUSED_IN_PYTHON: [&str; 8] = [
    "logger.",
    "log.log(",
    "logging.debug(",
    "logging.info(",
    "logging.warning(",
    "logging.error(",
    "logging.exception(",
    "logging.critical(",
];
/// The first words of a subject. A participle or an infinitive is none of them.
const FIRST: [&str; 6] = ["a", "an", "another", "no", "the", "zookeeper"];
/// Prints the errors of commands, whose texts are those of error types.
const ERRORS: &str = "crates/server/src/cli/exit.rs";

/// Why a text is no sentence. A quoted title may begin with a participle.
fn fault(message: &str) -> Option<&'static str> {
    let words: Vec<_> = message.split_whitespace().map(str::to_lowercase).collect();
    let participle = |word: &str| word.starts_with(char::is_alphabetic) && word.ends_with("ing");
    let fragment = |clause: &str| clause.split_whitespace().next().is_some_and(participle);
    if !words.first().is_some_and(|word| FIRST.contains(&word.as_str())) {
        Some("it does not begin with a subject, such as `the node`")
    } else if words.len() < 3 {
        Some("it has fewer than three words")
    } else if message.contains('{') {
        Some("it contains a value: write a field, `name = value`")
    } else if message.split([':', ';', ',']).skip(1).any(fragment) {
        Some("a clause has no subject: write `: the node retries`, not `, retrying`")
    } else {
        None
    }
}

/// A log statement: its line, and its message, or why that cannot be checked.
type Statement = (usize, Result<String, &'static str>);

const NO_LITERAL: &str = "its message is not a literal";

/// Also finds those in the arguments of other macros, such as `select!`.
fn of_rust(tokens: TokenStream, found: &mut Vec<Statement>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        of_rust(group.stream(), found);
        if let [.., TokenTree::Ident(name), TokenTree::Punct(bang)] = &tokens[..at]
            && bang.as_char() == '!'
        {
            let line = name.span().start().line;
            match name.to_string().as_str() {
                "event" => found.push((line, Err("use the macro of its level, such as `info!`"))),
                name if MACROS.contains(&name) => {
                    found.push((line, message(group.stream()).ok_or(NO_LITERAL)));
                }
                _ => {}
            }
        }
    }
}

/// The first argument that is a text. The texts of fields follow `=` or `:`.
fn message(arguments: TokenStream) -> Option<String> {
    let mut begins = true;
    arguments.into_iter().find_map(|token| {
        let is_comma = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ',');
        let first = std::mem::replace(&mut begins, is_comma);
        syn::parse2::<LitStr>(token.into()).ok().filter(|_| first).map(|text| text.value())
    })
}

fn of_python(source: &str, found: &mut Vec<Statement>) {
    let line = |at: usize| source[..at].matches('\n').count() + 1;
    for (at, _) in source.match_indices("log.") {
        let call = &source[at + "log.".len()..];
        if let Some(arguments) = METHODS.iter().find_map(|method| call.strip_prefix(method)) {
            let text = arguments.trim_start().strip_prefix('"').and_then(|text| text.split_once('"'));
            found.push((line(at), text.map(|(text, _)| text.to_owned()).ok_or(NO_LITERAL)));
        }
    }
    for refused in REFUSED_IN_PYTHON {
        let uses = source.match_indices(refused).map(|(at, _)| at);
        // The name is not the end of another one, such as `catalog.`.
        let uses = uses
            .filter(|at| !source[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_'));
        found
            .extend(uses.map(|at| (line(at), Err("name the logger `log`, and use the method of the level"))));
    }
}

/// The sources without those of tests.
fn programs() -> impl Iterator<Item = (PathBuf, String)> {
    sources::read(&["*.rs", "*.py"]).into_iter().filter(|(path, _)| {
        let is_test = path.iter().any(|part| part == "tests") || path.to_string_lossy().ends_with("tests.rs");
        !is_test && path != Path::new(ERRORS)
    })
}

#[test]
fn fragments_and_values_are_found() {
    let fragments = ["session: restart", "the session", "accept failed", "the node is lost, retrying"];
    let found = fragments.into_iter().chain(["the node {} is lost", "the node {name} is lost"]).map(fault);
    assert!(found.clone().all(|fault| fault.is_some()), "{:?}", found.collect::<Vec<_>>());
}

#[test]
fn statements_that_cannot_be_checked_are_found() {
    let mut found = Vec::new();
    of_rust(r#"tracing::event!(Level::INFO, "the node is lost");"#.parse().unwrap(), &mut found);
    of_rust("info!(TEXT);".parse().unwrap(), &mut found);
    for python in ["logging.info(text)", "logger.info(text)", "log.log(20, text)", "log.info(f\"{text}\")"] {
        of_python(python, &mut found);
    }
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found.iter().all(|(line, message)| *line == 1 && message.is_err()), "{found:?}");
}

#[test]
fn every_log_message_is_a_sentence_with_a_subject() {
    let (mut statements, mut faults) = (0, Vec::new());
    for (path, source) in programs() {
        let mut found = Vec::new();
        if path.extension().is_some_and(|extension| extension == "py") {
            of_python(&source, &mut found);
        } else {
            of_rust(source.parse().unwrap(), &mut found);
        }
        statements += found.len();
        for (line, text) in found {
            let fault = text.as_deref().map_or_else(|why| Some(*why), fault);
            faults.extend(fault.map(|fault| format!("{}:{line}: {text:?}: {fault}", path.display())));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(statements > 150, "{statements}");
}
