//! Takes columns out of tables that there is no room for.

/// The columns that stay where those of each group leave together, the first group first, until the rest fits.
pub(super) fn fit<C: Copy + PartialEq>(
    all: impl IntoIterator<Item = C>,
    leaving: impl IntoIterator<Item: AsRef<[C]>>,
    fits: impl Fn(&[C]) -> bool,
) -> Vec<C> {
    let mut shown: Vec<C> = all.into_iter().collect();
    for group in leaving {
        if fits(&shown) {
            break;
        }
        shown.retain(|column| !group.as_ref().contains(column));
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_more_leaves_than_has_to(widths in prop::collection::vec(1_usize..20, 1..12), room in 0_usize..150) {
            let used = |shown: &[usize]| shown.iter().map(|&column| widths[column]).sum::<usize>();
            // The first one stays; the others leave from the end, in pairs.
            let leaving: Vec<_> = (1..widths.len()).rev().collect();
            let shown = fit(0..widths.len(), leaving.chunks(2), |shown| used(shown) <= room);
            prop_assert!(used(&shown) <= room || shown == [0]);
            prop_assert!(shown.is_sorted() && shown.contains(&0));
            let left: Vec<_> = leaving.chunks(2).take_while(|pair| !shown.contains(&pair[0])).collect();
            if let Some(pair) = left.last() {
                let before: Vec<_> = shown.iter().chain(*pair).copied().collect();
                prop_assert!(used(&before) > room);
            }
        }
    }
}
