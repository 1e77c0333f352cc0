//! Prints what `perfprop check --validate` found as text.

use std::fmt::Write as _;

use super::super::report::Paint;
use super::ValidateArgs;
use crate::names::shown;
use crate::number::{amount, grouped, plus_minus, time, whole_share};
use crate::run::MeasuredEvent;
use crate::sources::command::Exit;
use crate::text::wrapped;
use crate::validate::{
    Conclusion, Coverage, ENOUGH, KnownCount, RelativeError, ValidatedEvent, Validation, Validity, least,
    misses_the_truth,
};

fn names(events: &[MeasuredEvent]) -> String {
    events.iter().map(|event| shown(&event.event.name)).collect::<Vec<_>>().join(",")
}

/// Why there is nothing to validate: what is counted has counters all the time.
pub(super) fn nothing_in_turns(counted: &[MeasuredEvent], refused: &[MeasuredEvent]) -> String {
    let of_software = counted.iter().all(|event| event.event.kind.is_software());
    let why = match (of_software, counted.len()) {
        (true, _) => "the kernel counts these all the time, without hardware counters".to_owned(),
        (false, 1) => "it has a counter all the time".to_owned(),
        (false, _) => "they all fit on the counters at once".to_owned(),
    };
    let mut text = format!("no event takes turns: {}: {why}", names(counted));
    if !refused.is_empty() {
        let _ = write!(text, "; not counted on this machine: {}", names(refused));
    }
    text
}

/// What to do where there is nothing to validate.
pub(super) fn nothing(why: &str) -> String {
    let mut text = format!("There is nothing to validate here.\n  {}\n", why.replace('\n', "\n  "));
    text.push_str("  Counts are exact where nothing takes turns. To validate in spite of that:\n");
    text.push_str("    more events than counters:     perfprop check --validate -e EVENTS\n");
    text.push_str("    the same events on two:        perfprop check --validate --counters 2 -e EVENTS -- COMMAND\n");
    text.push_str("    a model, on any machine:       perfprop check --validate --source emulate --counters 2\n");
    text
}

/// A part in percent, with as many digits as errors of totals need.
fn fine(part: f64) -> String {
    match part * 100.0 {
        0.0 => "0%".into(),
        percent if !percent.is_finite() => "—".into(),
        percent if percent >= 999.5 => ">999%".into(),
        percent if percent >= 10.0 => format!("{percent:.0}%"),
        percent if percent >= 1.0 => format!("{percent:.1}%"),
        percent if percent >= 0.1 => format!("{percent:.2}%"),
        percent if percent >= 0.001 => format!("{percent:.3}%"),
        _ => "<0.001%".into(),
    }
}

fn error(error: Option<RelativeError>) -> String {
    match error {
        None => "—".into(),
        Some(RelativeError::Of(part)) => fine(part),
        Some(RelativeError::Below(part)) => format!("<{}", fine(part).trim_start_matches('<')),
    }
}

/// `9 of 10`; with how many can't be known behind it.
fn coverage(coverage: Coverage) -> String {
    match coverage {
        Coverage { held: 0, missed: 0, unclear: 0 } => "—".into(),
        Coverage { unclear: 0, held, .. } => format!("{held} of {}", coverage.judged()),
        Coverage { unclear, held, .. } => format!("{held} of {}, {unclear}?", coverage.judged()),
    }
}

/// What was found, for people.
pub(super) fn validation(validation: &Validation, args: &ValidateArgs, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.heading("Numbers against the truth"));
    for line in about(validation, args) {
        let _ = writeln!(text, "  {}", wrapped(&line, 2));
    }
    let _ = writeln!(
        text,
        "\n{}",
        paint.heading(&format!(
            "{:>10} {:>8} {:>5} {:>8} {:>8}  {:>10}  {:>12}  {:<14} EVENT",
            "TRUTH",
            "RUNS ±",
            "ON",
            "SCALED",
            "PERFPROP",
            "IN ±",
            format!("OF {} ms", validation.interval.as_millis()),
            "VERDICT"
        ))
    );
    validation.events.iter().for_each(|event| text.push_str(&event_line(event)));
    text.push_str(&known_text(&validation.events, paint));
    let _ = writeln!(text, "\n{}", paint.heading("Verdict"));
    for line in verdict(validation) {
        let _ = writeln!(text, "  {}", wrapped(&line, 2));
    }
    text
}

/// What was done, and how the truth is known.
fn about(validation: &Validation, args: &ValidateArgs) -> Vec<String> {
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let command = match command.as_slice() {
        [] => "the built-in mix of loops, memory accesses and branches".to_owned(),
        words => format!("'{}'", shown(&words.join(" "))),
    };
    let runs = validation.runs;
    let columns = "SCALED and PERFPROP are errors of totals. IN ± says how many intervals hold the truth, of totals and of report \
                   intervals";
    let mut lines = match args.counting.counters {
        Some(counters) => {
            let truth = "the truth was counted beside, in the same runs.";
            vec![format!("{command} ran {runs} times on {counters} emulated counters; {truth}"), format!("{columns}.")]
        }
        None => vec![
            format!(
                "{command} ran {runs} times with all events in turns, and between these {} times with some of them pinned to \
                 counters, so that each was counted all the time in {runs} runs. What it did in a run with turns isn't known, \
                 only what it did in the others: by how much these differ (RUNS ±) is taken off errors and added to intervals.",
                validation.truth_runs
            ),
            format!("{columns}; `?` are those that are narrower than RUNS ±, of which nobody can know."),
        ],
    };
    if let Some(exit) = validation.failed {
        let how = match exit {
            Exit::Code(code) => format!("with code {code}"),
            Exit::Signal(signal) => format!("by signal {signal}"),
        };
        lines.push(format!("The command ended {how} in a run: check that it does what it should."));
    }
    lines
}

fn event_line(event: &ValidatedEvent) -> String {
    let unit = &event.event.event.unit;
    format!(
        "{:>10} {:>8} {:>5} {:>8} {:>8}  {:>10}  {:>12}  {:<14} {}\n",
        event.truth.map_or_else(|| "—".into(), |truth| amount(truth.value, unit)),
        event.truth.map_or_else(|| "—".into(), |truth| plus_minus(truth, unit)),
        event.run_ratio.map_or_else(|| "—".into(), whole_share),
        error(event.scaled),
        error(event.estimated),
        coverage(event.totals),
        coverage(event.intervals),
        event.validity.word(),
        shown(&event.event.event.name)
    )
}

/// Counts beside their known values.
fn known_text(events: &[ValidatedEvent], paint: Paint) -> String {
    let known: Vec<_> = events.iter().filter_map(|event| Some((event, event.known?))).collect();
    if known.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.heading("Counts of the mix, whose loops are in assembly and known exactly"));
    for (event, known) in known {
        let KnownCount { counted, known: exact, is_user_only } = known;
        let judged = match (known.is_wrong(), is_user_only) {
            (true, _) => "wrong",
            (false, true) => "right",
            (false, false) => "right, with what the kernel adds",
        };
        let off = known.deviation();
        let off = format!("{}{}", if off < 0.0 { "−" } else { "+" }, fine(off.abs()));
        let _ = writeln!(
            text,
            "  {:<18} counted {:>14}  known {:>14}  off {off:>9}  {judged}",
            shown(&event.event.event.name),
            grouped(counted.round() as u64),
            grouped(exact)
        );
    }
    text.push_str("  What the process needs to start was counted alone, and is taken off.\n");
    text
}

/// What all of it comes to, and why.
pub(super) fn conclusion(validation: &Validation) -> String {
    let promised = whole_share(validation.confidence.level());
    let of = |coverage: Coverage, what: &str| {
        let share = coverage.share().map_or_else(|| "none".into(), whole_share);
        format!("{} of {} {what} ({share})", coverage.held, coverage.judged())
    };
    let millis = validation.interval.as_millis();
    let held = format!(
        "the truth lies in {} and in {}; {promised} are promised",
        of(validation.totals, "totals"),
        of(validation.intervals, &format!("intervals of {millis} ms"))
    );
    match validation.conclusion {
        _ if validation.is_too_short() => {
            let used = time(validation.cpu_time.as_nanos() as f64);
            format!(
                "That can't be known: the command is too short. It uses {used} of CPU time, in which its events don't have the turns \
                 that an interval needs. Give one that uses {millis} ms at least."
            )
        }
        Conclusion::Holds => format!("The intervals hold: {held}."),
        Conclusion::Fails => format!("{}: {held}.", why_failed(validation)),
        Conclusion::Unknown => format!("That can't be known: {held}. {}", why_unknown(validation)),
    }
}

/// What failed: intervals of all events together, those of single events, or known counts. The lines below name events.
fn why_failed(validation: &Validation) -> String {
    let together = [("totals", validation.totals), ("report intervals", validation.intervals)];
    let misses = |found: &(&str, Coverage)| misses_the_truth(found.1, validation.confidence);
    let together: Vec<_> = together.into_iter().filter(misses).map(|(what, _)| what).collect();
    let has_narrow = validation.events.iter().any(|event| event.validity == Validity::TooNarrow);
    match (together.as_slice(), has_narrow) {
        ([], true) => "The intervals of some events are too narrow".into(),
        ([], false) => "Known counts are wrong".into(),
        (what, _) => format!(
            "The intervals don't hold what they promise: of the {} of all events together, less than {} hold the truth, which is \
             too few for chance",
            what.join(" and of the "),
            whole_share(least(validation.confidence))
        ),
    }
}

/// What all of it comes to, and what is to be said of single events.
fn verdict(validation: &Validation) -> Vec<String> {
    let mut lines = vec![conclusion(validation)];
    if validation.is_too_short() {
        return lines;
    }
    let with = |validity: Validity| {
        let events = validation.events.iter().filter(|event| event.validity == validity);
        events.map(|event| event.event.event.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let remarks = [
        (Validity::TooNarrow, "Too narrow by more than chance"),
        (Validity::Unclear, "Not known, as runs differ by more than the intervals are wide, or there are none"),
        (
            Validity::NoTruth,
            "Without a truth, as they never had a counter all the time (who holds one? perfprop check)",
        ),
        (Validity::NotCounted, "Not counted on this machine"),
    ];
    for (validity, what) in remarks {
        let events = with(validity);
        if !events.is_empty() {
            lines.push(format!("{what}: {}.", shown(&events)));
        }
    }
    let wrong = validation.events.iter().filter(|event| event.known.is_some_and(KnownCount::is_wrong));
    let wrong: Vec<_> = wrong.map(|event| shown(&event.event.event.name)).collect();
    if !wrong.is_empty() {
        lines.push(format!(
            "Known counts are wrong: {}. The hardware or its guest counts something else.",
            wrong.join(", ")
        ));
    }
    lines
}

fn why_unknown(validation: &Validation) -> String {
    let judged = validation.totals.judged();
    match validation.totals {
        Coverage { unclear, .. } if unclear > judged => {
            "The command differs from run to run by more than the intervals are wide: give one that does the same each \
             time, or longer runs."
                .into()
        }
        _ if judged == 0 => "No interval could be held against a truth.".into(),
        _ => {
            let runs = (validation.runs as u64 * ENOUGH).div_ceil(judged).max(validation.runs as u64 * 2);
            format!("That is too few to say: -r {runs}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::builders::{event, measured};
    use crate::rates::Confidence;

    fn found(held: u64, missed: u64) -> Coverage {
        Coverage { held, missed, unclear: 0 }
    }

    /// A validation of one event.
    fn of(conclusion: Conclusion, totals: Coverage, validity: Validity) -> Validation {
        let event = ValidatedEvent {
            event: measured(event("cycles")),
            run_ratio: Some(0.5),
            truth: None,
            scaled: None,
            estimated: None,
            totals,
            scaled_intervals: None,
            estimated_intervals: None,
            intervals: Coverage::default(),
            known: None,
            validity,
        };
        Validation {
            events: vec![event],
            runs: 2,
            truth_runs: 2,
            interval: Duration::from_millis(100),
            cpu_time: Duration::from_micros(2_400),
            confidence: Confidence::DEFAULT,
            totals,
            intervals: Coverage::default(),
            failed: None,
            conclusion,
        }
    }

    #[test]
    fn a_command_that_is_too_short_is_told_how_long_one_has_to_be() {
        let short = of(Conclusion::Unknown, Coverage::default(), Validity::Unclear);
        let lines = verdict(&short);
        assert!(
            lines[0].contains("uses 2.40 ms of CPU time") && lines[0].ends_with("uses 100 ms at least."),
            "{lines:?}"
        );
        assert_eq!(lines.len(), 1);
        let long = Validation { cpu_time: Duration::from_secs(1), ..short };
        assert!(verdict(&long)[0].contains("0 of 0 totals"));
    }

    #[test]
    fn what_fails_says_whether_it_is_single_events_or_all_of_them_together() {
        let single = conclusion(&of(Conclusion::Fails, found(95, 5), Validity::TooNarrow));
        assert!(
            single.starts_with("The intervals of some events are too narrow: the truth lies in 95 of 100"),
            "{single}"
        );
        // No event is too narrow by itself.
        let together = conclusion(&of(Conclusion::Fails, found(80, 20), Validity::Holds));
        assert!(together.contains("of the totals of all events together, less than 90% hold the truth"), "{together}");
        let known = conclusion(&of(Conclusion::Fails, found(95, 5), Validity::Holds));
        assert!(known.starts_with("Known counts are wrong: "), "{known}");
    }
}
