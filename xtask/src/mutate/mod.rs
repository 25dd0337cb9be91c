//! `cargo xtask mutate`: removes each fence of the product in turn, and shows which layers of tests detect it.
//!
//! A test that cannot fail proves nothing, and a fence whose removal no test detects will eventually be lost. So
//! each fence is removed ([`catalogue`]) in a copy of the tree ([`scratch`]), the layers are run one after another
//! ([`layer`], [`mod@run`]), and their verdicts are stored ([`results`]) and shown ([`table`]). Each layer must
//! first pass without a mutation.
//!
//! A layer is built once: its programs contain all mutations ([`schemata`], [`all_mutants`]), and an environment
//! variable activates one ([`binaries`]). The few mutations for which this is impossible are built one by one.
//!
//! A run still takes up to a minute per mutation and layer. So it is not part of CI, which only checks that every fence
//! is where the catalogue says, and that some layer caught its mutation in the last run.

mod all_mutants;
mod binaries;
mod catalogue;
mod layer;
mod ledger;
mod results;
mod run;
mod schemata;
mod scratch;
mod seeds;
mod table;
mod watch;

use std::fmt;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use catalogue::Mutation;
pub(crate) use layer::Layer;
use results::Results;

/// The arguments of `cargo xtask mutate`.
#[derive(Debug, Args)]
pub(crate) struct Mutate {
    /// Only mutations whose name or file contains this text. Can be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only this layer. Can be repeated.
    #[arg(long, value_enum, value_name = "LAYER")]
    layer: Vec<Layer>,
    /// Skip the remaining layers of a mutation once one has caught it.
    #[arg(long)]
    until_caught: bool,
    /// Only mutations that no layer has caught.
    #[arg(long)]
    uncaught: bool,
    /// Only cells of the table without a result: continues an interrupted run.
    #[arg(long)]
    missing: bool,
    /// How many mutations run concurrently. Use one for tests on servers, because they depend on timing.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZero<u8>,
    /// Run nothing: print, or write, the stored results.
    #[arg(long)]
    render: bool,
    /// Run this many seeds of the simulator instead of the layers, and print those that find the mutations.
    #[arg(long, value_name = "N", conflicts_with_all = ["layer", "write", "render"])]
    seeds: Option<u64>,
    /// Add the verdicts to xtask/mutations.json, and write docs/mutation.md.
    #[arg(long)]
    write: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    /// The directory of the copy and its target directory [default: bellwether-mutate in the temporary directory].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// The table of docs/mutation.md.
    #[default]
    Table,
    /// The content of xtask/mutations.json.
    Json,
}

/// Why mutations could not be run, or which ones survived.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A file of the tree or the copy.
    File { path: PathBuf, source: io::Error },
    /// The catalogue is malformed.
    Catalogue(toml::de::Error),
    /// The results are malformed.
    Results(serde_json::Error),
    /// The text to replace does not occur exactly once.
    Text { name: String, file: String, found: usize },
    /// A source cannot be parsed.
    Syntax { file: String, source: syn::Error },
    /// No mutation has such a name.
    Unknown(String),
    /// A layer does not build, with or without a mutation.
    Build { what: String, log: PathBuf },
    /// A layer fails without a mutation.
    Red { layer: &'static str, log: PathBuf },
    /// No layer catches these mutations.
    Survivors(Vec<String>),
    /// No seed of the simulator finds these mutations.
    NoSeed(Vec<String>),
    /// Cargo could not be run.
    Cargo(io::Error),
    /// Git could not be run.
    Git(io::Error),
    /// Git refused.
    GitSaid { arguments: String, said: String },
    /// A command failed and has printed the reason.
    Command(Failure),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Catalogue(error) => write!(f, "xtask/mutations.toml: {error}"),
            Self::Results(error) => write!(f, "xtask/mutations.json: {error}"),
            Self::Text { name, file, found } => write!(
                f,
                "mutation {name}: its text occurs {found} times in {file}, not once: the code has changed, so update the \
                 mutation"
            ),
            Self::Syntax { file, source } => write!(f, "{file}: {source}"),
            Self::Unknown(name) => write!(f, "no mutation contains {name:?} in its name or file"),
            Self::Build { what, log } => write!(f, "{what} does not build: see {}", log.display()),
            Self::Red { layer, log } => {
                write!(f, "the layer {layer} fails without a mutation: see {}", log.display())
            }
            Self::Survivors(names) => write!(f, "no layer that was run catches {}", names.join(", ")),
            Self::NoSeed(names) => write!(f, "no seed that was run finds {}", names.join(", ")),
            Self::Cargo(error) => write!(f, "cargo could not be run: {error}"),
            Self::Git(error) => write!(f, "git could not be run: {error}"),
            Self::GitSaid { arguments, said } => write!(f, "git {arguments}: {said}"),
            Self::Command(failure) => write!(f, "{failure}"),
        }
    }
}

/// Runs the requested cells. Fails if no layer has caught one of the mutations.
pub(crate) fn run(mutate: &Mutate) -> Result<(), Trouble> {
    let root = root();
    let all = catalogue::read(&root)?;
    let mut results = Results::read(&root, &all)?;
    let mut chosen = chosen(&all, &mutate.only)?;
    if mutate.uncaught {
        chosen.retain(|mutation| !results.is_caught(mutation));
    }
    if let Some(seeds) = mutate.seeds {
        return seeds::run(mutate, &root, &chosen, seeds);
    }
    if !mutate.render {
        run::run(mutate, &root, &chosen, &all, &mut results)?;
    }
    if mutate.write {
        keep(&root, &all, &results)?;
    }
    say(mutate.output, &chosen, &results)?;
    let survivors = chosen.iter().filter(|mutation| !results.is_caught(mutation));
    let survivors: Vec<_> = survivors.map(|mutation| mutation.name.clone()).collect();
    if survivors.is_empty() { Ok(()) } else { Err(Trouble::Survivors(survivors)) }
}

fn chosen(all: &[Mutation], only: &[String]) -> Result<Vec<Mutation>, Trouble> {
    let is_about =
        |mutation: &Mutation, part: &str| mutation.name.contains(part) || mutation.file.contains(part);
    if let Some(unknown) = only.iter().find(|part| !all.iter().any(|mutation| is_about(mutation, part))) {
        return Err(Trouble::Unknown(unknown.clone()));
    }
    let chosen =
        all.iter().filter(|mutation| only.is_empty() || only.iter().any(|part| is_about(mutation, part)));
    Ok(chosen.cloned().collect())
}

fn keep(root: &Path, all: &[Mutation], results: &Results) -> Result<(), Trouble> {
    results.write(root)?;
    table::write(root, all, results)
}

#[expect(clippy::print_stdout, reason = "the result is this command's output")]
fn say(output: Format, chosen: &[Mutation], results: &Results) -> Result<(), Trouble> {
    match output {
        Format::Table => println!("{}", table::table(chosen, results)),
        Format::Json => println!("{}", serde_json::to_string_pretty(results).map_err(Trouble::Results)?),
    }
    Ok(())
}

/// The user's tree.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the tree").to_owned()
}
