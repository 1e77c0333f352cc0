//! Takes the stack of each sample from its chain of frame pointers, from its copied stack, or from both.

use rustc_hash::FxHashMap;

use super::chains::{ChainJudge, ChainVerdict, bytes_to, first_beyond};
use super::code::SampledCode;
use super::copies::{CopyChange, CopyControl};
use super::copy_evidence::StackEvidence;
use super::paths::LocationId;
use super::sampled_times::SampledTimes;
use super::unwind::{Completeness, Unwound};
use crate::stacks::CopySwitch;
use crate::stacks::end::StackEnd;
use crate::stacks::live::mapped::ModuleId;
use crate::stacks::live::rings::{CopySize, SampleRecord, UserState};
use crate::units::WallNs;

/// A file is named as one without frame pointers where it loses so many of the callers that are lost: one in so many.
const WORTH_NAMING: u32 = 20;

/// How stacks are found while frame pointers may be missing.
#[derive(Debug)]
pub(in crate::stacks::live) struct AutoStacks {
    judge: ChainJudge,
    control: CopyControl,
    times: SampledTimes,
    /// How often a caller was lost in a module, since the last change.
    lost_in: FxHashMap<ModuleId, u32>,
    /// Whether the kernel found no room for a record since the last decision.
    pub(in crate::stacks::live) has_lost: bool,
    /// What a reader is told.
    pub(in crate::stacks::live) switches: Vec<CopySwitch>,
    /// User frames of the sample that is being read, by frame pointers and by unwinding.
    chain: Vec<LocationId>,
    unwound: Vec<LocationId>,
    addresses: Vec<u64>,
}

/// The chain of frame pointers of a sample.
#[derive(Clone, Copy, Debug)]
struct UserChain<'a> {
    pid: i32,
    addresses: &'a [u64],
    verdict: ChainVerdict,
    /// Whether the kernel followed no more of it.
    is_too_deep: bool,
}

/// How far the stack of a sample goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct FoundStack {
    pub(in crate::stacks::live) completeness: Completeness,
    /// Unknown where the name of the outermost frame has to tell it.
    pub(in crate::stacks::live) end: StackEnd,
}

impl FoundStack {
    pub(in crate::stacks::live) const WHOLE: Self =
        Self { completeness: Completeness::Whole, end: StackEnd::Beginning };
}

impl AutoStacks {
    pub(in crate::stacks::live) fn new(has_large: bool) -> Self {
        let control = CopyControl::new(0, has_large);
        let times = SampledTimes::new(control.size());
        Self {
            judge: ChainJudge::default(),
            control,
            times,
            lost_in: FxHashMap::default(),
            has_lost: false,
            switches: Vec::new(),
            chain: Vec::new(),
            unwound: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// What samples now.
    pub(in crate::stacks::live) fn size(&self) -> CopySize {
        self.control.size()
    }

    pub(in crate::stacks::live) fn is_checking(&self) -> bool {
        self.control.is_checking()
    }

    /// Whether a sample of this set of events at this time counts.
    pub(in crate::stacks::live) fn counts(&self, at: u64, size: CopySize) -> bool {
        self.times.counts(at, size)
    }

    /// A process is another program now, or has ended.
    pub(in crate::stacks::live) fn forget(&mut self, pid: i32) {
        self.control.forget(pid);
    }

    /// Decides what is to be copied; gives the set of events that is to sample where that is another one now.
    pub(in crate::stacks::live) fn decide(&mut self, now: u64, origin: u64, code: &SampledCode) -> Option<CopySize> {
        if self.control.age(now) {
            self.lost_in.clear();
        }
        let before = self.control.size();
        let relieved = if std::mem::take(&mut self.has_lost) { self.control.relieve(now) } else { None };
        let change = relieved.or_else(|| self.control.decide(now))?;
        let size = self.control.size();
        let (at, modules) = match change {
            CopyChange::Quietly => (None, Vec::new()),
            // Copies began with the check.
            CopyChange::Missing => (Some(self.times.last_change()), self.losing(code)),
            CopyChange::Resized => (Some(now), self.losing(code)),
        };
        if let Some(at) = at {
            let at = WallNs(at.saturating_sub(origin));
            self.switches.push(CopySwitch { at, bytes: size.bytes(), modules });
        }
        self.lost_in.clear();
        (size != before).then_some(size)
    }

    /// Another set of events samples from this time on.
    pub(in crate::stacks::live) fn change(&mut self, at: u64, to: CopySize) {
        self.times.change(at, to);
    }

    /// The files in which callers were lost, the most frequent first.
    fn losing(&self, code: &SampledCode) -> Vec<String> {
        let all: u32 = self.lost_in.values().sum();
        let mut losing: Vec<_> = self.lost_in.iter().filter(|&(_, &lost)| lost * WORTH_NAMING >= all).collect();
        losing.sort_by_key(|&(module, &lost)| (std::cmp::Reverse(lost), module.0));
        losing.iter().map(|(module, _)| code.processes.modules.name(**module)).collect()
    }

    /// Appends the locations of the user part of a stack, whose frame pointers lead to these addresses. `is_too_deep`
    /// says that the kernel followed no more of them.
    pub(in crate::stacks::live) fn stack(
        &mut self,
        code: &mut SampledCode,
        sample: &SampleRecord<'_>,
        addresses: &[u64],
        is_too_deep: bool,
        out: &mut Vec<LocationId>,
    ) -> FoundStack {
        self.chain.clear();
        code.locate(sample.pid, addresses, &mut self.chain);
        let verdict = match self.verdict(code, sample.pid, addresses, 0) {
            // It is right as far as it was followed.
            ChainVerdict::Whole | ChainVerdict::Unsure if is_too_deep => ChainVerdict::Unknown,
            verdict => verdict,
        };
        let lost_in = match verdict {
            ChainVerdict::Broken(index) => self.chain.get(index).copied(),
            ChainVerdict::Whole | ChainVerdict::Unsure | ChainVerdict::Unknown => None,
        };
        let (found, evidence) = match (verdict, &sample.user) {
            (ChainVerdict::Whole, _) => {
                self.judge.complete(&mut self.chain);
                (FoundStack::WHOLE, StackEvidence::Holds)
            }
            (_, Some(user)) => {
                let chain = UserChain { pid: sample.pid, addresses, verdict, is_too_deep };
                self.unwind(code, user, chain)
            }
            (_, None) => (self.chain_alone(code, sample.pid, addresses, is_too_deep), StackEvidence::Doubtful),
        };
        if let (Some(lost_in), StackEvidence::Healed(_) | StackEvidence::CopyEnded) = (lost_in, evidence) {
            *self.lost_in.entry(code.paths.module(lost_in)).or_default() += 1;
        }
        if found.completeness != Completeness::StackGone {
            self.control.note(sample.pid, evidence);
        }
        out.append(&mut self.chain);
        found
    }

    /// Judges the chain from a frame on.
    fn verdict(&mut self, code: &mut SampledCode, pid: i32, addresses: &[u64], from: usize) -> ChainVerdict {
        let SampledCode { processes, cache, nowhere, unseen, .. } = code;
        let (space, modules) = processes.space(pid);
        let nowhere = if space.is_empty() { *unseen } else { *nowhere };
        let rule = |index: usize, place| space.caller_rule(addresses[index], place, modules, cache);
        self.judge.judge(&self.chain, from, nowhere, rule)
    }

    /// The stack as far as its frame pointers lead.
    fn chain_alone(&mut self, code: &mut SampledCode, pid: i32, addresses: &[u64], is_too_deep: bool) -> FoundStack {
        if is_too_deep {
            return FoundStack { completeness: Completeness::TooDeep, end: StackEnd::Cut };
        }
        let verdict = self.verdict(code, pid, addresses, addresses.len().saturating_sub(1));
        let end = match verdict {
            ChainVerdict::Whole if self.judge.begins(&self.chain) => StackEnd::Beginning,
            ChainVerdict::Broken(_) if addresses.len() > 1 => StackEnd::Cut,
            _ => StackEnd::Unknown,
        };
        self.judge.complete(&mut self.chain);
        let completeness = if end == StackEnd::Cut { Completeness::Cut } else { Completeness::Whole };
        FoundStack { completeness, end }
    }

    /// The stack from its copy, and beyond the end of the copy along frame pointers.
    fn unwind(
        &mut self,
        code: &mut SampledCode,
        user: &UserState<'_>,
        chain: UserChain<'_>,
    ) -> (FoundStack, StackEvidence) {
        let UserChain { pid, addresses, verdict, is_too_deep } = chain;
        let is_right_so_far = !is_too_deep && matches!(verdict, ChainVerdict::Unsure | ChainVerdict::Unknown);
        self.addresses.clear();
        self.unwound.clear();
        let unwound = code.unwind(pid, user, &mut self.addresses);
        code.locate(pid, &self.addresses, &mut self.unwound);
        match unwound.end {
            Completeness::Whole => {
                if is_right_so_far {
                    self.judge.learn(&self.chain, Some(&self.unwound));
                }
                let is_right = is_right_so_far && self.verdict(code, pid, addresses, 0) == ChainVerdict::Whole;
                let needed = self.needed(code, chain, (user, &unwound));
                std::mem::swap(&mut self.chain, &mut self.unwound);
                let evidence = if is_right { StackEvidence::Holds } else { StackEvidence::Healed(needed) };
                (FoundStack::WHOLE, evidence)
            }
            Completeness::CopyEnded => {
                let beyond = first_beyond(user, &unwound, addresses.len());
                let is_beyond = beyond < addresses.len() && !is_too_deep;
                match self.verdict(code, pid, addresses, beyond) {
                    ChainVerdict::Whole if is_beyond => {
                        let needed = self.needed(code, chain, (user, &unwound));
                        self.join(beyond);
                        return (FoundStack::WHOLE, StackEvidence::Healed(needed));
                    }
                    // No copy has reached where stacks begin: a longer one may. One frame alone may be there by chance.
                    ChainVerdict::Unsure | ChainVerdict::Unknown if is_beyond && beyond + 1 < addresses.len() => {
                        self.join(beyond);
                        let found = FoundStack { end: StackEnd::Unknown, ..FoundStack::WHOLE };
                        return (found, StackEvidence::CopyEnded);
                    }
                    _ => {}
                }
                // A chain that lacks callers, and still leads to where stacks begin.
                if !is_too_deep && self.chain_alone(code, pid, addresses, false) == FoundStack::WHOLE {
                    return (FoundStack::WHOLE, StackEvidence::CopyEnded);
                }
                let end = self.take_longer(code, is_right_so_far);
                (FoundStack { completeness: Completeness::CopyEnded, end }, StackEvidence::CopyEnded)
            }
            completeness @ (Completeness::Cut | Completeness::TooDeep | Completeness::StackGone) => {
                if is_right_so_far && completeness != Completeness::StackGone {
                    self.judge.learn(&self.chain, None);
                }
                // Copies of a stack with pages that were never written end there, and have callers all the same.
                let evidence = if in_code(code, &self.unwound) > in_code(code, &self.chain) {
                    StackEvidence::Healed(unwound.end_of_last.saturating_sub(unwound.stack))
                } else {
                    StackEvidence::Useless
                };
                let end = self.take_longer(code, is_right_so_far);
                (FoundStack { completeness, end }, evidence)
            }
        }
    }

    /// How many bytes of a copy have the callers that the chain lacks: from the frame behind the last of them on, the
    /// chain is whole.
    fn needed(
        &mut self,
        code: &mut SampledCode,
        UserChain { pid, addresses, is_too_deep, .. }: UserChain<'_>,
        (user, unwound): (&UserState<'_>, &Unwound),
    ) -> u64 {
        let all = unwound.end_of_last.saturating_sub(unwound.stack);
        if is_too_deep {
            return all;
        }
        let mut from = 0;
        let bytes = loop {
            match self.verdict(code, pid, addresses, from) {
                ChainVerdict::Broken(index) if index >= from => from = index + 1,
                ChainVerdict::Whole if from < addresses.len() => break bytes_to(user, unwound, from),
                ChainVerdict::Whole | ChainVerdict::Broken(_) | ChainVerdict::Unsure | ChainVerdict::Unknown => {
                    break None;
                }
            }
        };
        bytes.unwrap_or(all)
    }

    /// Puts the chain from a frame on behind what was unwound.
    fn join(&mut self, beyond: usize) {
        self.unwound.extend(self.chain.drain(beyond..));
        std::mem::swap(&mut self.chain, &mut self.unwound);
        self.judge.complete(&mut self.chain);
    }

    /// Neither is whole, and the longer one is taken. Where a chain that has all callers so far is as long, names tell whether
    /// the stack begins there.
    fn take_longer(&mut self, code: &SampledCode, is_chain_right: bool) -> StackEnd {
        if is_chain_right && in_code(code, &self.unwound) <= self.chain.len() {
            return StackEnd::Unknown;
        }
        if self.unwound.len() >= self.chain.len() {
            std::mem::swap(&mut self.chain, &mut self.unwound);
        }
        StackEnd::Cut
    }
}

/// The number of frames before the first that is no code.
fn in_code(code: &SampledCode, frames: &[LocationId]) -> usize {
    frames.iter().take_while(|frame| ![code.nowhere, code.unseen].contains(frame)).count()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::files::Identity;
    use crate::stacks::live::rings::{Branches, Mmap, RecordWords};

    /// No process has this number. Its code lies from 0x1000 to 0x2000 and has no unwind information, so that the frame
    /// pointer is believed there.
    const PID: i32 = i32::MAX;
    const STACK: u64 = 0x9000;
    const FRAME: u64 = 0x9010;

    fn code() -> SampledCode {
        let mut code = SampledCode::new();
        let (identity, path) = (Identity { device: 0, inode: 7 }, &b"/nonexistent"[..]);
        let (start, length, offset, executable) = (0x1000, 0x1000, 0x1000, true);
        code.processes.map(&Mmap { pid: PID, start, length, offset, identity, executable, path });
        code
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// What is found of a stack in the code at 0x1001 whose frame pointers lead to these addresses, with a copy of it.
    fn found(
        auto: &mut AutoStacks,
        code: &mut SampledCode,
        chain: &[u64],
        copy: Option<&[u64]>,
    ) -> (Vec<u64>, FoundStack) {
        found_in(auto, code, chain, (copy, true))
    }

    /// The same, with a copy that is as large as was asked for, or ends before.
    fn found_in(
        auto: &mut AutoStacks,
        code: &mut SampledCode,
        chain: &[u64],
        (copy, is_full): (Option<&[u64]>, bool),
    ) -> (Vec<u64>, FoundStack) {
        let registers = bytes(&[0, FRAME, STACK, 0x1001]);
        let stack = bytes(copy.unwrap_or_default());
        let user = copy.map(|_| UserState { registers: RecordWords(&registers), stack: &stack, is_full });
        let (words, branches) = (RecordWords::default(), Branches::default());
        let sample =
            SampleRecord { id: 1, ip: 0x1001, pid: PID, tid: PID, cpu: 0, period: 1, chain: words, branches, user };
        let mut locations = Vec::new();
        let found = auto.stack(code, &sample, chain, false, &mut locations);
        let places = locations.iter().map(|location| code.paths.place(*location));
        (places.collect(), found)
    }

    const ENDED: FoundStack = FoundStack { completeness: Completeness::CopyEnded, end: StackEnd::Cut };
    const CUT: FoundStack = FoundStack { completeness: Completeness::Cut, end: StackEnd::Cut };

    #[test]
    fn a_copy_is_unwound_and_the_chain_goes_on_where_it_ends() {
        let (mut auto, mut code) = (AutoStacks::new(true), code());
        // The frame pointer of the caller at 0x1100 leads beyond the copy.
        let (copy, chain) = ([0, 0, 0xa000, 0x1100], [0x1001, 0x5000, 0x11ff, 0x12ff]);
        // Nobody knows what 0x12ff is: names have to tell.
        let joined = vec![0x1001, 0x10ff, 0x11ff, 0x12ff];
        let unknown = FoundStack { end: StackEnd::Unknown, ..FoundStack::WHOLE };
        assert_eq!(found(&mut auto, &mut code, &chain, Some(&copy)), (joined.clone(), unknown));
        // A single frame beyond the copy isn't believed.
        let (stack, end) = found(&mut auto, &mut code, &chain[..3], Some(&copy));
        assert_eq!((stack.len(), end), (3, ENDED));
        // A stack that is whole tells that stacks begin there.
        let whole = [0, 0, 0, 0x1300];
        let (stack, end) = found(&mut auto, &mut code, &[0x1001, 0x12ff], Some(&whole));
        assert_eq!((stack, end), (vec![0x1001, 0x12ff], FoundStack::WHOLE));
        let (stack, end) = found(&mut auto, &mut code, &chain, Some(&copy));
        assert_eq!((stack, end), (joined, FoundStack::WHOLE));
    }

    #[test]
    fn a_chain_that_lacks_callers_is_better_than_a_copy_that_ends() {
        let (mut auto, mut code) = (AutoStacks::new(true), code());
        found(&mut auto, &mut code, &[0x1001, 0x12ff], Some(&[0, 0, 0, 0x1300]));
        // The copy has not even the frame pointer, and the chain lost its way for a frame.
        let (stack, end) = found(&mut auto, &mut code, &[0x1001, 0x5000, 0x12ff], Some(&[0]));
        assert_eq!((stack.len(), end), (3, FoundStack::WHOLE));
    }

    #[test]
    fn a_chain_that_holds_is_taken_and_one_that_leads_nowhere_is_cut() {
        let (mut auto, mut code) = (AutoStacks::new(true), code());
        let whole = [0, 0, 0, 0x1300];
        found(&mut auto, &mut code, &[0x1001, 0x12ff], Some(&whole));
        // No copy is looked at any more.
        let (stack, end) = found(&mut auto, &mut code, &[0x1001, 0x1101, 0x12ff], Some(&[]));
        assert_eq!((stack, end), (vec![0x1001, 0x1101, 0x12ff], FoundStack::WHOLE));
        let (_, end) = found(&mut auto, &mut code, &[0x1001, 0x1101, 0x5000], None);
        assert_eq!(end, CUT);
        // Names may tell of what no copy told.
        let (_, end) = found(&mut auto, &mut code, &[0x1001, 0x1101], None);
        assert_eq!(end, FoundStack { end: StackEnd::Unknown, ..FoundStack::WHOLE });
        assert_eq!(found(&mut auto, &mut code, &[], None), (Vec::new(), FoundStack::WHOLE));
    }

    #[test]
    fn a_copy_that_ends_at_a_page_that_was_never_written_is_of_use_where_it_has_more_callers() {
        let (mut auto, mut code) = (AutoStacks::new(true), code());
        // The frame of 0x1200 is larger than the copy, and what lies between was never written.
        let (copy, chain) = ([0, 0, 0x9020, 0x1101, 0x2_0000, 0x1201], [0x1001, 0x5000]);
        for _ in 0..30 {
            let (stack, end) = found_in(&mut auto, &mut code, &chain, (Some(&copy), false));
            assert_eq!((stack, end), (vec![0x1001, 0x1100, 0x1200], CUT));
        }
        assert_eq!(auto.decide(1_000_000_000, 0, &code), Some(CopySize::Tiny));
        // Where it has no more than the chain, nothing is copied.
        let (mut auto, copy) = (AutoStacks::new(true), [0, 0, 0x2_0000, 0x5001]);
        for _ in 0..30 {
            found_in(&mut auto, &mut code, &chain, (Some(&copy), false));
        }
        assert_eq!(auto.decide(1_000_000_000, 0, &code), Some(CopySize::None));
    }

    #[test]
    fn a_chain_that_lost_a_caller_is_not_believed_against_a_longer_copy() {
        let (mut auto, mut code) = (AutoStacks::new(true), code());
        // Nothing tells that the chain of two is wrong, and the copy has three frames before it ends.
        let (copy, chain) = ([0, 0, 0x9020, 0x1101, 0x2_0000, 0x1201], [0x1001, 0x1400]);
        assert_eq!(found(&mut auto, &mut code, &chain, Some(&copy)), (vec![0x1001, 0x1100, 0x1200], ENDED));
        // Two frames and no more are no reason against it.
        let (stack, end) = found(&mut auto, &mut code, &chain, Some(&[0, 0, 0x2_0000, 0x1101]));
        assert_eq!((stack.len(), end.end), (2, StackEnd::Unknown));
    }

    #[test]
    fn a_change_is_told_with_the_files_that_lost_callers() {
        let (mut auto, mut code) = (AutoStacks::new(true), code());
        let (whole, chain) = ([0, 0, 0, 0x1300], [0x1001, 0x5000]);
        for _ in 0..30 {
            let (stack, end) = found(&mut auto, &mut code, &chain, Some(&whole));
            assert_eq!((stack, end), (vec![0x1001, 0x12ff], FoundStack::WHOLE));
        }
        assert_eq!(auto.size(), CopySize::Small);
        assert_eq!(auto.decide(1_000_000_000, 0, &code), Some(CopySize::Tiny));
        let told = CopySwitch { at: WallNs(0), bytes: 512, modules: vec!["/nonexistent".into()] };
        assert_eq!(auto.switches, [told]);
        auto.change(1_000_000_000, CopySize::Tiny);
        let counted = |at| CopySize::ALL.into_iter().filter(|&size| auto.counts(at, size)).collect::<Vec<_>>();
        assert_eq!((counted(999_999_999), counted(1_000_000_000)), (vec![CopySize::Small], vec![CopySize::Tiny]));
    }
}
