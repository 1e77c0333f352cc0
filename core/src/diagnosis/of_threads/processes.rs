//! Holds the rules about processes: short ones, and those whose memory grows.

use std::collections::BTreeSet;

use super::over;
use crate::diagnosis::evidence::{Evidence, RuleResult, Said};
use crate::monitor::{EndedUse, ThreadUses};
use crate::names::shown;
use crate::number::{memory, si, time};
use crate::run::MeasuredTarget;
use crate::units::WallNs;

/// Processes started a second, CPU seconds of each at most, and their share of the CPU time where they are told.
const SHORT: (f64, f64, f64) = (100.0, 0.005, 0.5);
/// Seconds between two checks at most where it is told that processes are too short for one: between others longer ones
/// fit.
const CHECKED_EACH: f64 = 0.25;
/// CPUs that ended children of a target were on at least: fewer may be those of a few that aren't short, beside others'
/// that are.
const LEAST_OF_CHILDREN: f64 = 0.1;
/// How long memory has to grow in seconds, in what share of steps, by how many bytes, and by what part of itself.
const GROWTH: (f64, f64, f64, f64) = (30.0, 0.9, 32e6, 0.2);

impl Evidence<'_> {
    pub(in crate::diagnosis) fn short_processes(&self) -> RuleResult {
        // The children of processes that ran already aren't read.
        let target = &self.monitor.header().target;
        if matches!(target, MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_)) {
            return None;
        }
        let uses = self.threads.as_ref()?;
        let started = uses.started.filter(|started| *started >= SHORT.0)?;
        if uses.ended_names.is_empty() { self.unseen_processes(uses, started) } else { self.short_names(uses, started) }
    }

    /// By the CPU time of what ended, where the kernel tells each process' name: of those whose processes are short on
    /// average.
    fn short_names(&self, uses: &ThreadUses<'_>, started: f64) -> RuleResult {
        let (least_started, most_each, least_share) = SHORT;
        let is_short = |ended: &&EndedUse<'_>| ended.cpus * uses.seconds <= most_each * ended.count as f64;
        let short: Vec<_> = uses.ended_names.iter().filter(is_short).collect();
        let cpus: f64 = short.iter().map(|ended| ended.cpus).sum();
        let ended = short.iter().map(|ended| ended.count).sum::<u64>() as f64 / uses.seconds;
        let share = cpus / self.running;
        if share.is_nan() || share < least_share || ended <= 0.0 {
            return None;
        }
        let most = short.first().filter(|most| most.cpus >= 0.5 * cpus);
        let most = most.map_or_else(String::new, |most| format!(", most of it in {}", shown(most.name)));
        let text = format!(
            "{:.0}% of CPU time is in short processes: {} end a second and use {} of it each{most}",
            100.0 * share,
            si(ended),
            time(1e9 * cpus / ended)
        );
        let why = format!(
            "CPU time {} of all that ended with names whose processes use {} or less on average; reported from {:.0}%, where \
             {least_started} start a second; here {}",
            over(uses),
            time(1e9 * most_each),
            100.0 * least_share,
            si(started)
        );
        Some(Said { text, why, sure: "the kernel tells of each process that ends".into() })
    }

    /// By the CPU time of children that no check saw: how long each of them ran isn't known.
    fn unseen_processes(&self, uses: &ThreadUses<'_>, started: f64) -> RuleResult {
        let (least_started, most_each, least_share) = SHORT;
        let children = unseen_children(uses);
        let (share, each) = (children / self.running, children / started);
        // Of the machine all that start are its own.
        let is_machine = !uses.busy.is_empty();
        let is_little = !is_machine && children < LEAST_OF_CHILDREN;
        let is_checked = uses.seconds <= CHECKED_EACH * f64::from(uses.looks);
        if share.is_nan() || share < least_share || each > most_each || is_little || !is_checked {
            return None;
        }
        let (at_most, at_least) = if is_machine { ("", "") } else { ("up to ", "at least ") };
        let text = format!(
            "{:.0}% of CPU time is in processes too short for a check to see: {at_most}{} start a second, with {at_least}{} of CPU time each on average",
            100.0 * share,
            si(started),
            time(1e9 * each)
        );
        let why = format!(
            "CPU time of children that ended before a check saw them, {}; reported from {:.0}%, and {least_started} a second that use {} \
             or less on average",
            over(uses),
            100.0 * least_share,
            time(1e9 * most_each)
        );
        let sure = match is_machine {
            true => "all that starts on the machine is counted; a few may be much longer than others".to_owned(),
            false => "what starts is counted for the whole machine: some may be others'".to_owned(),
        };
        Some(Said { text, why, sure })
    }

    pub(in crate::diagnosis) fn memory_growth(&self) -> RuleResult {
        let (least_seconds, least_rising, least_bytes, least_part) = GROWTH;
        let is_much = |first: u64, last: u64| {
            let grown = last as f64 - first as f64;
            grown >= least_bytes && grown >= least_part * first as f64
        };
        let found = self.monitor.memory_series(is_much).into_iter().find_map(|(name, series)| {
            let ((from, first), (to, last)) = (*series.first()?, *series.last()?);
            let (seconds, grown) = ((to - from).as_secs(), last as f64 - first as f64);
            let rising = series.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
            let is_steady = rising as f64 >= least_rising * (series.len() - 1) as f64;
            // What was read in or built up at once isn't growth: the later half has its part.
            let half = from + WallNs((to - from).0 / 2);
            let middle = series.iter().find(|(at, _)| *at >= half)?.1 as f64;
            let is_lasting = last as f64 - middle >= 0.35 * grown;
            // The series ends with the newest reading, though it was found by the one before.
            let is_growth = is_much(first, last) && is_steady && is_lasting;
            (seconds >= least_seconds && is_growth).then_some((name, grown, seconds, last))
        });
        let (name, grown, seconds, last) = found?;
        let rate = memory((grown / seconds) as u64);
        let text = format!(
            "memory of {} grows by {rate} a second without a pause, now {}: a leak, or a cache without a limit",
            shown(name),
            memory(last)
        );
        let why = format!(
            "{} more in {seconds:.0} s, in {:.0}% of readings or more; reported from {} and 20%",
            memory(grown as u64),
            100.0 * least_rising,
            memory(least_bytes as u64)
        );
        let sure = "pages in RAM as the kernel counts them; whether they are still wanted isn't known".to_owned();
        Some(Said { text, why, sure })
    }
}

/// The CPUs that children were on which ended before a check saw them.
fn unseen_children(uses: &ThreadUses<'_>) -> f64 {
    let living: BTreeSet<i32> = uses.threads.iter().map(|thread| thread.thread.pid).collect();
    let seen = uses.ended.iter().filter(|thread| !living.contains(&thread.thread.pid));
    (uses.ended_children - seen.map(|thread| thread.cpu).sum::<f64>()).max(0.0)
}
