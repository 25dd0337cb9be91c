//! The copy of the tree that contains all mutations at once, except those that the compiler refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Trouble;
use super::binaries::{Binaries, Built};
use super::catalogue::Mutation;
use super::layer::Layer;
use super::schemata::{Mutant, Schemata};
use super::scratch::Scratch;

pub(super) struct AllMutants<'a> {
    pub(super) scratch: Scratch,
    original: &'a Scratch,
    all: &'a [Mutation],
    files: BTreeMap<String, Schemata>,
    /// The digests of the refused mutations. Stored next to the copy, so that the next run does not have to find
    /// them again.
    refused: BTreeSet<String>,
}

impl<'a> AllMutants<'a> {
    /// Writes the mutations into a copy next to `original`. The number of a mutation is its position in the catalogue.
    pub(super) fn of(root: &Path, original: &'a Scratch, all: &'a [Mutation]) -> Result<Self, Trouble> {
        let scratch = original.second(root)?;
        let refused = read_refused(&refusals(&scratch))?;
        let mut mutants = Self { scratch, original, all, files: BTreeMap::new(), refused };
        mutants.write()?;
        Ok(mutants)
    }

    /// The number that activates a mutation; `None` if it must be built separately.
    pub(super) fn number(&self, mutation: &Mutation) -> Option<usize> {
        let number = self.all.iter().position(|one| one.name == mutation.name)? + 1;
        self.files.get(&mutation.file)?.numbers().find(|held| *held == number)
    }

    /// Builds a layer. Removes the mutations that the compiler refuses, and builds again.
    pub(super) fn build(&mut self, layer: Layer, package: &str, jobs: usize) -> Result<Binaries, Trouble> {
        loop {
            let errors = match Binaries::build(layer, package, &self.scratch, jobs)? {
                Built::Binaries(binaries) => return Ok(binaries),
                Built::Errors(errors) => errors,
            };
            let blamed: BTreeSet<usize> = errors.iter().flat_map(|error| self.blamed(error)).collect();
            if blamed.is_empty() {
                let what = format!("the layer {} with all mutations", layer.name());
                let log = self.scratch.log(&Binaries::build_log(layer, package));
                return Err(Trouble::Build { what, log });
            }
            for number in blamed {
                let mutation = &self.all[number - 1];
                eprintln!(
                    "xtask: {} does not build together with the others, and is built separately",
                    mutation.name
                );
                self.refused.insert(mutation.digest());
            }
            self.write()?;
        }
    }

    fn blamed(&self, error: &[(String, Range<usize>)]) -> BTreeSet<usize> {
        let of_file = |(file, schemata): (&String, &Schemata)| {
            let here = error.iter().filter(|(at, _)| at == file).map(|(_, range)| range.clone());
            schemata.blamed(&here.collect::<Vec<_>>())
        };
        self.files.iter().flat_map(of_file).collect()
    }

    /// Writes only the files that change, because cargo rebuilds by modification time.
    fn write(&mut self) -> Result<(), Trouble> {
        let files: BTreeSet<&String> = self.all.iter().map(|mutation| &mutation.file).collect();
        for file in files {
            let source = read(&self.original.source(file))?;
            let mut mutants = Vec::new();
            for (index, mutation) in self.all.iter().enumerate() {
                if mutation.file == *file && !self.refused.contains(&mutation.digest()) {
                    let text = mutation.text(&source)?;
                    mutants.push(Mutant { number: index + 1, text, replace: &mutation.replace });
                }
            }
            let schemata = Schemata::of(&source, &mutants)
                .map_err(|source| Trouble::Syntax { file: file.clone(), source })?;
            let path = self.scratch.source(file);
            if read(&path)? != schemata.text {
                write(&path, &schemata.text)?;
            }
            self.files.insert(file.clone(), schemata);
        }
        let refused: Vec<&str> = self.refused.iter().map(String::as_str).collect();
        write(&refusals(&self.scratch), &refused.join("\n"))
    }
}

fn refusals(scratch: &Scratch) -> PathBuf {
    scratch.place("refused.txt")
}

fn read_refused(path: &Path) -> Result<BTreeSet<String>, Trouble> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(source) => Err(Trouble::File { path: path.to_owned(), source }),
    }
}

fn read(path: &Path) -> Result<String, Trouble> {
    fs::read_to_string(path).map_err(|source| Trouble::File { path: path.to_owned(), source })
}

fn write(path: &Path, text: &str) -> Result<(), Trouble> {
    fs::write(path, text).map_err(|source| Trouble::File { path: path.to_owned(), source })
}
