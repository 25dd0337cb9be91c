//! The programs that jobs of the kind `exec` may run.
//!
//! | the operator allows | a job gives | the node runs |
//! | --- | --- | --- |
//! | `/usr/bin/env` | `{"argv": ["/usr/bin/env", "-0"]}` | the program with any arguments |
//! | `backup=/usr/bin/pg_dump -- {db}` | `{"name": "backup", "values": {"db": "orders"}}` | `/usr/bin/pg_dump`, `--`, `orders` |
//!
//! A template is split at white space when the node starts, never later: each value stays one argument or part of one. A value
//! at the beginning of an argument must not begin with `-`, because the program would read it as an option; after `--` it may.
//! `{{` and `}}` are braces.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// A program, or a program with an argument template, as the operator names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// A path, with any arguments.
    Any(String),
    Template(String, Template),
}

/// A program with arguments in which a job fills in values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    program: String,
    arguments: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(String),
}

/// The reason why a program cannot be allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProgram {
    /// The program has no absolute path.
    #[error("{0:?} is not an absolute path: the variable PATH must not decide which program runs")]
    Relative(String),
    /// A path with arguments needs a name.
    #[error("a program with arguments needs a name: backup=/usr/bin/pg_dump {{db}}")]
    Nameless,
    /// The name or a placeholder has other characters.
    #[error("{0:?} is not a name: use letters, digits, '-' and '_'")]
    Name(String),
    /// A brace without its partner.
    #[error("{0:?} has a single brace: write {{name}} for a value, or {{{{ and }}}} for braces")]
    Brace(String),
    /// Two templates have one name.
    #[error("two programs have the name {0:?}")]
    Duplicate(String),
}

/// All programs that a node allows.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed {
    any: BTreeSet<String>,
    templates: BTreeMap<String, Template>,
}

impl FromStr for Program {
    type Err = InvalidProgram;

    fn from_str(text: &str) -> Result<Self, InvalidProgram> {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        match first.split_once('=') {
            Some((name, program)) if !first.starts_with('/') => {
                let arguments = words.map(argument).collect::<Result<_, _>>()?;
                let template = Template { program: absolute(program)?, arguments };
                Ok(Self(Kind::Template(checked_name(name)?, template)))
            }
            Some(_) | None if words.next().is_some() => Err(InvalidProgram::Nameless),
            Some(_) | None => absolute(first).map(|path| Self(Kind::Any(path))),
        }
    }
}

fn absolute(path: &str) -> Result<String, InvalidProgram> {
    match path.starts_with('/') {
        true => Ok(path.to_owned()),
        false => Err(InvalidProgram::Relative(path.to_owned())),
    }
}

fn checked_name(name: &str) -> Result<String, InvalidProgram> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !name.is_empty() && name.chars().all(allowed) {
        true => Ok(name.to_owned()),
        false => Err(InvalidProgram::Name(name.to_owned())),
    }
}

/// Parses one word of a template.
fn argument(word: &str) -> Result<Vec<Part>, InvalidProgram> {
    let single = || InvalidProgram::Brace(word.to_owned());
    let (mut parts, mut text, mut rest) = (Vec::new(), String::new(), word);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        text.push_str(before);
        if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
            text.push_str(&brace[..1]);
            rest = after;
            continue;
        }
        let (name, after) =
            brace.strip_prefix('{').and_then(|after| after.split_once('}')).ok_or_else(single)?;
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(Part::Value(checked_name(name)?));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

impl Allowed {
    pub(super) fn new(programs: impl IntoIterator<Item = Program>) -> Result<Self, InvalidProgram> {
        let mut allowed = Self::default();
        for Program(kind) in programs {
            match kind {
                Kind::Any(path) => {
                    allowed.any.insert(path);
                }
                Kind::Template(name, template) => {
                    if allowed.templates.insert(name.clone(), template).is_some() {
                        return Err(InvalidProgram::Duplicate(name));
                    }
                }
            }
        }
        Ok(allowed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.any.is_empty() && self.templates.is_empty()
    }

    /// Whether a job may give the arguments of this program.
    pub(super) fn allows_any(&self, program: &str) -> bool {
        self.any.contains(program)
    }

    pub(super) fn template(&self, name: &str) -> Option<&Template> {
        self.templates.get(name)
    }
}

impl Template {
    pub(super) fn program(&self) -> &str {
        &self.program
    }

    /// Returns the arguments with the values of a job.
    ///
    /// # Errors
    /// A value is missing, unknown or not allowed in its place.
    pub(super) fn arguments(&self, values: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
        let parts = || self.arguments.iter().flatten();
        let expected =
            |name: &String| parts().any(|part| matches!(part, Part::Value(value) if value == name));
        if let Some(unknown) = values.keys().find(|name| !expected(name)) {
            return Err(format!("the program has no value {unknown:?}"));
        }
        let mut only_operands = false;
        self.arguments
            .iter()
            .map(|parts| {
                let filled = fill(parts, values)?;
                let from_job = matches!(parts.first(), Some(Part::Value(_)));
                if from_job && filled.starts_with('-') && !only_operands {
                    return Err(format!("the argument {filled:?} begins with '-': it would be an option"));
                }
                only_operands |= !from_job && filled == "--";
                Ok(filled)
            })
            .collect()
    }
}

fn fill(parts: &[Part], values: &BTreeMap<String, String>) -> Result<String, String> {
    parts.iter().try_fold(String::new(), |filled, part| {
        let text = match part {
            Part::Text(text) => text,
            Part::Value(name) => values.get(name).ok_or_else(|| format!("the value {name:?} is missing"))?,
        };
        match text.contains('\0') {
            true => Err("a value contains a zero byte".to_owned()),
            false => Ok(filled + text),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, values: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let allowed = Allowed::new([format!("x=/bin/x {template}").parse().unwrap()]).unwrap();
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let template = allowed.template("x").unwrap();
        assert_eq!(template.program(), "/bin/x");
        template.arguments(&values)
    }

    #[test]
    fn a_value_stays_one_argument_or_part_of_one() {
        let hostile = "a b; rm -rf / $(x) {b} \"'\n";
        assert_eq!(filled("-v {db}", &[("db", hostile)]).unwrap(), ["-v", hostile]);
        assert_eq!(
            filled("--file={a}.{b} {{{a}}}", &[("a", " "), ("b", "{a}")]).unwrap(),
            ["--file= .{a}", "{ }"]
        );
        assert_eq!(filled("{db}", &[("db", "")]).unwrap(), [""]);
    }

    #[test]
    fn a_value_cannot_become_an_option() {
        for (template, value) in [("{a}", "--file=/etc/x"), ("{a}", "-"), ("{b}{a}", "-x")] {
            let values = [("a", value), ("b", "")].into_iter().filter(|(name, _)| template.contains(name));
            let error = filled(template, &values.collect::<Vec<_>>()).unwrap_err();
            assert!(error.ends_with("begins with '-': it would be an option"), "{error}");
        }
        assert_eq!(filled("-- {a}", &[("a", "-x")]).unwrap(), ["--", "-x"]);
        assert_eq!(filled("-n{a}", &[("a", "-1")]).unwrap(), ["-n-1"]);
        let error = filled("{a} {b}", &[("a", "--"), ("b", "-x")]).unwrap_err();
        assert!(error.starts_with("the argument \"--\" begins"), "{error}");
    }

    #[test]
    fn missing_and_unknown_values_and_zero_bytes_are_errors() {
        assert_eq!(filled("{a}", &[]), Err("the value \"a\" is missing".into()));
        assert_eq!(filled("", &[("a", "")]), Err("the program has no value \"a\"".into()));
        assert_eq!(filled("{a}", &[("a", "x\0y")]), Err("a value contains a zero byte".into()));
    }

    #[test]
    fn only_absolute_paths_and_complete_templates_are_accepted() {
        for (text, error) in [
            ("sh", "\"sh\" is not an absolute path"),
            ("./sh", "\"./sh\" is not an absolute path"),
            ("", "\"\" is not an absolute path"),
            ("x=sh", "\"sh\" is not an absolute path"),
            ("/bin/sh -c", "a program with arguments needs a name"),
            ("=/bin/sh", "\"\" is not a name"),
            ("a/b=/bin/sh", "\"a/b\" is not a name"),
            ("x=/bin/sh {}", "\"\" is not a name"),
            ("x=/bin/sh {a b}", "\"{a\" has a single brace"),
            ("x=/bin/sh a}", "\"a}\" has a single brace"),
        ] {
            let said = text.parse::<Program>().unwrap_err().to_string();
            assert!(said.starts_with(error), "{text}: {said}");
        }
        let twice = ["x=/bin/a", "x=/bin/b"].map(|text| text.parse().unwrap());
        assert_eq!(Allowed::new(twice).unwrap_err(), InvalidProgram::Duplicate("x".into()));
        assert!(Allowed::new(["/opt/a=b".parse().unwrap()]).unwrap().allows_any("/opt/a=b"));
    }
}
