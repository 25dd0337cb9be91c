//! Runs the layers with mutations: most of them from one build that holds all mutations, the others one by one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::all_mutants::AllMutants;
use super::binaries::Binaries;
use super::catalogue::Mutation;
use super::layer::{self, Layer};
use super::ledger::{Cell, Ledger};
use super::results::Results;
use super::scratch::{self, Scratch};
use super::{Mutate, Trouble};

/// Fills the requested cells.
pub(super) fn run(
    mutate: &Mutate,
    root: &Path,
    chosen: &[Mutation],
    all: &[Mutation],
    results: &mut Results,
) -> Result<(), Trouble> {
    let place = mutate.scratch.clone().unwrap_or_else(scratch::default_place);
    let mut scratch = Scratch::of(root, &place)?;
    let groups = groups(mutate, chosen, results);
    if groups.iter().flatten().any(|cell| cell.layer.needs_server()) {
        scratch.build_server()?;
    }
    let mut mutants = AllMutants::of(root, &scratch, all)?;
    let cells = groups.iter().map(Vec::len).sum();
    let mut ledger = Ledger::new(root, all, results, mutate.write, cells);
    let wanted =
        |ledger: &Ledger<'_>, cell: &Cell<'_>| !mutate.until_caught || !ledger.has_caught(cell.mutation);
    let mut alone = Vec::new();
    for mut group in groups {
        group.retain(|cell| wanted(&ledger, cell));
        alone.extend(together(&mut mutants, group, mutate.jobs.get().into(), &mut ledger)?);
    }
    alone.retain(|cell| wanted(&ledger, cell));
    one_by_one(&scratch, &alone, mutate.until_caught, &mut ledger)
}

/// The cells that share one build, ordered by layer.
fn groups<'a>(mutate: &Mutate, chosen: &'a [Mutation], results: &Results) -> Vec<Vec<Cell<'a>>> {
    let mut groups: Vec<Vec<Cell<'a>>> = Vec::new();
    let asked = |layer: &Layer| mutate.layer.is_empty() || mutate.layer.contains(layer);
    let build = |cell: &Cell<'_>| (cell.layer, cell.layer.arguments(cell.mutation.package()));
    for layer in Layer::ALL.into_iter().filter(asked) {
        for mutation in chosen.iter().filter(|mutation| layer.sees(mutation)) {
            if mutate.missing && results.get(mutation, layer).is_some() {
                continue;
            }
            let cell = Cell { mutation, layer };
            match groups.iter_mut().find(|group| build(&group[0]) == build(&cell)) {
                Some(group) => group.push(cell),
                None => groups.push(vec![cell]),
            }
        }
    }
    groups
}

/// Runs a group from one build that holds all mutations. Returns the cells whose mutation is not part of the build.
fn together<'a>(
    mutants: &mut AllMutants<'_>,
    group: Vec<Cell<'a>>,
    jobs: usize,
    ledger: &mut Ledger<'_>,
) -> Result<Vec<Cell<'a>>, Trouble> {
    let Some(Cell { mutation, layer }) = group.iter().find(|cell| mutants.number(cell.mutation).is_some())
    else {
        return Ok(group);
    };
    let package = mutation.package();
    let mut binaries = mutants.build(*layer, package, jobs)?;
    let seconds = binaries.control(&mutants.scratch, package)?.as_secs();
    eprintln!("xtask: {} of {package} passes without a mutation, in {seconds} s", layer.name());
    let (held, alone): (Vec<_>, Vec<_>) =
        group.into_iter().partition(|cell| mutants.number(cell.mutation).is_some());
    ledger.begin(held.len());
    run_each(&binaries, mutants, &held, jobs, ledger)?;
    Ok(alone)
}

/// Runs `jobs` cells at a time. After the first cell that could not be run, no further cell is started.
fn run_each(
    binaries: &Binaries,
    mutants: &AllMutants<'_>,
    cells: &[Cell<'_>],
    jobs: usize,
    ledger: &mut Ledger<'_>,
) -> Result<(), Trouble> {
    let next = AtomicUsize::new(0);
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let verdict = binaries.run(mutants.number(cell.mutation), &mutants.scratch, &cell.log());
                    if tell.send((*cell, verdict)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(tell);
        told.into_iter().try_for_each(|(cell, verdict)| ledger.note(cell, verdict?))
    })
}

/// Builds and runs each mutation separately.
fn one_by_one(
    scratch: &Scratch,
    cells: &[Cell<'_>],
    until_caught: bool,
    ledger: &mut Ledger<'_>,
) -> Result<(), Trouble> {
    green(scratch, cells)?;
    ledger.begin(cells.len());
    let mut cells = cells.to_vec();
    // Sorted by mutation, so that its layers share build artifacts.
    cells.sort_by_key(|cell| &cell.mutation.name);
    for cell in cells {
        if until_caught && ledger.has_caught(cell.mutation) {
            continue;
        }
        let mutated = scratch.mutate(cell.mutation)?;
        let verdict = layer::run(cell.layer, cell.mutation.package(), scratch, &cell.log())?;
        drop(mutated);
        ledger.note(cell, verdict)?;
    }
    Ok(())
}

/// Checks that each layer passes without a mutation. Otherwise its failure would have no meaning.
fn green(scratch: &Scratch, cells: &[Cell<'_>]) -> Result<(), Trouble> {
    let mut run = BTreeSet::new();
    for Cell { mutation, layer } in cells {
        let package = mutation.package();
        if run.insert(layer.arguments(package)) {
            let log = format!("green-{}-{package}", layer.name());
            if layer::run(*layer, package, scratch, &log)?.is_caught() {
                return Err(Trouble::Red { layer: layer.name(), log: scratch.log(&log) });
            }
            eprintln!("xtask: {} of {package} passes without a mutation", layer.name());
        }
    }
    Ok(())
}
