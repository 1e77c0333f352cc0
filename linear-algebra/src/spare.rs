//! Keeps the memory of large matrices for the next ones: the kernel clears each page that it gives, which takes as long as
//! what is computed in some.

use std::cell::RefCell;

/// How many values a matrix has whose memory is worth keeping, and how many of them are kept in a thread.
const LARGE: usize = 1 << 14;
const MOST: usize = 4;

thread_local! {
    static SPARE: RefCell<Vec<Vec<f64>>> = const { RefCell::new(Vec::new()) };
}

/// So many zeros.
pub(crate) fn zeros(length: usize) -> Vec<f64> {
    match take(length) {
        Some(mut values) => {
            values.clear();
            values.resize(length, 0.0);
            values
        }
        None => vec![0.0; length],
    }
}

/// The smallest memory that is kept and large enough.
fn take(length: usize) -> Option<Vec<f64>> {
    if length < LARGE {
        return None;
    }
    let smallest = |spare: &mut Vec<Vec<f64>>| {
        let large = spare.iter().enumerate().filter(|(_, values)| values.capacity() >= length);
        let (place, _) = large.min_by_key(|(_, values)| values.capacity())?;
        Some(spare.swap_remove(place))
    };
    SPARE.try_with(|spare| smallest(&mut spare.borrow_mut())).ok().flatten()
}

/// Keeps memory for another matrix; the smallest goes where there is more than enough.
pub(crate) fn keep(values: Vec<f64>) {
    if values.capacity() < LARGE {
        return;
    }
    // Where the thread is ending it is freed.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        spare.push(values);
        if spare.len() > MOST {
            let smallest = spare.iter().enumerate().min_by_key(|(_, values)| values.capacity());
            if let Some((place, _)) = smallest {
                spare.swap_remove(place);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_memory_is_taken_again_and_cleared() {
        let mut values = zeros(LARGE);
        values.fill(1.0);
        let place = values.as_ptr();
        keep(values);
        assert!(take(2 * LARGE).is_none() && take(LARGE - 1).is_none());
        let again = zeros(LARGE);
        assert!(again.as_ptr() == place && again.iter().all(|&value| value == 0.0));
        // Of more than enough the largest are kept.
        (0..=MOST).for_each(|more| keep(vec![1.0; LARGE + more]));
        assert!((0..MOST).all(|_| take(LARGE).is_some_and(|values| values.capacity() > LARGE)));
        assert!(take(LARGE).is_none());
    }
}
