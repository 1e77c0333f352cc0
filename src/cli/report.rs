//! Prints a recording as text: a report of all of it, or each interval.

use super::Error;
use super::error::NOT_ALL;
use super::replay::{ReplayArgs, Setup, begun, close, ending, start};
use super::stream::{Stream, after_blank};
use crate::diagnosis::{HotFunction, LATELY, LockWaits, LookBack, SampledFacts, diagnose};
use crate::monitor::{MeasureChoice, Monitor};
use crate::names::shown;
use crate::profile::Tree;
use crate::recording::Recording;
use crate::sources::RecordedRound;
use crate::stacks::{RecordedProfile, Replayed, StackQuality};
use crate::text::{self, EvidenceScreens, PrintedNews, Repeats, SummaryLayout};
use crate::units::WallNs;

/// Prints the recording, or its range.
///
/// # Errors
/// Fails if nothing was read in the range, or nothing can be printed.
pub(super) fn print(args: &ReplayArgs, recording: &Recording, setup: &Setup) -> Result<u8, Error> {
    let mut out = Stream::stdout();
    for words in &setup.header.restriction {
        out.print_folded(&format!("{}\n", shown(words)))?;
    }
    if let Some(words) = ending(recording).words() {
        out.print_folded(&format!("{words}\n"))?;
    }
    let mut profile = recording.profile().map(|recorded| (recorded, Replayed::new(recorded)));
    let (monitor, until) = match args.interval {
        Some(_) => intervals(args, recording, setup, &mut out)?,
        None => report(args, recording, (setup, &mut profile), &mut out)?,
    };
    out.print_folded(&after_blank(&text::phases(&monitor)))?;
    if let Some((recorded, replayed)) = &mut profile {
        let (tree, quality) = profile_of(args, (*recorded, replayed), start(&monitor), until);
        let target = setup.header.target.selection();
        let little = text::LittleSampled::of(tree, &monitor);
        out.print_folded(&after_blank(&text::stacks(tree, quality, &target, monitor.confidence(), little)))?;
    }
    let regions = recording.regions_between(start(&monitor), until);
    out.print_folded(&after_blank(&text::regions(&regions, monitor.header(), monitor.confidence())))?;
    Ok(if recording.is_whole() { 0 } else { NOT_ALL })
}

/// The profile of the run, or of the range.
fn profile_of<'a>(
    args: &ReplayArgs,
    (recorded, replayed): (RecordedProfile<'_>, &'a mut Replayed),
    after: Option<WallNs>,
    until: WallNs,
) -> (&'a Tree, &'a StackQuality) {
    match args.range {
        Some(_) => replayed.part(recorded, after, until),
        None => replayed.between(recorded, after, until),
    }
}

/// The time up to which is printed.
fn end(args: &ReplayArgs, recording: &Recording) -> WallNs {
    args.range.map_or(WallNs(u64::MAX), |range| recording.whole_intervals(range).unwrap_or(range).to)
}

/// The counts of all, what stands out, also by the profile, and what each thread did.
fn report(
    args: &ReplayArgs,
    recording: &Recording,
    (setup, profile): (&Setup, &mut Option<(RecordedProfile<'_>, Replayed)>),
    out: &mut Stream,
) -> Result<(Monitor, WallNs), Error> {
    let (rounds, mut monitor) = begun(args, recording, setup)?;
    monitor.take_rounds(rounds);
    let until = end(args, recording);
    close(&mut monitor, recording, until);
    if args.range.is_some() {
        let (from, to, all) = (monitor.began().as_secs(), monitor.now().as_secs(), recording.length().as_secs());
        out.print_folded(&format!("\n From {from:.2} s to {to:.2} s of {all:.2} s:\n"))?;
    }
    let layout = SummaryLayout { columns: out.columns(), ..SummaryLayout::default() };
    out.print(&text::summary(&Repeats(std::slice::from_ref(&monitor)), layout))?;
    out.print_folded(&PrintedNews::default().since(&monitor, &[]))?;
    let has_profile = profile.as_ref().is_some_and(|(recorded, _)| recorded.sampled.is_some());
    let (hot, locks, since) = profile.as_mut().map_or((None, None, None), |(recorded, replayed)| {
        let (tree, quality) = profile_of(args, (*recorded, replayed), start(&monitor), until);
        (HotFunction::of(tree), LockWaits::of(tree), quality.since)
    });
    let over = monitor.now() - since.unwrap_or(monitor.began());
    let screens = if has_profile { EvidenceScreens::Replay } else { EvidenceScreens::ReplayWithoutProfile };
    let sampled = SampledFacts { hot: hot.as_ref(), locks: locks.as_ref(), over };
    out.print(&text::diagnoses(&diagnose(&monitor, LookBack::Run, sampled), &monitor, screens))?;
    out.print_folded(&after_blank(&text::threads(&monitor, out.columns())))?;
    Ok((monitor, until))
}

/// The text that `top` prints without a terminal: a block for each interval.
fn intervals(
    args: &ReplayArgs,
    recording: &Recording,
    setup: &Setup,
    out: &mut Stream,
) -> Result<(Monitor, WallNs), Error> {
    let mut news = PrintedNews::default();
    let (rounds, mut monitor) = begun(args, recording, setup)?;
    for RecordedRound { round, lost } in rounds {
        if monitor.round(round, *lost) {
            let news = news.since(&monitor, &diagnose(&monitor, LookBack::Last(LATELY), SampledFacts::default()));
            out.print_folded(&format!("{}{news}\n", text::block(&monitor, MeasureChoice::default())))?;
        }
    }
    let (intervals, printed) = (monitor.intervals(), monitor.closed_at());
    let until = end(args, recording);
    close(&mut monitor, recording, until);
    let is_last =
        monitor.intervals() > intervals && text::is_another_reading(&monitor, (intervals > 0).then_some(printed));
    if is_last || monitor.lacks_a_child() {
        out.print_folded(&text::block(&monitor, MeasureChoice::default()))?;
    }
    out.print_folded(&news.since(&monitor, &[]))?;
    Ok((monitor, until))
}
