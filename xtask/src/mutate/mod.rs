//! `cargo xtask mutate`: takes each fence out of the product in turn, and shows which layer of tests notices.
//!
//! A test that cannot fail proves nothing, and a fence whose loss no test notices will be lost one day. So each fence is
//! removed ([`catalogue`]) in a copy of the tree ([`scratch`]), the layers are run one after the other ([`layer`]), and
//! what they said is kept ([`results`]) and shown ([`table`]). Before that each layer must be green without a mutation.
//!
//! It takes long: half a minute to some minutes per mutation and layer. So it is no part of CI, which only checks that
//! every fence stands where the catalogue says, and was caught by some layer when it was last run.

mod catalogue;
mod layer;
mod results;
mod scratch;
mod table;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::failure::Failure;
use catalogue::Mutation;
pub(crate) use layer::Layer;
use results::Results;
use scratch::Scratch;

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct Mutate {
    /// Only mutations whose name, or file, contains this. May be given again.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only this layer. May be given again.
    #[arg(long, value_enum, value_name = "LAYER")]
    layer: Vec<Layer>,
    /// Of each mutation run no more layers once one has caught it.
    #[arg(long)]
    until_caught: bool,
    /// Only mutations that no layer is known to catch.
    #[arg(long)]
    uncaught: bool,
    /// Run nothing: print, or write, what is known.
    #[arg(long)]
    render: bool,
    /// Add the verdicts to xtask/mutations.json, and write docs/mutation.md.
    #[arg(long)]
    write: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    output: Format,
    /// Where the copy is kept, with its target directory [default: bellwether-mutate in the temporary directory].
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Format {
    /// The table of docs/mutation.md.
    #[default]
    Table,
    /// What xtask/mutations.json holds.
    Json,
}

/// Why mutations could not be run, or what they showed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A file of the tree or the copy.
    File { path: PathBuf, source: io::Error },
    /// The catalogue is malformed.
    Catalogue(toml::de::Error),
    /// The results are malformed.
    Results(serde_json::Error),
    /// The text to replace is not there once.
    Text { name: String, file: String, found: usize },
    /// No mutation has such a name.
    Unknown(String),
    /// A layer fails, or does not build, without any mutation or with this one.
    Build { what: String, log: PathBuf },
    /// A layer fails without a mutation.
    Red { layer: &'static str, log: PathBuf },
    /// No layer catches these.
    Survivors(Vec<String>),
    /// Cargo could not be run.
    Cargo(io::Error),
    /// Git could not be run.
    Git(io::Error),
    /// Git refused.
    GitSaid { arguments: String, said: String },
    /// A command failed; it has said why.
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
                "mutation {name}: its text stands {found} times in {file}, not once: the fence has moved, so move its \
                 mutation"
            ),
            Self::Unknown(name) => write!(f, "no mutation has {name:?} in its name or file"),
            Self::Build { what, log } => write!(f, "{what} does not build: see {}", log.display()),
            Self::Red { layer, log } => {
                write!(f, "the layer {layer} fails without a mutation: see {}", log.display())
            }
            Self::Survivors(names) => write!(f, "no layer that was run catches {}", names.join(", ")),
            Self::Cargo(error) => write!(f, "cargo could not be run: {error}"),
            Self::Git(error) => write!(f, "git could not be run: {error}"),
            Self::GitSaid { arguments, said } => write!(f, "git {arguments}: {said}"),
            Self::Command(failure) => write!(f, "{failure}"),
        }
    }
}

/// Runs what was asked for. Fails when a mutation is known to no layer afterwards.
pub(crate) fn run(mutate: &Mutate) -> Result<(), Trouble> {
    let root = root();
    let all = catalogue::read(&root)?;
    let mut results = Results::read(&root, &all)?;
    let mut chosen = chosen(&all, &mutate.only)?;
    if mutate.uncaught {
        chosen.retain(|mutation| !results.is_caught(mutation));
    }
    if !mutate.render {
        let place = mutate.scratch.clone().unwrap_or_else(scratch::default_place);
        run_all(mutate, &root, &place, &chosen, &all, &mut results)?;
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

fn run_all(
    mutate: &Mutate,
    root: &Path,
    place: &Path,
    chosen: &[Mutation],
    all: &[Mutation],
    results: &mut Results,
) -> Result<(), Trouble> {
    let mut scratch = Scratch::of(root, place)?;
    let layers: Vec<Layer> = Layer::ALL
        .into_iter()
        .filter(|layer| mutate.layer.is_empty() || mutate.layer.contains(layer))
        .collect();
    if layers.iter().any(|layer| layer.needs_server()) {
        scratch.build_server()?;
    }
    green(&scratch, &layers, chosen)?;
    for mutation in chosen {
        let mutated = scratch.mutate(mutation)?;
        for layer in layers.iter().copied().filter(|layer| layer.sees(mutation)) {
            let log = format!("{}-{}", mutation.name, layer.name());
            let verdict = layer::run(layer, mutation.package(), &scratch, &log)?;
            eprintln!("xtask: {} × {}: {verdict:?}", mutation.name, layer.name());
            let caught = verdict.is_caught();
            results.note(mutation, layer, verdict);
            if mutate.write {
                // Hours of work are not lost with the terminal.
                keep(root, all, results)?;
            }
            if caught && mutate.until_caught {
                break;
            }
        }
        drop(mutated);
    }
    Ok(())
}

/// Each layer passes on the tree as it is: else its red would say nothing.
fn green(scratch: &Scratch, layers: &[Layer], chosen: &[Mutation]) -> Result<(), Trouble> {
    let mut run = BTreeSet::new();
    for layer in layers {
        for mutation in chosen.iter().filter(|mutation| layer.sees(mutation)) {
            let package = mutation.package();
            if run.insert(layer.arguments(package)) {
                let log = format!("green-{}-{package}", layer.name());
                if layer::run(*layer, package, scratch, &log)?.is_caught() {
                    return Err(Trouble::Red { layer: layer.name(), log: scratch.log(&log) });
                }
                eprintln!("xtask: {} is green without a mutation", layer.name());
            }
        }
    }
    Ok(())
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
