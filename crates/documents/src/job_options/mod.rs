//! The options of a job: one table, from which the flags of the command line and the OpenAPI schema are made.
//!
//! A test compares the names of the table with the names of the library's [`JobOptions`].

mod flags;

use std::borrow::Cow;

use bellwether::Kind;
use bellwether::client::JobOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

use super::text::{DurationText, TagText};

/// Options of a job: an object in JSON, and flags on the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(pub JobOptions);

/// An option.
struct JobOption {
    /// Its name in [`JobOptions`].
    name: &'static str,
    /// Its flag on the command line.
    flag: &'static str,
    /// The form of its value.
    form: Form,
    /// Its meaning and its bounds, and its default if that depends on the kind.
    text: &'static str,
}

/// The form of an option's value.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// A whole number.
    Integer {
        /// The least value.
        least: u32,
        /// The greatest value.
        most: u32,
    },
    /// A text with a unit, such as `30s`.
    Duration,
    /// Two durations: `{initial, max}`.
    Backoff,
    /// `true` or `false`.
    Truth,
    /// A name.
    Name,
    /// A list of names.
    Tags,
}

/// All options, in the order of the help.
const JOB_OPTIONS: [JobOption; 11] = [
    JobOption {
        name: "max_attempts",
        flag: "max-attempts",
        form: Form::Integer { least: 1, most: 1000 },
        text: "Number of failed attempts after which the job is dead, 1 to 1000.",
    },
    JobOption {
        name: "max_losses",
        flag: "max-losses",
        form: Form::Integer { least: 1, most: 1000 },
        text: "Number of lost attempts (worker lost or lease expired) after which the job is dead, 1 to 1000.",
    },
    JobOption {
        name: "backoff",
        flag: "backoff",
        form: Form::Backoff,
        text: "Wait after the first failure, doubled after each further failure up to the longest wait, with jitter. \
               Each is 1ms to 7d.",
    },
    JobOption {
        name: "timeout",
        flag: "timeout",
        form: Form::Duration,
        text: "Time limit of each attempt, 1ms to 7d. Default: none.",
    },
    JobOption {
        name: "lease",
        flag: "lease",
        form: Form::Duration,
        text: "Lease of each attempt, 1s to 7d: without a renewal for this long, the job moves to another worker. \
               Default: that of its kind, else 5m.",
    },
    JobOption {
        name: "auto_renew",
        flag: "auto-renew",
        form: Form::Truth,
        text: "Whether the worker renews the lease while the handler runs. Default: the setting of its kind, else \
               false.",
    },
    JobOption {
        name: "dead_letter",
        flag: "dead-letter",
        form: Form::Truth,
        text: "Whether the death of the job creates a job of kind KIND.dead.",
    },
    JobOption {
        name: "priority",
        flag: "priority",
        form: Form::Integer { least: 0, most: 9 },
        text: "Priority, 0 to 9; 9 runs first.",
    },
    JobOption {
        name: "tags",
        flag: "tags",
        form: Form::Tags,
        text: "Tags that the worker must have, at most 32.",
    },
    JobOption {
        name: "affinity",
        flag: "affinity",
        form: Form::Name,
        text: "Affinity key: with the strategy rendezvous, jobs with the same key prefer the same worker.",
    },
    JobOption {
        name: "lane",
        flag: "lane",
        form: Form::Name,
        text: "Lane of the job: jobs of one lane run one at a time, in the order of their submission.",
    },
];

impl JobOption {
    /// Returns its default in the serialized form, if it has one for all kinds.
    fn default(&self) -> Option<Value> {
        let mut defaults = serde_json::to_value(JobOptions::defaults()).expect("options are JSON");
        Some(defaults.get_mut(self.name)?.take())
    }

    fn schema(&self) -> RefOr<Schema> {
        let of = |schema_type| {
            let object = ObjectBuilder::new().schema_type(SchemaType::new(schema_type));
            object.description(Some(self.text)).default(self.default())
        };
        match self.form {
            Form::Integer { least, most } => {
                of(Type::Integer).minimum(Some(least)).maximum(Some(most)).into()
            }
            Form::Duration => RefOr::Ref(duration(self.text)),
            Form::Backoff => of(Type::Object)
                .property("initial", duration("The wait after the first failure."))
                .property("max", duration("The longest wait."))
                .required("initial")
                .required("max")
                .additional_properties(Some(closed()))
                .into(),
            Form::Truth => of(Type::Boolean).into(),
            Form::Name => of(Type::String).pattern(Some(Kind::pattern())).into(),
            Form::Tags => {
                let tags = ArrayBuilder::new()
                    .items(Ref::from_schema_name(TagText::name()))
                    .max_items(Some(32))
                    .default(self.default())
                    .description(Some(self.text));
                Schema::Array(tags.build()).into()
            }
        }
    }
}

fn duration(text: &str) -> Ref {
    let mut reference = Ref::from_schema_name(DurationText::name());
    text.clone_into(&mut reference.description);
    reference
}

/// No further properties are allowed.
fn closed() -> utoipa::openapi::schema::AdditionalProperties<Schema> {
    utoipa::openapi::schema::AdditionalProperties::FreeForm(false)
}

impl PartialSchema for Options {
    fn schema() -> RefOr<Schema> {
        let about = "Options of a job. In a request, an option that is left out has its default. In an answer, all \
                     options have their effective values; an option that is left out is not set.";
        let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(about));
        let object =
            JOB_OPTIONS.iter().fold(object, |object, option| object.property(option.name, option.schema()));
        object.additional_properties(Some(closed())).examples([example()]).into()
    }
}

impl ToSchema for Options {
    fn name() -> Cow<'static, str> {
        "JobOptions".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((DurationText::name().into_owned(), DurationText::schema()));
        schemas.push((TagText::name().into_owned(), TagText::schema()));
    }
}

/// All options in their serialized form, as an example.
fn example() -> Value {
    json!({
        "max_attempts": 10,
        "max_losses": 2,
        "backoff": { "initial": "500ms", "max": "10m" },
        "timeout": "1h",
        "lease": "90s",
        "auto_renew": true,
        "dead_letter": true,
        "priority": 7,
        "tags": ["gpu"],
        "affinity": "scene-1",
        "lane": "frames",
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Returns the names that a type expects, from its error for an unknown one.
    fn expected(document: Value) -> BTreeSet<String> {
        let error = serde_json::from_value::<JobOptions>(document).unwrap_err().to_string();
        let names = error.split_once("expected ").expect("an unknown field").1;
        names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    fn names(schema: &Value) -> BTreeSet<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn the_schema_has_exactly_the_names_of_the_type() {
        let schema = serde_json::to_value(Options::schema()).unwrap();
        assert_eq!(names(&schema), expected(json!({ "unknown": 1 })));
        let backoff = &schema["properties"]["backoff"];
        assert_eq!(names(backoff), expected(json!({ "backoff": { "unknown": 1 } })));
    }

    #[test]
    fn the_example_has_all_options_and_survives_a_round_trip() {
        let options = serde_json::from_value::<JobOptions>(example()).unwrap();
        assert_eq!(options.check(), Ok(()));
        assert_eq!(serde_json::to_value(&options).unwrap(), example());
        let names = example().as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names, expected(json!({ "unknown": 1 })));
    }

    #[test]
    fn the_documentation_lists_each_option_with_its_flag() {
        let page = include_str!("../../../../docs/getting-started.md");
        for option in &JOB_OPTIONS {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{}`: ", option.name)));
            let row = row.unwrap_or_else(|| panic!("{} is not in the table of options", option.name));
            assert!(row.contains(&format!("`--{}", option.flag)), "{row}");
        }
    }

    #[test]
    fn the_described_bounds_are_those_that_are_checked() {
        let accepted = |name: &str, value: Value| {
            let options = serde_json::from_value::<JobOptions>(json!({ name: value }));
            options.is_ok_and(|options| options.check().is_ok())
        };
        for option in &JOB_OPTIONS {
            let name = option.name;
            let bound = |text: &str| option.text.contains(text);
            match option.form {
                Form::Integer { least, most } => {
                    assert!(bound(&format!("{least} to {most}")), "{name}");
                    assert!(accepted(name, json!(least)) && accepted(name, json!(most)), "{name}");
                    assert!(!accepted(name, json!(most + 1)), "{name}");
                    assert!(least == 0 || !accepted(name, json!(least - 1)), "{name}");
                }
                Form::Duration => {
                    let (least, below) = if bound("1s to 7d") { ("1s", "999ms") } else { ("1ms", "0s") };
                    assert!(bound(&format!("{least} to 7d")), "{name}");
                    assert!(accepted(name, json!(least)) && accepted(name, json!("7d")), "{name}");
                    assert!(!accepted(name, json!(below)) && !accepted(name, json!("604800001ms")), "{name}");
                }
                Form::Backoff => {
                    assert!(bound("1ms to 7d"), "{name}");
                    assert!(accepted(name, json!({ "initial": "1ms", "max": "7d" })), "{name}");
                    assert!(!accepted(name, json!({ "initial": "0s", "max": "7d" })), "{name}");
                    assert!(!accepted(name, json!({ "initial": "1ms", "max": "8d" })), "{name}");
                }
                Form::Truth => assert!(accepted(name, json!(true)), "{name}"),
                Form::Name => {
                    assert!(
                        accepted(name, json!("a".repeat(128))) && !accepted(name, json!("a b")),
                        "{name}"
                    );
                }
                Form::Tags => {
                    let tags = |count: u32| (0..count).map(|n| json!(format!("t{n}"))).collect::<Value>();
                    assert!(bound("at most 32"), "{name}");
                    assert!(accepted(name, tags(32)) && !accepted(name, tags(33)), "{name}");
                }
            }
        }
    }
}
