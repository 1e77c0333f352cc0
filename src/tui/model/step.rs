//! Moves the selection in a list by keys.

use crate::tui::keys::Action;

/// Which line of a growing list is the last one on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum Tail {
    /// The newest line, as lines come.
    #[default]
    Follow,
    /// The line at this place, counted from the beginning.
    At(usize),
}

/// A way to move in a list.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) enum ListStep {
    By(isize),
    First,
    Last,
}

impl ListStep {
    pub(super) fn of(action: Action, page: usize) -> Self {
        let page = isize::try_from(page).unwrap_or(10);
        match action {
            Action::Up => Self::By(-1),
            Action::Down => Self::By(1),
            Action::PageUp => Self::By(-page),
            Action::PageDown => Self::By(page),
            Action::HalfUp => Self::By(-(page / 2).max(1)),
            Action::HalfDown => Self::By((page / 2).max(1)),
            Action::First => Self::First,
            Action::Last => Self::Last,
            _ => Self::By(0),
        }
    }

    /// The place after a step from `place` in a list of `count`, never past its ends.
    pub(super) fn from(self, place: usize, count: usize) -> usize {
        let last = count.saturating_sub(1);
        match self {
            Self::By(step) => place.saturating_add_signed(step).min(last),
            Self::First => 0,
            Self::Last => last,
        }
    }
}

pub(super) fn move_in<T: Copy + PartialEq>(order: &[T], selected: &mut T, step: ListStep) {
    let place = order.iter().position(|index| index == selected).unwrap_or(0);
    if let Some(&index) = order.get(step.from(place, order.len())) {
        *selected = index;
    }
}

pub(super) fn scrolled(tail: Tail, count: usize, step: ListStep) -> Tail {
    let last = count.saturating_sub(1);
    let place = match tail {
        Tail::Follow => last,
        Tail::At(place) => place.min(last),
    };
    match step.from(place, count) {
        place if place == last => Tail::Follow,
        place => Tail::At(place),
    }
}

/// What is so many steps after `current` in a ring; the first where that isn't in it.
pub(super) fn neighbour<T: Copy + PartialEq>(ring: &[T], current: T, step: isize) -> T {
    let place = ring.iter().position(|one| *one == current);
    let next = place.map(|place| place.cast_signed() + step).unwrap_or_default();
    ring[next.rem_euclid(ring.len().cast_signed()).cast_unsigned()]
}

/// The first row on the screen after a move: it stays the same where it can.
pub(super) fn first_row(selected: usize, first: usize, count: usize, height: usize) -> usize {
    let height = height.max(1);
    let lowest = (selected + 1).saturating_sub(height);
    first.clamp(lowest, selected).min(count.saturating_sub(height).max(lowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_go_round() {
        let ring = ['a', 'b', 'c'];
        assert_eq!([1, -1, 4].map(|step| neighbour(&ring, 'a', step)), ['b', 'c', 'b']);
        assert_eq!([1, -1].map(|step| neighbour(&ring, 'c', step)), ['a', 'b']);
        assert_eq!([1, -1].map(|step| neighbour(&ring, 'x', step)), ['a', 'a']);
    }

    #[test]
    fn lists_scroll_no_further_than_needed() {
        assert_eq!(first_row(5, 0, 20, 10), 0);
        assert_eq!(first_row(12, 0, 20, 10), 3, "at the bottom");
        assert_eq!(first_row(3, 8, 20, 10), 3, "at the top");
        assert_eq!(first_row(19, 15, 20, 10), 10, "no blank rows below the last");
        assert_eq!((first_row(0, 0, 0, 0), first_row(3, 0, 4, 0)), (0, 3));
    }
}
