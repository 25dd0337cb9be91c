//! A check of the sources: every log message is a sentence with a subject, e.g. `the node became leader`, so that a line can be
//! understood without the code that writes it. Values are fields of the line.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::LitStr;

const TREE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The macros of tracing.
const MACROS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];
/// The methods of Python's `logging`.
const METHODS: [&str; 6] = ["debug(", "info(", "warning(", "error(", "exception(", "critical("];
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
    } else if message.split([':', ';', ',']).skip(1).any(fragment) {
        Some("a clause has no subject: write `: the node retries`, not `, retrying`")
    } else {
        None
    }
}

/// A log statement: its line, and its message if that is a literal.
type Statement = (usize, Option<String>);

/// Also finds those in the arguments of other macros, such as `select!`.
fn of_rust(tokens: TokenStream, found: &mut Vec<Statement>) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        of_rust(group.stream(), found);
        if let [.., TokenTree::Ident(name), TokenTree::Punct(bang)] = &tokens[..at]
            && bang.as_char() == '!'
            && MACROS.contains(&name.to_string().as_str())
        {
            found.push((name.span().start().line, message(group.stream())));
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
    for (at, _) in source.match_indices("log.") {
        let call = &source[at + "log.".len()..];
        if let Some(arguments) = METHODS.iter().find_map(|method| call.strip_prefix(method)) {
            let text = arguments.trim_start().strip_prefix('"').and_then(|text| text.split_once('"'));
            found.push((source[..at].lines().count(), text.map(|(text, _)| text.to_owned())));
        }
    }
}

/// The files of the tree without those of tests, each with its path in the tree.
fn sources() -> Vec<(PathBuf, String)> {
    let (mut sources, mut directories) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(Path::new(TREE).join(&directory)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = directory.join(&name);
            if Path::new(TREE).join(&path).is_dir() {
                if !name.starts_with('.') && !["target", "tests", "node_modules"].contains(&name.as_str()) {
                    directories.push(path);
                }
            } else if (name.ends_with(".rs") && !name.ends_with("tests.rs")) || name.ends_with(".py") {
                let text = fs::read_to_string(Path::new(TREE).join(&path)).unwrap();
                sources.push((path, text));
            }
        }
    }
    sources
}

#[test]
fn fragments_are_found() {
    let found = ["session: restart", "the session", "accept failed", "the node is lost, retrying"].map(fault);
    assert!(found.iter().all(Option::is_some), "{found:?}");
}

#[test]
fn every_log_message_is_a_sentence_with_a_subject() {
    let (mut statements, mut faults) = (0, Vec::new());
    for (path, source) in sources().into_iter().filter(|(path, _)| path != Path::new(ERRORS)) {
        let mut found = Vec::new();
        if path.extension().is_some_and(|extension| extension == "py") {
            of_python(&source, &mut found);
        } else {
            of_rust(source.parse().unwrap(), &mut found);
        }
        statements += found.len();
        for (line, text) in found {
            let fault = text.as_deref().map_or(Some("its message is not a literal"), fault);
            faults.extend(fault.map(|fault| format!("{}:{line}: {text:?}: {fault}", path.display())));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(statements > 150, "{statements}");
}
