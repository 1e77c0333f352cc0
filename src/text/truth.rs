//! Prints how far the numbers of runs on emulated counters are from the truth.

use std::fmt::Write;

use super::repeats::Repeats;
use crate::monitor::{Row, Truth};
use crate::names::shown;
use crate::number::{amount, change, percent, plus_minus_part};

/// The table, in percent of the truth: of one run the errors with their signs, of several the means of their sizes, and in how
/// many the interval of the scaled count had the truth in it.
pub fn truth(runs: &Repeats<'_>) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let mut out = String::from("\n Errors against the truth, which was counted beside:\n\n");
    let error = format!("±{}", last.confidence());
    let _ = writeln!(out, "{:>12}  {:>10}  {:>9}  {:>9}  {:>9}  EVENT", "TRUTH", "SCALED", error, "IN ±", "CORRECTED");
    for row in last.rows() {
        let [truth, scaled, side, covered, corrected] = cells(&row, runs);
        let name = shown(&row.event.event.name);
        let _ = writeln!(out, "{truth:>12}  {scaled:>10}  {side:>9}  {covered:>9}  {corrected:>9}  {name}");
    }
    out.push_str("\n SCALED, ± and CORRECTED are in percent of the truth; ± and IN ± are of the scaled count:\n the side of its interval that the truth lies on\n");
    if runs.0.len() > 1 {
        out.push_str(" They are means of runs, of errors without their signs; runs in which an event was never counted are left out\n");
    }
    out.push('\n');
    out
}

/// The truth, the error of the scaled count and its ±, whether the truth is in that, the error of the corrected count.
fn cells(row: &Row<'_>, runs: &Repeats<'_>) -> [String; 5] {
    let truths: Vec<_> = runs.true_counts(row.index).into_iter().map(|(_, truth)| truth).collect();
    let none = || "—".to_owned();
    let Some(mean) = runs.truth(row.index) else { return std::array::from_fn(|_| none()) };
    let [scaled, corrected] = match truths.as_slice() {
        [one] if runs.0.len() == 1 => [one.scaled, one.corrected].map(|error| error.map_or_else(none, change)),
        several => errors(several),
    };
    let side = mean_size(&truths, |truth| truth.side).map_or_else(none, plus_minus_part);
    [amount(mean.count, &row.event.event.unit), scaled, side, covered(&truths, runs.0.len()), corrected]
}

/// `yes` or `no` of one run; of several `2 of 3`.
fn covered(truths: &[Truth], runs: usize) -> String {
    let known: Vec<_> = truths.iter().filter_map(|truth| truth.is_covered).collect();
    match known.as_slice() {
        [] => "—".into(),
        [true] if runs == 1 => "yes".into(),
        [false] if runs == 1 => "no".into(),
        known => format!("{} of {}", known.iter().filter(|&&is_covered| is_covered).count(), known.len()),
    }
}

/// The mean sizes of the errors of scaled counts, and of the best ones, if any was corrected.
fn errors(truths: &[Truth]) -> [String; 2] {
    // Where one run was corrected, the best number of another is its scaled one.
    let is_corrected = truths.iter().any(|truth| truth.corrected.is_some());
    let best = if is_corrected { |truth: &Truth| truth.corrected.or(truth.scaled) } else { |_: &Truth| None };
    [mean_size(truths, |truth| truth.scaled), mean_size(truths, best)]
        .map(|size| size.map_or_else(|| "—".into(), percent))
}

fn mean_size(truths: &[Truth], error: fn(&Truth) -> Option<f64>) -> Option<f64> {
    let sizes: Vec<_> = truths.iter().filter_map(error).map(f64::abs).collect();
    (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(scaled: f64, corrected: Option<f64>) -> Truth {
        Truth { count: 100, scaled: Some(scaled), corrected, side: Some(0.25), is_covered: Some(scaled > -0.25) }
    }

    #[test]
    fn runs_that_nothing_corrected_count_as_they_were_scaled() {
        assert_eq!(errors(&[run(0.1, None), run(-0.3, Some(0.2))]), ["20.0%", "15.0%"]);
        assert_eq!(errors(&[run(0.1, None), run(-0.3, None)]), ["20.0%", "—"]);
        assert_eq!(errors(&[]), ["—", "—"]);
    }

    #[test]
    fn one_run_is_in_its_interval_or_not_and_several_are_counted() {
        let truths = [run(0.1, None), run(-0.3, None)];
        assert_eq!((covered(&truths[..1], 1), covered(&truths[1..], 1)), ("yes".into(), "no".into()));
        // Of three runs, in two of which the event was counted.
        assert_eq!((covered(&truths, 3), covered(&truths[..1], 3)), ("1 of 2".into(), "1 of 1".into()));
        assert_eq!(covered(&[], 3), "—");
    }
}
