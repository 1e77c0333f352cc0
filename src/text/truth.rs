//! Prints how far the numbers of runs on emulated counters are from the truth.

use std::fmt::Write;

use super::narrow::narrowed;
use super::repeats::Repeats;
use super::wrap::{WIDTH, wrapped_message};
use crate::monitor::{Judged, Row, Truth};
use crate::names::shown;
use crate::number::{amount, change, percent, plus_minus_part};
use crate::rates::mean;

/// The table, in percent of the truth: of one run the errors with their signs, of several the means of their sizes; and
/// whether the interval of each number has the truth in it, or in how many runs.
pub fn truth(runs: &Repeats<'_>, columns: Option<usize>) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let error = format!("±{}", last.confidence());
    let heads = ["SCALED", &error, "IN ±", "CORRECTED", &error, "IN ±"];
    let mut table = table_line("TRUTH", heads, "EVENT");
    for row in last.rows() {
        let name = shown(&row.event.event.name);
        match runs.truth(row.index) {
            Some(mean) => {
                let mean = amount(mean.count, &row.event.event.unit);
                table.push_str(&table_line(&mean, cells(&row, runs).each_ref().map(String::as_str), &name));
            }
            None => table.push_str(&table_line(NONE, [NONE; 6], &name)),
        }
    }
    let table = columns.map_or(table.clone(), |columns| narrowed(&table, columns));
    let mut legend = String::from(
        "SCALED and CORRECTED say how far each number is from the truth, in percent of it. ± is how far the interval of the \
         number before it reaches towards the truth; IN ± says whether it reaches it",
    );
    if runs.0.len() > 1 {
        legend.push_str(
            ". They are means of runs, of errors without their signs; runs that saw none of an event are left out",
        );
    }
    let legend = wrapped_message(&legend, 1, columns.map_or(WIDTH, |columns| columns.min(WIDTH)));
    format!("\n Errors against the truth, which was counted beside:\n\n{table}\n {legend}\n\n")
}

/// Stands where there is no number.
const NONE: &str = "—";

fn table_line(truth: &str, cells: [&str; 6], event: &str) -> String {
    let mut line = format!("{truth:>12}  {:>10}", cells[0]);
    for cell in &cells[1..] {
        let _ = write!(line, "  {cell:>9}");
    }
    line + &format!("  {event}\n")
}

/// Of the scaled and of the corrected count: the error, its ±, whether the truth is in that.
fn cells(row: &Row<'_>, runs: &Repeats<'_>) -> [String; 6] {
    let truths: Vec<_> = runs.true_counts(row.index).into_iter().map(|(_, truth)| truth).collect();
    let [scaled, corrected] = match truths.as_slice() {
        [one] if runs.0.len() == 1 => {
            [one.scaled, one.corrected].map(|error| error.map_or_else(|| NONE.into(), change))
        }
        several => errors(several),
    };
    let [of_scaled, of_corrected] = intervals(&truths, runs.0.len());
    let ([side, held], [corrected_side, corrected_held]) = (of_scaled, of_corrected);
    [scaled, side, held, corrected, corrected_side, corrected_held]
}

/// `yes` or `no` of one run; of several `2 of 3`.
fn covered(intervals: &[Judged], runs: usize) -> String {
    let known: Vec<_> = intervals.iter().filter_map(|interval| interval.is_covered).collect();
    match known.as_slice() {
        [] => NONE.into(),
        [true] if runs == 1 => "yes".into(),
        [false] if runs == 1 => "no".into(),
        known => format!("{} of {}", known.iter().filter(|&&is_covered| is_covered).count(), known.len()),
    }
}

/// Whether the count of any run was corrected. Where one was, the best number of another is its scaled one.
fn is_any_corrected(truths: &[Truth]) -> bool {
    truths.iter().any(|truth| truth.corrected.is_some() || truth.corrected_interval != Judged::default())
}

/// The mean sizes of the errors of scaled counts, and of the best ones, if any was corrected.
fn errors(truths: &[Truth]) -> [String; 2] {
    let scaled = mean_size(truths.iter().map(|truth| truth.scaled));
    let best = truths.iter().map(|truth| truth.corrected.or(truth.scaled));
    let best = mean_size(best).filter(|_| is_any_corrected(truths));
    [scaled, best].map(|size| size.map_or_else(|| NONE.into(), percent))
}

/// The mean sides of the intervals of scaled counts, and of the best ones, if any was corrected; and how many hold the
/// truth.
fn intervals(truths: &[Truth], runs: usize) -> [[String; 2]; 2] {
    let best = |truth: &Truth| match truth.corrected_interval {
        nothing if nothing == Judged::default() => truth.scaled_interval,
        corrected => corrected,
    };
    let scaled: Vec<_> = truths.iter().map(|truth| truth.scaled_interval).collect();
    let best: Vec<_> = truths.iter().filter(|_| is_any_corrected(truths)).map(best).collect();
    [scaled, best].map(|intervals| {
        let side = mean_size(intervals.iter().map(|interval| interval.side));
        [side.map_or_else(|| NONE.into(), plus_minus_part), covered(&intervals, runs)]
    })
}

fn mean_size(errors: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let sizes: Vec<_> = errors.flatten().map(f64::abs).collect();
    mean(&sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose scaled interval is ±25 % wide and whose corrected one, where there is one, ±5 %.
    fn run(scaled: f64, corrected: Option<f64>) -> Truth {
        let judged = |error: f64, side: f64| Judged { side: Some(side), is_covered: Some(error.abs() <= side) };
        Truth {
            count: 100,
            scaled: Some(scaled),
            corrected,
            scaled_interval: judged(scaled, 0.25),
            corrected_interval: corrected.map_or_else(Judged::default, |error| judged(error, 0.05)),
        }
    }

    #[test]
    fn runs_that_nothing_corrected_count_as_they_were_scaled() {
        assert_eq!(errors(&[run(0.1, None), run(-0.3, Some(0.2))]), ["20.0%", "15.0%"]);
        assert_eq!(errors(&[run(0.1, None), run(-0.3, None)]), ["20.0%", "—"]);
        assert_eq!(errors(&[]), ["—", "—"]);
    }

    #[test]
    fn one_run_is_in_its_interval_or_not_and_several_are_counted() {
        let intervals = [run(0.1, None), run(-0.3, None)].map(|truth| truth.scaled_interval);
        assert_eq!((covered(&intervals[..1], 1), covered(&intervals[1..], 1)), ("yes".into(), "no".into()));
        // Of three runs, in two of which the event was counted.
        assert_eq!((covered(&intervals, 3), covered(&intervals[..1], 3)), ("1 of 2".into(), "1 of 1".into()));
        assert_eq!(covered(&[], 3), "—");
    }

    #[test]
    fn an_interval_that_a_correction_moved_away_from_the_truth_is_judged() {
        // The scaled count holds the truth, and a wrong relation makes it 20 % larger and surer.
        assert_eq!(intervals(&[run(0.1, Some(0.2))], 1), [["±25.0%", "yes"], ["±5.0%", "no"]]);
        assert_eq!(intervals(&[run(0.1, None)], 1), [["±25.0%", "yes"], ["—", "—"]]);
        // The best number of the second run is its scaled one.
        assert_eq!(intervals(&[run(0.1, Some(0.2)), run(0.1, None)], 2), [["±25.0%", "2 of 2"], ["±15.0%", "1 of 2"]]);
    }
}
