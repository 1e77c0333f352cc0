//! Judges chains of frame pointers: whether each one led to the caller, and whether the last frame is where stacks
//! begin.
//!
//! The kernel follows frame pointers and can't tell whether there are any. Unwind information tells how the caller
//! of a place in code is found. Where that isn't by the frame pointer, the chain has lost a caller there.

use rustc_hash::FxHashMap;

use super::paths::LocationId;
use super::unwind::{CallerRule, FramePlace, Unwound};
use crate::stacks::live::rings::UserState;

/// Functions of libraries that may stand outside of the last frame of a chain that is whole: with glibc
/// `__libc_start_main` and `_start`, or `clone3`, none of which has a frame pointer.
const MOST_BEFORE: usize = 2;

/// Whether a chain of frame pointers can be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainVerdict {
    /// It has all callers.
    Whole,
    /// The frame at this index keeps no frame pointer, or its caller is no code.
    Broken(usize),
    /// No frame pointer leads on from the last frame, and no copy of a stack has told yet whether a stack begins there.
    Unsure,
    /// The same, and copies don't tell it either.
    Unknown,
}

/// What copies of stacks told of a last frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LastFrame {
    /// Stacks begin with it, but for these callers, the innermost first.
    Begins(Vec<LocationId>),
    GoesOn,
    Unknown,
}

/// What is known of the places that chains went through.
#[derive(Debug, Default)]
pub(super) struct ChainJudge {
    rules: FxHashMap<(LocationId, FramePlace), CallerRule>,
    last: FxHashMap<LocationId, LastFrame>,
}

impl ChainJudge {
    /// Judges the part of a chain that begins at `from`. `rule` tells how the caller of the frame at an index is found;
    /// it is asked once for each place in code.
    pub(super) fn judge(
        &mut self,
        chain: &[LocationId],
        from: usize,
        nowhere: LocationId,
        mut rule: impl FnMut(usize, FramePlace) -> CallerRule,
    ) -> ChainVerdict {
        for (index, &location) in chain.iter().enumerate().skip(from) {
            if location == nowhere {
                return ChainVerdict::Broken(index.saturating_sub(1));
            }
            let place = if index == 0 { FramePlace::Innermost } else { FramePlace::Caller };
            let is_last = index + 1 == chain.len();
            let rule = *self.rules.entry((location, place)).or_insert_with(|| rule(index, place));
            match rule {
                CallerRule::FramePointer => {}
                CallerRule::Nobody if is_last => {}
                CallerRule::Assumed if !is_last => {}
                CallerRule::Other | CallerRule::Assumed if is_last && index > 0 => return self.verdict_of_last(chain),
                CallerRule::Other | CallerRule::Signal | CallerRule::Nobody | CallerRule::Assumed => {
                    return ChainVerdict::Broken(index);
                }
            }
        }
        ChainVerdict::Whole
    }

    fn verdict_of_last(&self, chain: &[LocationId]) -> ChainVerdict {
        match chain.last().and_then(|last| self.last.get(last)) {
            Some(LastFrame::Begins(_)) => ChainVerdict::Whole,
            Some(LastFrame::GoesOn) => ChainVerdict::Broken(chain.len() - 1),
            Some(LastFrame::Unknown) => ChainVerdict::Unknown,
            None => ChainVerdict::Unsure,
        }
    }

    /// Learns from a stack that was unwound from a copy what the last frame of its chain is; `None` where unwinding
    /// found no beginning.
    pub(super) fn learn(&mut self, chain: &[LocationId], whole: Option<&[LocationId]>) {
        let Some(&last) = chain.last() else { return };
        let before = whole.and_then(|whole| whole.strip_prefix(chain));
        match (before, self.last.get(&last)) {
            (_, Some(LastFrame::GoesOn)) | (None, Some(_)) => {}
            (Some(before), _) if before.len() > MOST_BEFORE => drop(self.last.insert(last, LastFrame::GoesOn)),
            (Some(before), _) => drop(self.last.insert(last, LastFrame::Begins(before.to_vec()))),
            (None, None) => drop(self.last.insert(last, LastFrame::Unknown)),
        }
    }

    /// Whether unwind information tells that stacks begin with the last frame of a chain, or copies told it.
    pub(super) fn begins(&self, chain: &[LocationId]) -> bool {
        let Some(&last) = chain.last() else { return false };
        self.rules.get(&(last, FramePlace::Caller)) == Some(&CallerRule::Nobody)
            || matches!(self.last.get(&last), Some(LastFrame::Begins(_)))
    }

    /// Puts behind a chain what stands before its last frame in every stack.
    pub(super) fn complete(&self, chain: &mut Vec<LocationId>) {
        if let Some(LastFrame::Begins(before)) = chain.last().and_then(|last| self.last.get(last)) {
            chain.extend_from_slice(before);
        }
    }
}

/// The index in a chain of so many frames of the first one that lies further out than all that was unwound.
///
/// ```text
/// sp                    frame pointer                              end of the copy
/// │ chain[0]            │ saved, return address = chain[1] ─ … ─   │  … chain[n]
/// │ unwound[0] ─ unwound[1] ─ … ─ unwound.last ends here ┊
/// ```
pub(super) fn first_beyond(user: &UserState<'_>, unwound: &Unwound, frames: usize) -> usize {
    let mut ends = ends_of_callers(user, unwound).take(frames.saturating_sub(1));
    ends.position(|end| end > unwound.end_of_last).map_or(frames, |index| index + 1)
}

/// How many bytes of the copy a frame of the chain and all that it called take.
pub(super) fn bytes_to(user: &UserState<'_>, unwound: &Unwound, index: usize) -> Option<u64> {
    let end = ends_of_callers(user, unwound).nth(index.checked_sub(1)?)?;
    end.checked_sub(unwound.stack)
}

/// Where on the stack the callers of a chain begin, from `chain[1]` on, as far as the copy tells it.
fn ends_of_callers<'a>(user: &'a UserState<'_>, unwound: &'a Unwound) -> impl Iterator<Item = u64> + 'a {
    let mut frame = Some(unwound.frame);
    std::iter::from_fn(move || {
        let at = frame?;
        let from = at.checked_sub(unwound.stack).and_then(|from| usize::try_from(from).ok());
        frame = from.and_then(|from| user.stack_word(from));
        // Behind the saved frame pointer stands where the call returns to.
        Some(at.saturating_add(16))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::unwind::Completeness;
    use super::*;
    use crate::stacks::live::rings::RecordWords;
    use CallerRule::{Assumed, FramePointer, Nobody, Other};

    const NOWHERE: LocationId = LocationId(0);

    fn chain(ids: &[u32]) -> Vec<LocationId> {
        ids.iter().map(|&id| LocationId(id)).collect()
    }

    /// Judges a chain whose frames have these rules, with places that were never seen before.
    fn verdict(rules: &[CallerRule]) -> ChainVerdict {
        let ids: Vec<_> = (1..=rules.len() as u32).collect();
        ChainJudge::default().judge(&chain(&ids), 0, NOWHERE, |index, _| rules[index])
    }

    #[test]
    fn a_chain_is_whole_where_every_frame_has_a_frame_pointer() {
        assert_eq!(verdict(&[]), ChainVerdict::Whole);
        assert_eq!(verdict(&[FramePointer, FramePointer, Nobody]), ChainVerdict::Whole);
        assert_eq!(verdict(&[FramePointer, Assumed, FramePointer]), ChainVerdict::Whole);
        // The innermost function lost its caller, one in the middle did, and nobody has a caller.
        assert_eq!(verdict(&[Other, FramePointer, Nobody]), ChainVerdict::Broken(0));
        assert_eq!(verdict(&[FramePointer, Other, FramePointer]), ChainVerdict::Broken(1));
        assert_eq!(verdict(&[FramePointer, Nobody, FramePointer]), ChainVerdict::Broken(1));
        assert_eq!(verdict(&[Other]), ChainVerdict::Broken(0));
        // A runtime function without a frame pointer may be the beginning, or not.
        assert_eq!(verdict(&[FramePointer, Other]), ChainVerdict::Unsure);
        assert_eq!(verdict(&[FramePointer, Assumed]), ChainVerdict::Unsure);
    }

    #[test]
    fn what_is_no_code_was_called_by_nobody() {
        let mut judge = ChainJudge::default();
        assert_eq!(judge.judge(&chain(&[1, 2, 0]), 0, NOWHERE, |_, _| FramePointer), ChainVerdict::Broken(1));
        assert_eq!(judge.judge(&chain(&[0]), 0, NOWHERE, |_, _| FramePointer), ChainVerdict::Broken(0));
    }

    #[test]
    fn a_place_is_looked_up_once_as_innermost_and_once_as_caller() {
        let (mut judge, mut asked) = (ChainJudge::default(), Vec::new());
        for _ in 0..2 {
            let verdict = judge.judge(&chain(&[1, 1, 1, 2]), 0, NOWHERE, |index, place| {
                asked.push((index, place));
                if index == 3 { Nobody } else { FramePointer }
            });
            assert_eq!(verdict, ChainVerdict::Whole);
        }
        assert_eq!(asked, [(0, FramePlace::Innermost), (1, FramePlace::Caller), (3, FramePlace::Caller)]);
    }

    #[test]
    fn copies_tell_whether_stacks_begin_with_a_last_frame() {
        let rules = |index: usize, _| if index < 2 { FramePointer } else { Other };
        let seen = chain(&[1, 2, 3]);
        let mut judge = ChainJudge::default();
        judge.learn(&seen, None);
        assert_eq!(judge.judge(&seen, 0, NOWHERE, rules), ChainVerdict::Unknown);
        judge.learn(&seen, Some(&chain(&[1, 2, 3, 8, 9])));
        assert_eq!(judge.judge(&seen, 0, NOWHERE, rules), ChainVerdict::Whole);
        let mut completed = seen.clone();
        judge.complete(&mut completed);
        assert_eq!(completed, chain(&[1, 2, 3, 8, 9]));
        // A deeper stack through the same place: it isn't where stacks begin, for ever.
        judge.learn(&seen, Some(&chain(&[1, 2, 3, 3, 3, 3])));
        judge.learn(&seen, Some(&chain(&[1, 2, 3, 8, 9])));
        assert_eq!(judge.judge(&seen, 0, NOWHERE, rules), ChainVerdict::Broken(2));
        let mut other = chain(&[7]);
        judge.complete(&mut other);
        assert_eq!(other, chain(&[7]));
    }

    /// Unwinding that began at address 1000 with this frame pointer, and came so far.
    fn unwound(frame: u64, end_of_last: u64) -> Unwound {
        Unwound { end: Completeness::CopyEnded, stack: 1000, end_of_last, frame }
    }

    fn user(stack: &[u8]) -> UserState<'_> {
        UserState { registers: RecordWords::default(), stack, is_full: true }
    }

    #[test]
    fn a_chain_goes_on_where_the_copy_ended() {
        // Frames at 1016 and 1048, saved one in the other; the next one lies at 2000, beyond the copy.
        let words = [0, 0, 1048, 0xa, 0, 0, 2000, 0xb];
        let stack: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        // chain: ip, 0xa (ends at 1032), 0xb (ends at 1064), then what was saved at 2000.
        let beyond = |end_of_last| first_beyond(&user(&stack), &unwound(1016, end_of_last), 5);
        assert_eq!([1000, 1032, 1040, 1064].map(beyond), [1, 2, 2, 3]);
        // A frame pointer that is none leads on at once: what it led to lies beyond.
        assert_eq!(first_beyond(&user(&stack), &unwound(u64::MAX, 1064), 5), 1);
        // One that leads back never goes beyond.
        assert_eq!(first_beyond(&user(&stack), &unwound(1000, 1064), 3), 3);
        assert_eq!(first_beyond(&user(&stack), &unwound(1016, 1064), 1), 1);
        let bytes = |index| bytes_to(&user(&stack), &unwound(1016, 1064), index);
        assert_eq!([0, 1, 2, 3, 4].map(bytes), [None, Some(32), Some(64), Some(1016), None]);
    }

    proptest! {
        #[test]
        fn no_frame_is_found_twice(words in prop::collection::vec(990u64..1100, 0..12), frame in 990u64..1100, end in 1000u64..1100) {
            let stack: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let first = first_beyond(&user(&stack), &unwound(frame, end), 20);
            prop_assert!((1..=20).contains(&first));
            // Each frame before it ends where something was unwound.
            let mut at = frame;
            for _ in 1..first.min(19) {
                prop_assert!(at + 16 <= end || first == 20);
                at = at.checked_sub(1000).and_then(|from| user(&stack).stack_word(from as usize)).unwrap_or(0);
            }
        }
    }
}
