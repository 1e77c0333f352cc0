//! Prints the findings of `check`, as text for people or JSON for programs.

use std::fmt::Write as _;

use serde_json::json;

use super::events::{Events, Grouped, Tried};
use super::expected::Expected;
use super::files::CheckedFile;
use crate::codes::Coded;
use crate::machine::{FactStanding, MachineFact, ReportSection};
use crate::measure;
use crate::names::{first_of, shown};
use crate::number::{counted, whole_share};
use crate::plan::SumGain;
use crate::text::wrapped;

/// Where what was found of a fact begins: behind the word, the longest name, and gaps.
const FOUND_AT: usize = 29;
/// Where the lines about a fact that isn't well begin.
const NOTE_AT: usize = 8;

/// Everything that `check` found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) facts: Vec<MachineFact>,
    pub(super) events: Option<Events>,
    pub(super) files: Vec<CheckedFile>,
}

/// Whether words are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Colour,
    Plain,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        match self {
            Self::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
            Self::Plain => text.to_owned(),
        }
    }

    pub(super) fn heading(self, text: &str) -> String {
        self.with("1", text)
    }

    /// The word for a standing, four columns wide.
    fn standing(self, standing: FactStanding) -> String {
        let word = format!("{:<4}", standing.word());
        match standing {
            FactStanding::Ok => self.with("32", &word),
            FactStanding::Unknown => self.with("2", &word),
            FactStanding::Warn => self.with("33", &word),
            FactStanding::Fail => self.with("1;31", &word),
        }
    }
}

impl Report {
    /// Whether what was asked for can be measured: the events, else at least software events; and
    /// whether the relation files are right.
    pub(super) fn is_well(&self) -> bool {
        let counts = match &self.events {
            Some(events) => events.is_well(),
            None => !self.facts.iter().any(|fact| fact.standing == FactStanding::Fail),
        };
        counts && self.files.iter().all(CheckedFile::is_right)
    }

    pub(super) fn json(&self) -> String {
        let (events, groups) = self.events.as_ref().map(Events::json).unwrap_or_default();
        let report = json!({
            "version": 1,
            "perfprop": env!("CARGO_PKG_VERSION"),
            "ok": self.is_well(),
            "facts": self.facts,
            "events": events,
            "groups": groups,
            "sums": self.events.as_ref().map_or(&[][..], Events::sums).iter().map(sum_json).collect::<Vec<_>>(),
            "expected": self.events.as_ref().and_then(Events::expected).map(Expected::json),
            "relation-files": self.files.iter().map(CheckedFile::json).collect::<Vec<_>>(),
        });
        format!("{report}\n")
    }

    pub(super) fn text(&self, paint: Paint) -> String {
        let mut parts: Vec<String> = Vec::new();
        let sections = self.facts.chunk_by(|a, b| a.section == b.section);
        parts.extend(sections.filter_map(|facts| Some(section(facts.first()?.section, facts, paint))));
        parts.extend(self.events.iter().map(|events| events_text(events, &self.facts, paint)));
        if !self.files.is_empty() {
            parts.push(self.files_text(paint));
        }
        parts.extend(self.summary());
        parts.join("\n")
    }

    fn files_text(&self, paint: Paint) -> String {
        let mut text = format!("{}\n", paint.heading("Relation files"));
        for file in &self.files {
            let standing = if file.is_right() { FactStanding::Ok } else { FactStanding::Fail };
            let fine = match file.is_readable() {
                true => {
                    file_text(file.relations().len(), file.metrics().len(), file.missing.len(), &file.missing_events())
                }
                false => "can't be read".to_owned(),
            };
            let _ = writeln!(text, "  {}  {}: {fine}", paint.standing(standing), shown(&file.name));
            for relation in file.relations() {
                let _ = writeln!(text, "        {}  {}", shown(&relation.id), shown(&relation.formula()));
            }
            for metric in file.metrics() {
                let _ = writeln!(text, "        {}  {}", shown(&metric.name), shown(&metric.formula.to_string()));
            }
            // Each complaint escapes what it quotes of the file.
            file.complaints().into_iter().for_each(|complaints| text.push_str(&format!("{complaints}\n")));
            file.notes.iter().for_each(|note| text.push_str(&format!("        {note}\n")));
        }
        text
    }

    /// The last line: what all of it comes to.
    fn summary(&self) -> Option<String> {
        let yes = |name: &str| fact(&self.facts, name).and_then(|fact| fact.value.as_bool()) == Some(true);
        let text = match &self.events {
            _ if self.facts.is_empty() => return None,
            Some(Events::Read { events, groups: Ok(_), .. }) => {
                let counted = events.iter().filter(|event| event.verdict.counts()).count();
                format!("{counted} of {} events can be counted here.", events.len())
            }
            Some(_) => "These events cannot be counted as they are written.".to_owned(),
            None if !yes("software") => "Nothing can be counted here by this user.".to_owned(),
            None if yes("cycles") => "Software and hardware events can be counted here.".to_owned(),
            None => "Software events can be counted here, hardware events cannot.".to_owned(),
        };
        Some(format!("{text}\n"))
    }
}

/// How much of a relation file is right, and how many relations are of no use here, as this machine lacks their events.
fn file_text(relations: usize, metrics: usize, lacking: usize, events: &[&str]) -> String {
    let fine = fine_text(relations.saturating_sub(lacking), metrics);
    if lacking == 0 {
        return fine;
    }
    let named = first_of(events.iter().map(|name| shown(name)), MOST_NAMED);
    let verb = if lacking == 1 { "names" } else { "name" };
    let events = format!("{verb} events that this machine doesn't have: {named}");
    let fine_relations = relations.saturating_sub(lacking);
    let lacking = match (fine_relations, lacking) {
        (0, lacking) => counted(lacking, "relation"),
        (_, lacking) => lacking.to_string(),
    };
    let fine = if fine_relations + metrics > 0 { format!("{fine}, ") } else { String::new() };
    format!("{fine}{lacking} {events}")
}

/// Events that are named, at most.
const MOST_NAMED: usize = 5;

/// How much of a relation file is right. Metrics are named where there are some.
fn fine_text(relations: usize, metrics: usize) -> String {
    let text = match (relations, metrics) {
        (relations, 0) => counted(relations, "relation"),
        (0, metrics) => counted(metrics, "metric"),
        (relations, metrics) => format!("{} and {}", counted(relations, "relation"), counted(metrics, "metric")),
    };
    format!("{text} {} right", if relations + metrics == 1 { "is" } else { "are" })
}

fn section(section: ReportSection, facts: &[MachineFact], paint: Paint) -> String {
    let mut text = format!("{}\n", paint.heading(section.title()));
    for fact in facts {
        let found = wrapped(&shown(&fact.found), FOUND_AT);
        let _ = writeln!(text, "  {}  {:<19}  {found}", paint.standing(fact.standing), fact.name);
        if fact.standing > FactStanding::Ok {
            let _ = writeln!(text, "{:NOTE_AT$}{}", "", wrapped(fact.why, NOTE_AT));
        }
        if let Some(fix) = &fact.fix {
            let _ = writeln!(text, "{:NOTE_AT$}fix: {}", "", paint.heading(&shown(fix)));
        }
    }
    text
}

fn events_text(events: &Events, facts: &[MachineFact], paint: Paint) -> String {
    let mut text = format!("{}\n", paint.heading("Events"));
    match events {
        Events::Unread(error) => text.push_str(&format!("{}\n", error.printed())),
        Events::Read { events, groups, has_watchdog } => {
            events.iter().for_each(|event| event_text(&mut text, event, paint));
            let _ = writeln!(text, "\n{}", paint.heading("Groups"));
            match groups {
                Ok(planned) => {
                    groups_text(&mut text, &planned.groups, facts);
                    planned.sums.iter().for_each(|(formula, gain)| sum_text(&mut text, formula, *gain));
                    planned.expected.iter().for_each(|expected| text.push_str(&expected.text()));
                }
                Err(group) => {
                    let (group, has_watchdog) = (group.clone(), *has_watchdog);
                    let error = measure::Error::Unschedulable { group, has_watchdog };
                    text.push_str(&format!("{}\n", error.printed()));
                }
            }
        }
    }
    text
}

/// What a relation wins: events that need no counter.
fn sum_text(text: &mut String, formula: &str, gain: SumGain) {
    let number = |number: usize| NUMBERS.get(number).map_or_else(|| number.to_string(), |&word| word.to_owned());
    let counters = |count: usize| format!("{} counter{}", number(count), if count == 1 { " gives" } else { "s give" });
    let wins = match gain.follows {
        true => format!("{} {} events", counters(gain.events - 1), number(gain.events)),
        false => "no event follows from the others, as no slice has all of them but one".to_owned(),
    };
    let pairs = format!("pairs counted together: {} of {}", gain.pairs_together, gain.pairs());
    let _ = writeln!(text, "  {}", wrapped(&format!("{}: {wins}; {pairs}", shown(formula)), 2));
}

/// Small numbers in words.
const NUMBERS: [&str; 10] = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

fn sum_json((formula, gain): &(String, SumGain)) -> serde_json::Value {
    json!({
        "formula": formula,
        "events": gain.events,
        "follows": gain.follows,
        "pairs-together": gain.pairs_together,
        "pairs": gain.pairs(),
    })
}

fn event_text(text: &mut String, event: &Tried, paint: Paint) {
    let standing = match event.verdict.counts() {
        true if event.event.modifiers.exclude_kernel || event.verdict == crate::machine::EventVerdict::Counted => {
            FactStanding::Ok
        }
        true => FactStanding::Warn,
        false => FactStanding::Fail,
    };
    let _ = writeln!(text, "  {}  {}", paint.standing(standing), shown(&event.event.name));
    let line = format!("{}; {}", shown(&event.reading()), shown(&event.answer()));
    let _ = writeln!(text, "{:NOTE_AT$}{}", "", wrapped(&line, NOTE_AT));
}

fn groups_text(text: &mut String, groups: &[Grouped], facts: &[MachineFact]) {
    for (number, group) in groups.iter().enumerate() {
        let what = match &group.pmu {
            None => "without counters, runs all the time".to_owned(),
            Some(pmu) => {
                let needed = group.events.len();
                let of = fact(facts, "counters").and_then(|fact| fact.value.get(pmu)?.as_u64());
                let of = of.map_or_else(String::new, |all| format!(" of {all}"));
                let ratio = match group.ratio {
                    Some(ratio) if ratio >= 1.0 => "runs all the time".to_owned(),
                    Some(ratio) => format!("runs {} of the time", whole_share(ratio)),
                    None => "for whole CPUs".to_owned(),
                };
                let noun = if needed == 1 && of.is_empty() { "counter" } else { "counters" };
                format!("{needed}{of} {noun} of {}, {ratio}", shown(pmu))
            }
        };
        let names: Vec<_> = group.events.iter().map(|name| shown(name)).collect();
        let _ = writeln!(text, "  {:>4}  {what}", number + 1);
        let _ = writeln!(text, "{:NOTE_AT$}{}", "", wrapped(&names.join(" "), NOTE_AT));
    }
    if groups.is_empty() {
        text.push_str("  none: no event can be counted\n");
    }
    turns_text(text, groups, facts);
}

/// What follows from multiplexed groups.
fn turns_text(text: &mut String, groups: &[Grouped], facts: &[MachineFact]) {
    let Some(pmu) =
        groups.iter().find(|group| group.ratio.is_some_and(|ratio| ratio < 1.0)).and_then(|group| group.pmu.as_ref())
    else {
        return;
    };
    text.push_str("  Groups take turns; what they count is scaled, with the error of that.\n");
    if groups.iter().flat_map(|group| &group.events).any(|name| name.starts_with('(')) {
        text.push_str("  Events in parentheses aren't listed: they help to correct the others.\n");
    }
    let slice = fact(facts, "mux interval").and_then(|fact| fact.value.get(pmu)?.as_u64());
    if let Some(slice) = slice {
        let takes_turns =
            |group: &&Grouped| group.pmu.as_ref() == Some(pmu) && group.ratio.is_none_or(|ratio| ratio < 1.0);
        let all = groups.iter().filter(takes_turns).count() as u64 * slice;
        let _ = writeln!(
            text,
            "  A slice takes {slice} ms, a round of all {all} ms: intervals (-I) of {} ms see each.",
            2 * all
        );
    }
    if fact(facts, "nmi_watchdog").is_some_and(|fact| fact.standing == FactStanding::Warn) {
        text.push_str("  The NMI watchdog holds a counter: sudo sysctl kernel.nmi_watchdog=0\n");
    }
}

fn fact<'a>(facts: &'a [MachineFact], name: &str) -> Option<&'a MachineFact> {
    facts.iter().find(|fact| fact.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_of_no_use_here_are_counted_apart() {
        assert_eq!(file_text(2, 0, 0, &[]), "2 relations are right");
        assert_eq!(file_text(2, 0, 1, &["x"]), "1 relation is right, 1 names events that this machine doesn't have: x");
        assert_eq!(file_text(1, 0, 1, &["x"]), "1 relation names events that this machine doesn't have: x");
        assert_eq!(
            file_text(3, 1, 3, &["a", "b", "c", "d", "e", "f", "g"]),
            "1 metric is right, 3 relations name events that this machine doesn't have: a, b, c, d, e and 2 more"
        );
    }
}
