//! The flags for the options of a job, made from the [table](JOB_OPTIONS) of the options.
//!
//! An option without a flag stays unset, so that the defaults of the kind apply.

use clap::builder::ValueParser;
use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Value, json};

use super::super::text::DurationText;
use super::{Form, JOB_OPTIONS, JobOption, Options};

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        command.args(JOB_OPTIONS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(option: &JobOption) -> Arg {
    let help = option.text.trim_end_matches('.');
    // No list of tags is the same as an empty list.
    let help = match option.default().filter(|default| !default.is_array()) {
        Some(default) => format!("{help} [default: {}]", shown(&default)),
        None => help.to_owned(),
    };
    let arg = Arg::new(option.flag).long(option.flag).help(&help);
    let parsed = |name, parse: fn(&str) -> Result<Value, String>| {
        arg.clone().value_name(name).value_parser(ValueParser::new(parse))
    };
    match option.form {
        Form::Integer { .. } => parsed("N", integer),
        Form::Duration => parsed("DURATION", duration),
        Form::Backoff => parsed("INITIAL..MAX", backoff),
        Form::Truth => parsed("BOOL", truth).num_args(0..=1).default_missing_value("true"),
        Form::Name => parsed("NAME", name),
        Form::Tags => parsed("TAG,…", name).action(ArgAction::Append).value_delimiter(','),
    }
}

/// Formats a default as the flag accepts it.
fn shown(default: &Value) -> String {
    match default {
        Value::String(text) => text.clone(),
        Value::Object(backoff) => ["initial", "max"].map(|bound| shown(&backoff[bound])).join(".."),
        other => other.to_string(),
    }
}

fn integer(text: &str) -> Result<Value, String> {
    text.parse::<u32>().map(Value::from).map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<Value, String> {
    text.parse::<DurationText>().map(|duration| json!(duration))
}

fn backoff(text: &str) -> Result<Value, String> {
    let (initial, max) =
        text.split_once("..").ok_or("give the first and the longest wait, such as 1s..5m")?;
    Ok(json!({ "initial": duration(initial)?, "max": duration(max)? }))
}

fn truth(text: &str) -> Result<Value, String> {
    text.parse::<bool>().map(Value::from).map_err(|_| "give true or false".to_owned())
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a value parser")]
fn name(text: &str) -> Result<Value, String> {
    Ok(text.into())
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = |option: &JobOption| match option.form {
            Form::Tags => matches.get_many::<Value>(option.flag).map(|tags| tags.cloned().collect::<Value>()),
            Form::Integer { .. } | Form::Duration | Form::Backoff | Form::Truth | Form::Name => {
                matches.get_one::<Value>(option.flag).cloned()
            }
        };
        let options = JOB_OPTIONS.iter().filter_map(|option| Some((option.name.to_owned(), given(option)?)));
        let options = serde_json::from_value(Value::Object(options.collect()));
        options.map_err(|error| Error::raw(ErrorKind::ValueValidation, format!("{error}\n")))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let Self(given) = Self::from_arg_matches(matches)?;
        self.0 = given.or(std::mem::take(&mut self.0));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use bellwether::client::JobOptions;

    use super::super::example;
    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        options: Options,
    }

    fn parse(flags: &[&str]) -> Result<JobOptions, String> {
        let flags = Flags::try_parse_from(["test"].iter().chain(flags));
        flags.map(|flags| flags.options.0).map_err(|error| error.to_string())
    }

    #[test]
    fn each_option_has_a_flag_and_the_flags_set_all_options() {
        let example = example();
        let mut flags = Vec::new();
        for option in &JOB_OPTIONS {
            assert_eq!(option.flag, option.name.replace('_', "-"), "one name for an option");
            let values = match &example[option.name] {
                Value::Array(tags) => tags.clone(),
                other => vec![other.clone()],
            };
            for value in values {
                flags.extend([format!("--{}", option.flag), shown(&value)]);
            }
        }
        let options = parse(&flags.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(serde_json::to_value(options).unwrap(), example);
    }

    #[test]
    fn an_option_without_a_flag_is_not_set() {
        assert_eq!(parse(&[]), Ok(JobOptions::new()));
        assert_eq!(parse(&["--auto-renew"]), Ok(JobOptions::new().auto_renew(true)));
        let tags = Ok(JobOptions::new().tags(["a", "b"]));
        assert_eq!(parse(&["--tags", "a,b"]), tags);
        assert_eq!(parse(&["--tags", "a", "--tags", "b"]), tags);
    }

    #[test]
    fn an_invalid_value_is_refused_with_an_example() {
        for (flags, said) in [
            (["--backoff", "1s"], "such as 1s..5m"),
            (["--backoff", "1s..5"], "\"5\" is not a duration: give a whole number and a unit"),
            (["--lease", "5"], "\"5\" is not a duration: give a whole number and a unit"),
            (["--max-attempts", "-1"], "unexpected argument"),
            (["--priority", "256"], "expected u8"),
            (["--auto-renew", "yes"], "give true or false"),
        ] {
            let error = parse(&flags).unwrap_err();
            assert!(error.contains(said), "{flags:?}: {error}");
        }
    }

    #[test]
    fn the_help_shows_the_defaults() {
        let help = <Flags as clap::CommandFactory>::command().render_help().to_string();
        for shown in ["[default: 1s..5m]", "[default: 3]", "[default: 5]", "Default: none"] {
            assert!(help.contains(shown), "{shown}: {help}");
        }
    }
}
