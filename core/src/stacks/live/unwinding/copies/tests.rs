//! Tests when stacks are copied, and how much of them.

use super::*;

const SECOND: u64 = 1_000_000_000;

fn note(control: &mut CopyControl, pid: i32, evidence: StackEvidence, count: u32) {
    (0..count).for_each(|_| control.note(pid, evidence));
}

/// What is copied after a check that saw so many samples that hold, and that a copy healed.
fn after_check(holds: u32, healed: u32) -> (Option<CopyChange>, CopySize) {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Holds, holds);
    note(&mut control, 1, StackEvidence::Healed(1000), healed);
    control.decide(0);
    (control.decide(SECOND), control.size())
}

#[test]
fn stacks_are_copied_where_more_than_one_in_twenty_needs_it() {
    assert_eq!(after_check(100, 0), (Some(CopyChange::Quietly), CopySize::None));
    // 5 of 100 are 5 %, and 6 of 100 are more.
    assert_eq!(after_check(95, 5), (Some(CopyChange::Quietly), CopySize::None));
    assert_eq!(after_check(94, 6), (Some(CopyChange::Missing), CopySize::Small));
    // A few samples tell nothing, and the check goes on.
    assert_eq!(after_check(0, 19), (None, CopySize::Small));
    assert_eq!(after_check(0, 20), (Some(CopyChange::Missing), CopySize::Small));
    assert_eq!(after_check(0, 0), (None, CopySize::Small));
}

#[test]
fn one_process_among_many_is_enough_and_so_are_many_short_ones() {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Holds, 10_000);
    note(&mut control, 2, StackEvidence::Healed(1000), 20);
    assert_eq!(control.decide(SECOND), Some(CopyChange::Missing));
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Holds, 100);
    (2..12).for_each(|pid| note(&mut control, pid, StackEvidence::Healed(1000), 2));
    assert_eq!(control.decide(SECOND), Some(CopyChange::Missing));
}

#[test]
fn what_a_program_does_at_its_beginning_is_no_reason_to_copy() {
    let mut control = CopyControl::new(0, true);
    // The dynamic linker has no frame pointers.
    note(&mut control, 1, StackEvidence::Healed(300), 30);
    control.age(CHECK / 2 - 1);
    control.age(CHECK / 2);
    assert_eq!(control.decide(CHECK / 2), None);
    note(&mut control, 1, StackEvidence::Holds, 50);
    control.age(CHECK - 1);
    assert_eq!((control.decide(CHECK), control.size()), (Some(CopyChange::Quietly), CopySize::None));
    // What the second half shows counts, and too few samples are not forgotten.
    for (early, late, change) in [(50, 50, CopyChange::Missing), (ENOUGH - 1, 1, CopyChange::Missing)] {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(300), early);
        control.age(CHECK / 2);
        note(&mut control, 1, StackEvidence::Healed(300), late);
        assert_eq!((control.decide(CHECK), control.size()), (Some(change), CopySize::Tiny));
    }
}

#[test]
fn time_without_samples_says_nothing_of_whether_copies_are_needed() {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Healed(300), 100);
    assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Tiny));
    for second in 2..20 {
        control.age(second * SECOND);
        assert_eq!(control.decide(second * SECOND), None);
    }
    note(&mut control, 1, StackEvidence::Holds, 200);
    assert_eq!(control.decide(20 * SECOND), None);
}

#[test]
fn doubts_lead_to_a_check_and_what_copies_do_not_help_to_no_other() {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Holds, 20);
    assert_eq!(control.decide(SECOND), Some(CopyChange::Quietly));
    note(&mut control, 1, StackEvidence::Holds, 38);
    note(&mut control, 1, StackEvidence::Doubtful, 2);
    assert_eq!(control.decide(3 * SECOND), None);
    note(&mut control, 1, StackEvidence::Doubtful, 1);
    // Checks come one a second at most.
    assert_eq!(control.decide(SECOND + PAUSE - 1), None);
    assert_eq!((control.decide(3 * SECOND), control.size()), (Some(CopyChange::Quietly), CopySize::Small));
    note(&mut control, 1, StackEvidence::Useless, 20);
    assert_eq!((control.decide(4 * SECOND), control.size()), (Some(CopyChange::Quietly), CopySize::None));
    note(&mut control, 1, StackEvidence::Doubtful, 1000);
    assert_eq!(control.decide(6 * SECOND), None);
    // Another process is another matter.
    note(&mut control, 2, StackEvidence::Doubtful, 100);
    assert_eq!(control.decide(7 * SECOND), Some(CopyChange::Quietly));
}

#[test]
fn larger_copies_stay_where_they_help() {
    // Found in the check, or later.
    let in_check = || {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::CopyEnded, 20);
        assert_eq!((control.decide(1), control.size()), (Some(CopyChange::Quietly), CopySize::Large));
        control
    };
    let later = || {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(1000), 20);
        assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Small));
        note(&mut control, 1, StackEvidence::Healed(1000), 80);
        note(&mut control, 1, StackEvidence::CopyEnded, 20);
        assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Large));
        control
    };
    for (start, change) in [(in_check as fn() -> CopyControl, Some(CopyChange::Missing)), (later, None)] {
        let mut helped = start();
        note(&mut helped, 1, StackEvidence::Healed(20_000), 20);
        assert_eq!((helped.decide(2 * SECOND), helped.size()), (change, CopySize::Large));
        let mut too_long = start();
        note(&mut too_long, 1, StackEvidence::Healed(1000), 60);
        note(&mut too_long, 1, StackEvidence::CopyEnded, 40);
        let change = change.or(Some(CopyChange::Resized));
        assert_eq!((too_long.decide(2 * SECOND), too_long.size()), (change, CopySize::Small));
        note(&mut too_long, 1, StackEvidence::CopyEnded, 400);
        assert_eq!((too_long.decide(3 * SECOND), too_long.size()), (None, CopySize::Small));
    }
    // They aren't given up for a moment without need.
    let mut helped = later();
    note(&mut helped, 1, StackEvidence::Healed(1000), 400);
    assert_eq!((helped.decide(2 * SECOND), helped.size()), (None, CopySize::Large));
    assert_eq!((helped.decide(5 * SECOND), helped.size()), (Some(CopyChange::Resized), CopySize::Small));
    let mut none = CopyControl::new(0, false);
    note(&mut none, 1, StackEvidence::CopyEnded, 100);
    assert_eq!((none.decide(SECOND), none.size()), (Some(CopyChange::Missing), CopySize::Small));
}

#[test]
fn copies_are_as_small_as_nearly_all_samples_allow() {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Healed(300), 400);
    note(&mut control, 1, StackEvidence::Healed(1000), 2);
    assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Tiny));
    note(&mut control, 1, StackEvidence::Healed(300), 90);
    note(&mut control, 1, StackEvidence::CopyEnded, 10);
    assert_eq!((control.decide(2 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
    note(&mut control, 1, StackEvidence::Healed(300), 1000);
    assert_eq!(control.decide(3 * SECOND), None);
    assert_eq!((control.decide(5 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Tiny));
}

#[test]
fn copies_grow_where_the_few_deepest_stacks_end_with_them() {
    let small_copies = || {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(300), 400);
        assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Tiny));
        control
    };
    // 5 of 1,000 are 0.5 %, 33 are more; what a second hasn't shown is no rule.
    let mut control = small_copies();
    note(&mut control, 1, StackEvidence::Healed(300), 995);
    note(&mut control, 1, StackEvidence::CopyEnded, 5);
    assert_eq!(control.decide(2 * SECOND), None);
    note(&mut control, 1, StackEvidence::CopyEnded, 28);
    assert_eq!(control.decide(2 * SECOND - 1), None);
    assert_eq!((control.decide(2 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
    // There they stay as long as these are met.
    note(&mut control, 1, StackEvidence::Healed(300), 967);
    note(&mut control, 1, StackEvidence::Healed(3000), 33);
    assert_eq!((control.decide(6 * SECOND), control.size()), (None, CopySize::Small));
    // The largest ones are tried for few once, and for many again.
    note(&mut control, 1, StackEvidence::CopyEnded, 20);
    assert_eq!((control.decide(7 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Large));
    note(&mut control, 1, StackEvidence::Healed(300), 980);
    note(&mut control, 1, StackEvidence::CopyEnded, 20);
    assert_eq!((control.decide(8 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
    note(&mut control, 1, StackEvidence::Healed(3000), 980);
    note(&mut control, 1, StackEvidence::CopyEnded, 20);
    assert_eq!(control.decide(10 * SECOND), None);
    note(&mut control, 1, StackEvidence::CopyEnded, 40);
    assert_eq!((control.decide(10 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Large));
    // One or two may be an accident.
    let mut control = small_copies();
    note(&mut control, 1, StackEvidence::Healed(300), 100);
    note(&mut control, 1, StackEvidence::CopyEnded, 2);
    assert_eq!(control.decide(2 * SECOND), None);
}

#[test]
fn copies_end_after_long_without_need() {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Healed(1000), 20);
    assert_eq!(control.decide(SECOND), Some(CopyChange::Missing));
    note(&mut control, 1, StackEvidence::Healed(1000), 3);
    note(&mut control, 1, StackEvidence::Holds, 797);
    assert_eq!(control.decide(5 * SECOND), None);
    control.age(5 * SECOND);
    control.age(6 * SECOND);
    note(&mut control, 1, StackEvidence::Holds, 250);
    assert_eq!((control.decide(7 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Tiny));
    note(&mut control, 1, StackEvidence::Holds, 100);
    assert_eq!((control.decide(11 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::None));
}

#[test]
fn copies_that_find_no_room_shrink_at_once_and_stay_so_for_a_while() {
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::CopyEnded, 20);
    assert_eq!((control.decide(1), control.size()), (Some(CopyChange::Quietly), CopySize::Large));
    // What was lost before the change says nothing of it.
    assert_eq!(control.relieve(1 + SETTLING - 1), None);
    let mut sizes = Vec::new();
    for turn in 1..=4 {
        control.relieve(1 + turn * SETTLING);
        sizes.push(control.size());
    }
    assert_eq!(sizes, [CopySize::Small, CopySize::None, CopySize::None, CopySize::None]);
    // The second relief lasts 10 s; then doubts lead to a check again.
    note(&mut control, 1, StackEvidence::Doubtful, 100);
    assert_eq!((control.decide(9 * SECOND), control.size()), (None, CopySize::None));
    assert_eq!((control.decide(11 * SECOND), control.size()), (Some(CopyChange::Quietly), CopySize::Small));
    // What is known to need copies is copied in smaller ones, which don't grow for 5 s even where they end.
    let mut control = CopyControl::new(0, true);
    note(&mut control, 1, StackEvidence::Healed(1000), 20);
    assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Small));
    assert_eq!((control.relieve(2 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Tiny));
    note(&mut control, 1, StackEvidence::CopyEnded, 100);
    assert_eq!((control.decide(6 * SECOND), control.size()), (None, CopySize::Tiny));
    assert_eq!((control.decide(7 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
}
