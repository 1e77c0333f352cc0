//! Implements `perfprop history add`: keeps what another program measured under a commit.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::Error;
use super::super::stream::say;
use super::super::text_input::in_file;
use super::recordings::{self, FoldedStacks, ReadRun, RecordedRun};
use super::{ProjectArgs, of_git, of_results};
use crate::history::results::{MachineFacts, ProfileOrigin, ResultStore};
use crate::history::{
    ADDED, Commit, CountedOn, ImportProblem, ImportedBenchmarks, MeasuredQuantity, imported_results, machine_facts,
};
use crate::names::quoted;
use crate::run::MeasuredMachine;

/// The arguments of `perfprop history add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop record -g -o r.jsonl -- ./sort && perfprop history add r.jsonl
  hyperfine --export-json h.json ./sort && perfprop history add h.json
  perfprop history add --name sort target/criterion/sort/new/sample.json
  perfprop stat -j -o s.json -- ./sort; perfprop history add --name sort --commit v1.0 s.json")]
pub(super) struct AddArgs {
    /// What was measured: recordings of perfprop record (each is a run, -g gives the profile too), JSON of hyperfine or of
    /// perfprop stat -j, criterion's new/sample.json; or stacks as perf script, pprof or folded lines, for the profile
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The commit of which it was measured
    #[arg(long, value_name = "COMMIT", default_value = HEAD)]
    commit: String,
    /// What the benchmark is called; of several it stands before their names
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
}

const HEAD: &str = "HEAD";

/// What is to be kept of all files.
#[derive(Default)]
struct Additions {
    /// Benchmarks of this machine that other programs measured.
    imported: ImportedBenchmarks,
    /// The runs of each benchmark, on each machine.
    runs: Vec<RecordedBenchmark>,
}

/// The recordings of one benchmark on one machine.
struct RecordedBenchmark {
    name: String,
    machine: MachineFacts,
    /// The command of the runs.
    argv: Option<Vec<String>>,
    runs: Vec<Vec<MeasuredQuantity>>,
    stacks: Vec<FoldedStacks>,
}

pub(super) fn add(args: &AddArgs) -> Result<u8, Error> {
    let repository = args.project.repository()?;
    let commit = &repository.commit(&args.commit).map_err(of_git)?;
    if args.commit == HEAD && repository.has_changes().map_err(of_git)? {
        say(&format!(
            "files differ from {HEAD}: name the commit that was measured with --commit, if it was another one"
        ));
    }
    // All are read before anything is kept.
    let mut all = Additions::default();
    args.files.iter().try_for_each(|path| all.read(path, args.name.as_deref()))?;
    let store = args.project.store(&repository)?;
    for on in [CountedOn::Machine, CountedOn::Model] {
        let here = machine_facts(MeasuredMachine::this(), on);
        keep(&store, commit, &here, &all.imported.counted_on(on))?;
    }
    for one in all.runs {
        let name = &one.name;
        if !one.runs.is_empty() {
            let benchmarks = ImportedBenchmarks::of_runs(name, &one.runs);
            keep(&store, commit, &one.machine, &benchmarks.map_err(|error| Error::Input(error.to_string()))?)?;
        }
        if let Some(FoldedStacks { event, .. }) = one.stacks.first() {
            let origin = ProfileOrigin {
                commit: commit.hash.clone(),
                environment: ADDED.to_owned(),
                benchmark: name.clone(),
                event: event.clone(),
            };
            // Stacks of several runs add up.
            let text: String = one.stacks.iter().map(|stacks| stacks.text.as_str()).collect();
            store.add_profile(&one.machine, &origin, &text).map_err(of_results)?;
            say(&format!("the profile of {} of {}", quoted(name), commit.short()));
        }
    }
    Ok(0)
}

fn keep(store: &ResultStore, commit: &Commit, machine: &MachineFacts, all: &ImportedBenchmarks) -> Result<(), Error> {
    let results = all.results();
    if results.0.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = results.0.iter().map(|(name, _)| quoted(name)).collect();
    let results = imported_results(commit, machine, results);
    let replaced = store.add(machine, &all.benchmarks(), results).map_err(of_results)?;
    say(&format!("{} of {}", names.join(", "), commit.short()));
    if !replaced.is_empty() {
        let replaced: Vec<_> = replaced.iter().map(|name| quoted(name)).collect();
        say(&format!(
            "what was added before of {} is replaced; files that belong together are named together",
            replaced.join(", ")
        ));
    }
    Ok(())
}

impl Additions {
    fn read(&mut self, path: &Path, name: Option<&str>) -> Result<(), Error> {
        match ImportedBenchmarks::read(path, name) {
            Ok(benchmarks) => {
                self.imported.join(benchmarks);
                return Ok(());
            }
            Err(ImportProblem::Format) => {}
            Err(problem) => return Err(in_file(path, problem)),
        }
        match recordings::read(path)?.ok_or_else(|| in_file(path, ImportProblem::Format))? {
            ReadRun::Recorded(run) => {
                let RecordedRun { program, argv, is_whole, has_failed, machine, quantities, stacks } = *run;
                let name = name.map(str::to_owned).or(program).ok_or_else(|| in_file(path, ImportProblem::NoName))?;
                if !is_whole {
                    let why =
                        "it ends before its command did, so that its counts are of a part of the run: record it again";
                    return Err(in_file(path, why));
                }
                if has_failed {
                    return Err(in_file(path, "its command failed, so that what it took says nothing"));
                }
                let one = self.of(name, machine);
                if one.argv.get_or_insert_with(|| argv.clone()) != &argv {
                    let help = "add each under a name of its own with --name";
                    return Err(in_file(path, format!("it is of another command than the files before it: {help}")));
                }
                one.runs.push(quantities);
                one.stacks.extend(stacks);
            }
            ReadRun::Stacks(stacks) => {
                let name = name.ok_or_else(|| in_file(path, ImportProblem::NoName))?;
                let here = machine_facts(MeasuredMachine::this(), CountedOn::Machine);
                self.of(name.to_owned(), here).stacks.push(stacks);
            }
        }
        Ok(())
    }

    /// What was read of a benchmark on a machine until now.
    fn of(&mut self, name: String, machine: MachineFacts) -> &mut RecordedBenchmark {
        let known = self.runs.iter().position(|one| one.name == name && one.machine == machine);
        let place = known.unwrap_or_else(|| {
            self.runs.push(RecordedBenchmark { name, machine, argv: None, runs: Vec::new(), stacks: Vec::new() });
            self.runs.len() - 1
        });
        &mut self.runs[place]
    }
}
