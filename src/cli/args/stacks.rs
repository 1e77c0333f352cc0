//! Defines the arguments of call stacks.

use super::whole_number;
use clap::Args;

use crate::cli::Error;
use crate::measure::{OffCpuTime, SampleRate, StackOptions, StackPurpose};
use crate::stacks::UnwindMethod;

/// Whether and how call stacks are sampled.
#[derive(Debug, Args)]
#[command(next_help_heading = "Call stacks")]
pub(crate) struct StackArgs {
    /// Sample call stacks at the events, with `--call-graph auto` unless it says otherwise
    #[arg(short = 'g')]
    pub(crate) frame_pointers: bool,
    /// Sample call stacks, found in this way: `auto` (default) by frame pointers, and from a
    /// copy of the stack where they are missing; `fp` by frame pointers, `dwarf` or `dwarf,SIZE`
    /// from a copy of the stack (8192 bytes), `lbr` from the CPU's record of branches (Intel)
    #[arg(long, value_name = "HOW", value_parser = call_graph)]
    pub(crate) call_graph: Option<UnwindMethod>,
    /// Samples per second of each event, or `max`; 4000 by default, 997 of a whole machine; of a tracepoint every
    /// occurrence
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = frequency)]
    pub(crate) frequency: Option<SampleRate>,
    /// Take a sample every N occurrences
    #[arg(short = 'c', long, value_name = "N", value_parser = whole_number::<u64>(1..=i64::MAX as u64))]
    pub(crate) count: Option<u64>,
    /// Also sample the time that threads wait on no CPU, by stack and by what they wait for (the event
    /// `off-cpu`, in seconds)
    #[arg(long)]
    pub(crate) off_cpu: bool,
}

impl StackArgs {
    /// Whether and how call stacks are sampled.
    pub(crate) fn options(&self) -> Result<Option<StackOptions>, Error> {
        let (method, rate) = (self.call_graph, self.frequency.or(self.count.map(SampleRate::Period)));
        let off_cpu = if self.off_cpu { OffCpuTime::Sampled } else { OffCpuTime::Ignored };
        match (self.frame_pointers || self.off_cpu || method.is_some(), rate) {
            (true, rate) => Ok(Some(StackOptions { method, rate, off_cpu, purpose: StackPurpose::Profile })),
            (false, Some(_)) => Err(Error::Usage("-F and -c say how often call stacks are sampled: add -g".into())),
            (false, None) => Ok(None),
        }
    }
}

fn call_graph(text: &str) -> Result<UnwindMethod, String> {
    /// What perf copies, and the most that a record has room for.
    const DEFAULT: u32 = 8192;
    const MOST: u32 = 65528;
    match text.split_once(',') {
        None if text == "auto" => Ok(UnwindMethod::Auto),
        None if text == "fp" => Ok(UnwindMethod::Fp),
        None if text == "lbr" => Ok(UnwindMethod::Lbr),
        None if text == "dwarf" => Ok(UnwindMethod::Dwarf(DEFAULT)),
        Some(("dwarf", size)) => match size.parse() {
            Ok(size @ 8..=MOST) => Ok(UnwindMethod::Dwarf(u32::next_multiple_of(size, 8))),
            _ => Err(format!("the copy of the stack has 8 to {MOST} bytes")),
        },
        _ => Err("give auto, fp, dwarf, dwarf,SIZE or lbr".into()),
    }
}

fn frequency(text: &str) -> Result<SampleRate, String> {
    match text.parse() {
        _ if text == "max" => Ok(SampleRate::Max),
        Ok(hz @ 1..) => Ok(SampleRate::Hz(hz)),
        _ => Err("give samples a second from 1 up, or max".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_graphs_and_frequencies() {
        assert_eq!(call_graph("dwarf"), Ok(UnwindMethod::Dwarf(8192)));
        assert_eq!(call_graph("dwarf,65525"), Ok(UnwindMethod::Dwarf(65528)));
        assert_eq!(call_graph("auto"), Ok(UnwindMethod::Auto));
        assert_eq!((call_graph("fp"), call_graph("lbr")), (Ok(UnwindMethod::Fp), Ok(UnwindMethod::Lbr)));
        assert!(["", "dwarf,", "dwarf,7", "dwarf,65529", "fp,8", "x"].iter().all(|text| call_graph(text).is_err()));
        assert_eq!((frequency("99"), frequency("max")), (Ok(SampleRate::Hz(99)), Ok(SampleRate::Max)));
        assert!(["", "0", "-1", "4k"].iter().all(|text| frequency(text).is_err()));
    }
}
