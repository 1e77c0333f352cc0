//! Prints what differs between two monitors as a table of plain text.

use std::fmt::Write;

use crate::monitor::{Compare, Compared, Measure, Monitor, compare as compared};
use crate::number::{amount, change, plus_minus};
use crate::rates::Uncertain;
use crate::words::shown;

/// Two recordings with their names: a line each, then a line an event.
pub fn compare(a: (&str, &Monitor), b: (&str, &Monitor), measure: Measure) -> String {
    let mut out = String::new();
    for (side, (name, monitor)) in [("A", a), ("B", b)] {
        let (title, seconds) = (monitor.header().title(), monitor.closed_at().as_secs());
        let n = monitor.intervals();
        let _ = writeln!(out, "{side}  {}  {}  {seconds:.1} s  n={n}", shown(name), shown(&title));
    }
    let all = compared(a.1, b.1, measure, Compare::Estimate);
    let width = all.iter().map(|one| shown(&one.name).chars().count()).max().unwrap_or(0).max(5);
    let (suffix, error) = (measure.suffix(a.1.header()), format!("±{}", a.1.confidence()));
    let _ = writeln!(
        out,
        "{:<width$}  {:>11}  {error:>7}  {:>11}  {error:>7}  {:>9}  B IS",
        "EVENT",
        format!("A{suffix}"),
        format!("B{suffix}"),
        "CHANGE"
    );
    for one in &all {
        let _ = writeln!(out, "{:<width$}  {}", shown(&one.name), cells(one));
    }
    let level = a.1.confidence();
    let _ = writeln!(
        out,
        "higher, lower: the {level} intervals, which are what counting left unseen, have nothing in common;\n\
         how far runs differ by themselves is not in them: record several of each"
    );
    out
}

fn cells(one: &Compared) -> String {
    let number = |number: Option<Uncertain>| match number {
        Some(number) => format!("{:>11}  {:>7}", amount(number.value, &one.unit), plus_minus(number, &one.unit)),
        None => format!("{:>11}  {:>7}", "-", "-"),
    };
    let change = one.change().map_or_else(|| "-".into(), change);
    format!("{}  {}  {change:>9}  {}", number(one.a_number), number(one.b_number), one.difference.word())
}
