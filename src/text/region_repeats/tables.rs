//! Draws tables of what regions took and counted on average.

use super::{RepeatedRegion, RunOfRegion, certainties, counter_names, event_counts, mean, never_ended};
use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, plain, plus_minus_part, time};
use crate::rates::Confidence;
use crate::regions::{Certainty, unit_of};
use crate::text::regions::{BACKWARD, ROUGH, counted_words, known_time};
use crate::text::repeats::SummarySpread;

pub(super) type Rows<'a> = [(&'a RepeatedRegion, &'a Vec<RunOfRegion>)];

pub(super) fn times(title: &str, rows: &Rows<'_>, confidence: Confidence) -> String {
    let error_head = format!("±{confidence}");
    let mut out = format!(" Regions of {title}:\n\n");
    let heads = ["CALLS", "TIME", error_head.as_str(), "SELF", "MEAN CALL"];
    out += &format!("{:>13} {:>8} {:>7} {:>8} {:>9}   REGION\n", heads[0], heads[1], heads[2], heads[3], heads[4]);
    for (region, runs) in rows {
        if never_ended(runs) {
            let name = region.indented();
            out += &format!("{:>13} {:>8} {:>7} {:>8} {:>9}   {name}  no call has ended\n", "—", "—", "", "—", "—");
            continue;
        }
        let [calls, total, own] =
            [mean(runs, |run| run.calls), mean(runs, |run| run.time_ns), mean(runs, |run| run.self_ns)];
        let [certainty, self_certainty] = certainties(runs);
        let of_call = if calls.mean > 0.0 { known_time(total.mean / calls.mean, certainty) } else { "—".into() };
        let error = match certainty {
            Certainty::Clear => error(&total, runs.len(), confidence),
            Certainty::Rough | Certainty::Unknown => "±?".into(),
        };
        let reverse = mean(runs, |run| run.reverse_calls);
        let reverse = match reverse.mean {
            0.0 => String::new(),
            calls => format!("  backward: {} in {} runs", time(mean(runs, |run| run.reverse_ns).mean), plain(calls, 1)),
        };
        out += &format!(
            "{:>13} {:>8} {:>7} {:>8} {of_call:>9}   {}{reverse}{}\n",
            amount(calls.mean, &Unit::Count),
            known_time(total.mean, certainty),
            error,
            known_time(own.mean, self_certainty),
            region.indented(),
            counted_words(counter_names(runs).into_iter().map(|name| {
                let counted = mean(runs, |run| run.counters.get(name).copied().unwrap_or(0));
                (name, amount(counted.mean, &Unit::Count))
            })),
        );
    }
    let any = |of: &dyn Fn(&[RunOfRegion]) -> bool| rows.iter().any(|(_, runs)| !never_ended(runs) && of(runs));
    if any(&|runs| runs.iter().any(|run| run.reverse_calls > 0)) {
        out += BACKWARD;
    }
    if any(&|runs| certainties(runs) != [Certainty::Clear; 2]) {
        out += ROUGH;
    }
    out
}

/// `±1.2%` of a mean of so many runs, by Student's t.
fn error(spread: &SummarySpread, runs: usize, confidence: Confidence) -> String {
    let degrees = runs.saturating_sub(1) as u64;
    // Where the mean is 0 so are all.
    let relative = if spread.mean == 0.0 && runs > 1 { Some(0.0) } else { spread.relative() };
    let part = relative.map(|part| part * confidence.student(degrees) / (runs as f64).sqrt());
    part.map_or_else(|| "±?".into(), plus_minus_part)
}

/// A table for each event, of what it counted on average; runs in which it wasn't counted are left out.
pub(super) fn events(title: &str, rows: &Rows<'_>, confidence: Confidence) -> String {
    let mut names: Vec<&String> =
        rows.iter().flat_map(|(_, runs)| runs.iter()).flat_map(|run| run.events.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let error_head = format!("±{confidence}");
    let mut out = String::new();
    for name in names {
        let unit = unit_of(name);
        out += &format!(" {} in regions of {title}:\n\n", shown(name));
        out += &format!("{:>13} {error_head:>7} {:>9} {:>9}   REGION\n", "COUNT", "SELF", "MEAN CALL");
        for (region, runs) in rows {
            let counts = event_counts(name, runs);
            let [all, own] = [|c: &(f64, f64)| c.0, |c: &(f64, f64)| c.1]
                .map(|of| SummarySpread::of(&counts.iter().map(of).collect::<Vec<_>>()));
            let calls = mean(runs, |run| run.calls).mean;
            let cells = match counts.len() {
                0 => ["—".to_owned(), String::new(), "—".into(), "—".into()],
                _ => [
                    amount(all.mean, &unit),
                    error(&all, counts.len(), confidence),
                    amount(own.mean, &unit),
                    if calls > 0.0 { amount(all.mean / calls, &unit) } else { "—".into() },
                ],
            };
            let [count, error, own, call] = cells;
            out += &format!("{count:>13} {error:>7} {own:>9} {call:>9}   {}\n", region.indented());
        }
        out += "\n";
    }
    out
}
