//! Prints how far the numbers of runs on emulated counters are from the truth.

use std::fmt::Write;

use super::repeats::Repeats;
use crate::monitor::{Row, Truth};
use crate::names::shown;
use crate::number::{amount, change, percent, plus_minus};

/// The table: of one run the errors with their signs, of several the means of their sizes, and in how
/// many the interval of the scaled count had the truth in it.
pub fn truth(runs: &Repeats<'_>) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let mut out = String::from("\n Errors against the truth, which was counted beside:\n\n");
    let error = format!("±{}", last.confidence());
    let _ = writeln!(out, "{:>12}  {:>10}  {:>9}  {:>9}  {:>9}  EVENT", "TRUTH", "SCALED", error, "IN ±", "CORRECTED");
    for row in last.rows() {
        let truths: Vec<_> = runs.0.iter().filter_map(|run| run.truth(row.index)).collect();
        let cells = match truths.as_slice() {
            [] => format!("{:>12}  {:>10}  {:>9}  {:>9}  {:>9}", "—", "—", "—", "—", "—"),
            [one] => one_run(&row, one),
            several => several_runs(&row, several),
        };
        let _ = writeln!(out, "{cells}  {}", shown(&row.event.event.name));
    }
    out.push('\n');
    out
}

fn one_run(row: &Row<'_>, truth: &Truth) -> String {
    let interval = row.scaled.map_or_else(|| "—".into(), |scaled| plus_minus(scaled, &row.event.event.unit));
    let covered = match truth.is_covered {
        Some(true) => "yes",
        Some(false) => "no",
        None => "—",
    };
    let number = amount(truth.count as f64, &row.event.event.unit);
    format!("{number:>12}  {:>10}  {interval:>9}  {covered:>9}  {:>9}", signed(truth.scaled), signed(truth.corrected))
}

fn several_runs(row: &Row<'_>, truths: &[Truth]) -> String {
    let mean = truths.iter().map(|truth| truth.count as f64).sum::<f64>() / truths.len() as f64;
    let known = truths.iter().filter(|truth| truth.is_covered.is_some()).count();
    let covered = truths.iter().filter(|truth| truth.is_covered == Some(true)).count();
    let number = amount(mean, &row.event.event.unit);
    let covered = format!("{covered} of {known}");
    let [scaled, corrected] = errors(truths);
    format!("{number:>12}  {scaled:>10}  {:>9}  {covered:>9}  {corrected:>9}", "")
}

/// The mean sizes of the errors of scaled counts, and of the best ones, if any was corrected.
fn errors(truths: &[Truth]) -> [String; 2] {
    let size = |error: fn(&Truth) -> Option<f64>| {
        let sizes: Vec<_> = truths.iter().filter_map(error).map(f64::abs).collect();
        if sizes.is_empty() { "—".into() } else { percent(sizes.iter().sum::<f64>() / sizes.len() as f64) }
    };
    // Where one run was corrected, the best number of another is its scaled one.
    let is_corrected = truths.iter().any(|truth| truth.corrected.is_some());
    let best = if is_corrected { |truth: &Truth| truth.corrected.or(truth.scaled) } else { |_: &Truth| None };
    [size(|truth| truth.scaled), size(best)]
}

fn signed(error: Option<f64>) -> String {
    error.map_or_else(|| "—".into(), change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_nothing_corrected_count_as_they_were_scaled() {
        let run = |scaled, corrected| Truth { count: 100, scaled: Some(scaled), corrected, is_covered: Some(true) };
        assert_eq!(errors(&[run(0.1, None), run(-0.3, Some(0.2))]), ["20.0%", "15.0%"]);
        assert_eq!(errors(&[run(0.1, None), run(-0.3, None)]), ["20.0%", "—"]);
        assert_eq!(errors(&[]), ["—", "—"]);
    }
}
