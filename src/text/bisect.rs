//! Prints which commit changed a number.

use super::history::{benchmark_number, change};
use crate::history::{BISECT_ERROR, BisectOutcome, Commit};
use crate::names::{quoted, shown};
use crate::steps::{LocatedStep, NarrowedBy};

/// What a search among commits found, in a few lines. `name` is the number's.
pub fn bisection(name: &str, commits: &[Commit], outcome: &BisectOutcome) -> String {
    let told = ToldBisection { name, commits, outcome };
    match outcome.located {
        LocatedStep::Found { last, first } => told.found(last, first),
        LocatedStep::Narrowed { last, first, because } => told.narrowed(last, first, because),
        LocatedStep::NoStep => format!(
            "{}: {} and {} don't differ by more than chance in {}; {}\n",
            shown(name),
            told.hash(0),
            told.hash(commits.len().saturating_sub(1)),
            told.runs(),
            "a smaller step needs more of them (--repeat)",
        ),
        LocatedStep::MissingEnd(end) => {
            format!(
                "{}: {} can't be built or run, and so there is nothing to search; name another end\n",
                shown(name),
                told.commit(end)
            )
        }
    }
}

struct ToldBisection<'a> {
    name: &'a str,
    commits: &'a [Commit],
    outcome: &'a BisectOutcome,
}

impl ToldBisection<'_> {
    fn hash(&self, place: usize) -> &str {
        self.commits.get(place).map_or("?", Commit::short)
    }

    fn commit(&self, place: usize) -> String {
        let subject = self.commits.get(place).map_or("", |commit| &commit.subject);
        format!("{} {}", self.hash(place), shown(subject))
    }

    fn runs(&self) -> String {
        let (runs, built) = (self.outcome.history.runs, self.outcome.built);
        format!("{runs} runs of {built} commits")
    }

    /// By how much the number changed from one commit to another.
    fn step(&self, before: usize, after: usize) -> Option<(f64, f64)> {
        let level = |place: usize| self.outcome.levels.get(place).copied().flatten();
        level(before).zip(level(after))
    }

    fn found(&self, last: usize, first: usize) -> String {
        let mut out = format!("{}\n", self.commit(first));
        if let Some((before, after)) = self.step(last, first) {
            let number = |number| benchmark_number(number, self.name, &self.outcome.unit);
            out +=
                &format!("{}: {} -> {} ({})", shown(self.name), number(before), number(after), change(before, after));
        }
        if let Some((before, after)) = self.step(0, self.commits.len() - 1).filter(|_| self.commits.len() > 2) {
            out +=
                &format!("; from {} to {} {}", self.hash(0), self.hash(self.commits.len() - 1), change(before, after));
        }
        out += &format!(
            "\n{}; if there is one step, at most 1 of {} such searches names a wrong commit\n",
            self.runs(),
            (1.0 / BISECT_ERROR).round()
        );
        out
    }

    fn narrowed(&self, last: usize, first: usize, because: NarrowedBy) -> String {
        let why = match because {
            NarrowedBy::Missing => "none of those between can be built or run".to_owned(),
            NarrowedBy::End(end) => {
                format!(
                    "a run of {}, which is an end of the search and beside which others are measured, failed",
                    self.hash(end)
                )
            }
            NarrowedBy::Noise => "the noise is too large for so many runs (--repeat)".to_owned(),
            NarrowedBy::Interrupted => "the search was stopped".to_owned(),
        };
        let (last, first, between) = (self.hash(last), self.hash(first), first - last);
        format!("{}: one of {between} commits, {last}..{first}: {why} ({})\n", quoted(self.name), self.runs())
    }
}
