//! Draws tables of what regions took and counted on average.

use super::{
    RepeatedRegion, RunOfRegion, certainties, counter_names, event_counts, mean, never_ended, relative_half_width,
};
use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, plain, plus_minus_part, time};
use crate::rates::Confidence;
use crate::regions::{Certainty, unit_of};
use crate::text::regions::{BACKWARD, ROUGH, counted_words, known_time};
use crate::text::repeats::SummarySpread;

pub(super) type Rows<'a> = [(&'a RepeatedRegion, &'a Vec<RunOfRegion>)];

/// A table of rows, below which a line says how many are left out, if any are.
pub(super) fn times(title: &str, (rows, left_out): (&Rows<'_>, &str), confidence: Confidence) -> String {
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
    out += left_out;
    let any = |of: &dyn Fn(&[RunOfRegion]) -> bool| rows.iter().any(|(_, runs)| !never_ended(runs) && of(runs));
    if any(&|runs| runs.iter().any(|run| run.reverse_calls > 0)) {
        out += BACKWARD;
    }
    let is_outlasted = |runs: &[RunOfRegion]| runs.iter().any(|run| run.outlasted_by.is_some());
    if any(&|runs| {
        let [time, own] = certainties(runs);
        time != Certainty::Clear || (own != Certainty::Clear && !is_outlasted(runs))
    }) {
        out += ROUGH;
    }
    out
}

/// `±1.2%` of a mean of so many runs, by Student's t.
fn error(spread: &SummarySpread, runs: usize, confidence: Confidence) -> String {
    relative_half_width(spread, runs, confidence).map_or_else(|| "±?".into(), plus_minus_part)
}

/// A table for each event, of what it counted on average; runs in which it wasn't counted are left out.
pub(super) fn events(title: &str, (rows, left_out): (&Rows<'_>, &str), confidence: Confidence) -> String {
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
            let all = SummarySpread::of(&counts.iter().map(|(all, _)| *all).collect::<Vec<_>>());
            let own: Option<Vec<f64>> = counts.iter().map(|(_, own)| *own).collect();
            let own = own.map(|own| SummarySpread::of(&own));
            let calls = mean(runs, |run| run.calls).mean;
            let cells = match counts.len() {
                0 => ["—".to_owned(), String::new(), "—".into(), "—".into()],
                _ => [
                    amount(all.mean, &unit),
                    error(&all, counts.len(), confidence),
                    own.map_or_else(|| "—".to_owned(), |own| amount(own.mean, &unit)),
                    if calls > 0.0 { amount(all.mean / calls, &unit) } else { "—".into() },
                ],
            };
            let [count, error, own, call] = cells;
            out += &format!("{count:>13} {error:>7} {own:>9} {call:>9}   {}\n", region.indented());
        }
        out += left_out;
        out += "\n";
    }
    out
}
