//! Takes the stack of each sample from its chain of frame pointers, from its copied stack, or from both.

use rustc_hash::FxHashMap;

use super::super::CopySwitch;
use super::super::end::StackEnd;
use super::chains::{ChainJudge, ChainVerdict, first_beyond};
use super::code::SampledCode;
use super::copies::{CopyChange, CopyControl, CopySize, SampledTimes, StackEvidence};
use super::modules::ModuleId;
use super::paths::LocationId;
use super::record::{SampleRecord, UserState};
use super::unwind::Completeness;
use crate::units::WallNs;

/// A file is named as one without frame pointers where it loses so many of the callers that are lost: one in so many.
const WORTH_NAMING: u32 = 20;

/// How stacks are found while frame pointers may be missing.
#[derive(Debug)]
pub(super) struct AutoStacks {
    judge: ChainJudge,
    control: CopyControl,
    times: SampledTimes,
    /// How often a caller was lost in a module, since the last change.
    lost_in: FxHashMap<ModuleId, u32>,
    /// What a reader is told.
    pub(super) switches: Vec<CopySwitch>,
    /// User frames of the sample that is being read, by frame pointers and by unwinding.
    chain: Vec<LocationId>,
    unwound: Vec<LocationId>,
    addresses: Vec<u64>,
}

/// How far the stack of a sample goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundStack {
    pub(super) completeness: Completeness,
    /// Unknown where the name of the outermost frame has to tell it.
    pub(super) end: StackEnd,
}

impl FoundStack {
    const WHOLE: Self = Self { completeness: Completeness::Whole, end: StackEnd::Beginning };
}

impl AutoStacks {
    pub(super) fn new(has_large: bool) -> Self {
        let control = CopyControl::new(0, has_large);
        let times = SampledTimes::new(control.size());
        Self {
            judge: ChainJudge::default(),
            control,
            times,
            lost_in: FxHashMap::default(),
            switches: Vec::new(),
            chain: Vec::new(),
            unwound: Vec::new(),
            addresses: Vec::new(),
        }
    }

    /// What samples now.
    pub(super) fn size(&self) -> CopySize {
        self.control.size()
    }

    pub(super) fn is_checking(&self) -> bool {
        self.control.is_checking()
    }

    /// Whether a sample of this set of events at this time counts.
    pub(super) fn counts(&self, at: u64, size: CopySize) -> bool {
        self.times.counts(at, size)
    }

    /// A process is another program now, or has ended.
    pub(super) fn forget(&mut self, pid: i32) {
        self.control.forget(pid);
    }

    /// Decides what is to be copied; gives the set of events that is to sample where that is another one now.
    pub(super) fn decide(&mut self, now: u64, origin: u64, code: &SampledCode) -> Option<CopySize> {
        self.control.age(now);
        let before = self.control.size();
        let change = self.control.decide(now)?;
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
    pub(super) fn change(&mut self, at: u64, to: CopySize) {
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
    pub(super) fn stack(
        &mut self,
        code: &mut SampledCode,
        sample: &SampleRecord<'_>,
        addresses: &[u64],
        is_too_deep: bool,
        out: &mut Vec<LocationId>,
    ) -> FoundStack {
        self.chain.clear();
        code.locate(sample.pid, addresses, &mut self.chain);
        let verdict = self.verdict(code, sample.pid, addresses, 0);
        let lost_in = match verdict {
            ChainVerdict::Broken(index) => self.chain.get(index).copied(),
            ChainVerdict::Whole | ChainVerdict::Unsure | ChainVerdict::Unknown => None,
        };
        let (found, evidence) = match (verdict, &sample.user) {
            (ChainVerdict::Whole, _) if !is_too_deep => {
                self.judge.complete(&mut self.chain);
                (FoundStack::WHOLE, StackEvidence::Holds)
            }
            (_, Some(user)) => self.unwind(code, sample.pid, user, addresses, verdict),
            (_, None) => (self.chain_alone(code, sample.pid, addresses, is_too_deep), StackEvidence::Doubtful),
        };
        if let (Some(lost_in), StackEvidence::Healed(_) | StackEvidence::CopyEnded) = (lost_in, evidence) {
            *self.lost_in.entry(code.paths.module(lost_in)).or_default() += 1;
        }
        self.control.note(sample.pid, evidence);
        out.append(&mut self.chain);
        found
    }

    /// Judges the chain from a frame on.
    fn verdict(&mut self, code: &mut SampledCode, pid: i32, addresses: &[u64], from: usize) -> ChainVerdict {
        let SampledCode { processes, cache, nowhere, .. } = code;
        let (space, modules) = processes.space(pid);
        let rule = |index: usize, place| space.caller_rule(addresses[index], place, modules, cache);
        self.judge.judge(&self.chain, from, *nowhere, rule)
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
        pid: i32,
        user: &UserState<'_>,
        addresses: &[u64],
        verdict: ChainVerdict,
    ) -> (FoundStack, StackEvidence) {
        let is_right_so_far = matches!(verdict, ChainVerdict::Unsure | ChainVerdict::Unknown);
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
                std::mem::swap(&mut self.chain, &mut self.unwound);
                let used = unwound.end_of_last.saturating_sub(unwound.stack);
                let evidence = if is_right { StackEvidence::Holds } else { StackEvidence::Healed(used) };
                (FoundStack::WHOLE, evidence)
            }
            Completeness::CopyEnded => {
                let beyond = first_beyond(user, &unwound, addresses.len());
                if beyond < addresses.len() && self.verdict(code, pid, addresses, beyond) == ChainVerdict::Whole {
                    self.unwound.extend(self.chain.drain(beyond..));
                    std::mem::swap(&mut self.chain, &mut self.unwound);
                    self.judge.complete(&mut self.chain);
                    return (FoundStack::WHOLE, StackEvidence::Healed(0));
                }
                let end = self.take_longer(is_right_so_far);
                (FoundStack { completeness: Completeness::CopyEnded, end }, StackEvidence::CopyEnded)
            }
            Completeness::Cut | Completeness::TooDeep => {
                if is_right_so_far {
                    self.judge.learn(&self.chain, None);
                }
                let end = self.take_longer(is_right_so_far);
                (FoundStack { completeness: Completeness::Cut, end }, StackEvidence::Useless)
            }
        }
    }

    /// Neither is whole. A chain that has all callers so far is better than what is cut; else the longer one is.
    fn take_longer(&mut self, is_chain_right: bool) -> StackEnd {
        if is_chain_right {
            return StackEnd::Unknown;
        }
        if self.unwound.len() >= self.chain.len() {
            std::mem::swap(&mut self.chain, &mut self.unwound);
        }
        StackEnd::Cut
    }
}
