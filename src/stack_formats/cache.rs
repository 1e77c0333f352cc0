//! Caches what pieces of text meant: most of a profile's text comes again and again.

use std::hash::BuildHasher;

use rustc_hash::FxBuildHasher;

/// A fixed number of pieces, each in the place that its hash gives it, where it makes the one before leave.
pub(super) struct TextCache<T> {
    slots: Vec<(Vec<u8>, Option<T>)>,
    longest: usize,
}

impl<T> TextCache<T> {
    /// For so many pieces, or the next power of two; longer ones aren't worth their memory.
    pub(super) fn new(slots: usize, longest: usize) -> Self {
        Self { slots: (0..slots.next_power_of_two()).map(|_| (Vec::new(), None)).collect(), longest }
    }

    fn slot(&self, text: &[u8]) -> usize {
        // The high bits are the better ones.
        (FxBuildHasher.hash_one(text) >> 32) as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(super) fn get(&mut self, text: &[u8]) -> Option<&mut T> {
        let slot = self.slot(text);
        let (known, meaning) = &mut self.slots[slot];
        if known == text { meaning.as_mut() } else { None }
    }

    /// Remembers what a piece means; gives back what had to leave for it.
    pub(super) fn insert(&mut self, text: &[u8], meaning: T) -> Option<T> {
        if text.len() > self.longest {
            return None;
        }
        let slot = self.slot(text);
        let (known, known_meaning) = &mut self.slots[slot];
        known.clear();
        known.extend_from_slice(text);
        known_meaning.replace(meaning)
    }

    /// Removes and returns all that is remembered.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.slots.iter_mut().filter_map(|(_, meaning)| meaning.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_is_given_back() {
        let mut known = TextCache::new(1, 3);
        assert_eq!((known.insert(b"a", 1), known.get(b"a").copied()), (None, Some(1)));
        assert_eq!(
            (known.insert(b"b", 2), known.get(b"a").copied(), known.get(b"b").copied()),
            (Some(1), None, Some(2))
        );
        assert_eq!((known.insert(b"long", 3), known.get(b"long").copied()), (None, None));
        assert_eq!((known.drain().collect::<Vec<_>>(), known.get(b"b").copied()), (vec![2], None));
    }

    #[test]
    fn nothing_is_known_of_an_empty_text_at_first() {
        assert_eq!(TextCache::<u8>::new(4, 8).get(b""), None);
    }
}
