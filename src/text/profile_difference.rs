//! Prints how functions differ between the profiles of two sets of runs, as a table of plain text.

use std::fmt::Write;

use super::column_width;
use super::difference::{change, interval, mean, p_value};
use crate::compare::{ComparedEvent, ProfileDifference, Runs};
use crate::names::shown;
use crate::number::share;

/// The functions in which most is spent, the surest difference first. Of too few runs to tell, which it says then, the
/// largest.
pub fn profile_difference(found: &ProfileDifference) -> String {
    let mut out = String::new();
    let (what, shares) = (found.of_what(), if found.is_of_weights { "" } else { "shares " });
    let head = what.to_uppercase();
    let plural = format!("{}{}s", &head[..1], &what[1..]);
    let _ = writeln!(out, "{plural}: {} {shares}in the {what} itself", shown(&found.event));
    let name = |name: &str| shown(name).chars().take(60).collect::<String>();
    let width = column_width(found.functions.iter().map(|((one, _), _)| name(one))).max(8);
    let has_test = found.what_it_takes().is_none();
    let tested = if has_test { format!("  {:>17}  {:>6}  VERDICT", "INTERVAL", "P") } else { String::new() };
    let _ = writeln!(out, "{head:<width$}  {:>11}  {:>11}  {:>9}{tested}", "A", "B", "CHANGE");
    let mut functions: Vec<_> = found.functions.iter().collect();
    let difference = |one: &ComparedEvent| (one.b.mean().unwrap_or(0.0) - one.a.mean().unwrap_or(0.0)).abs();
    functions.sort_by(|(_, one), (_, other)| match has_test {
        true => one.by_difference(other),
        false => difference(other).total_cmp(&difference(one)),
    });
    for ((function, _), one) in functions {
        let _ = writeln!(out, "{:<width$}  {}", name(function), cells(found, one, has_test).trim_end());
    }
    let _ = match found.what_it_takes() {
        Some(words) => writeln!(out, "{words}"),
        None => writeln!(
            out,
            "higher, lower: more than chance, as above; with {} confidence all of these verdicts are right ({} {what}s tested)",
            found.confidence,
            found.functions.len()
        ),
    };
    out
}

fn cells(found: &ProfileDifference, one: &ComparedEvent, has_test: bool) -> String {
    let missing = || "—".to_owned();
    let number = |runs: &Runs| match runs.mean() {
        Some(value) if found.is_of_weights => mean(value, &one.unit),
        Some(value) => share(value),
        None => missing(),
    };
    let part = one.change().map_or_else(missing, change);
    let mut line = format!("{:>11}  {:>11}  {part:>9}", number(&one.a), number(&one.b));
    if has_test {
        let (interval, p) = (one.interval.map_or_else(missing, interval), one.p.map_or_else(missing, p_value));
        let _ = write!(line, "  {interval:>17}  {p:>6}  {}", one.verdict.word());
    }
    line
}
