//! Finds the samples in handlers of signals, and others below a frame.

use super::CUT;
use crate::profile::{EventId, Frame, FrameKind, NodeRef, Tree};

/// What handlers of signals return to, as C libraries and the kernel name it.
const TRAMPOLINES: [&str; 2] = ["__restore_rt", "__kernel_rt_sigreturn"];

fn is_trampoline(node: &NodeRef<'_>) -> bool {
    TRAMPOLINES.contains(&node.frame().name)
}

/// The samples of an event on the paths through nodes that are asked for.
pub(super) fn samples_below(tree: &Tree, event: EventId, mut is_wanted: impl FnMut(&NodeRef<'_>) -> bool) -> u64 {
    let (mut below, mut samples) = (None, 0_u64);
    for node in tree.walk() {
        below = below.filter(|depth| node.depth() > *depth);
        if below.is_none() && is_wanted(&node) {
            below = Some(node.depth());
        }
        if below.is_some() {
            samples = samples.saturating_add(node.samples(event));
        }
    }
    samples
}

/// The same of all events.
pub(super) fn all_samples_below(tree: &Tree, mut is_wanted: impl FnMut(&NodeRef<'_>) -> bool) -> u64 {
    tree.event_ids().map(|event| samples_below(tree, event, &mut is_wanted)).fold(0, u64::saturating_add)
}

/// The samples in handlers of signals, in stacks whose outermost frame is a beginning.
pub(super) fn in_handlers(tree: &Tree, event: EventId, is_beginning: impl Fn(&Frame<'_>) -> bool) -> u64 {
    let is_function = |frame: &Frame<'_>| !matches!(frame.kind, FrameKind::Process | FrameKind::Region);
    let begins = |node: &NodeRef<'_>| {
        let functions = node.ancestors().filter(|above| above.depth() > 0 && is_function(&above.frame()));
        functions.last().is_some_and(|outermost| is_beginning(&outermost.frame()))
    };
    samples_below(tree, event, |node| is_trampoline(node) && begins(node))
}

/// The samples of cut stacks of which no more is known than handlers of signals and what those interrupted.
pub(super) fn cut_behind_handlers(tree: &Tree) -> u64 {
    all_samples_below(tree, |node| {
        is_trampoline(node) && node.ancestors().take(3).any(|above| above.frame().name == CUT)
    })
}
