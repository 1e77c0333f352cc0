//! Filters the lines of a list by a few typed letters.

use crate::names::glob;

/// A filter of a list; an empty one lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    text: String,
}

impl Filter {
    pub(crate) fn new(text: String) -> Self {
        Self { text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// A glob must match the whole of `line`; other text must be somewhere in it. Capitals count
    /// only when the filter has one.
    pub(crate) fn matches(&self, line: &str) -> bool {
        if self.is_empty() {
            return true;
        }
        let folded = is_smart(&self.text).then(|| line.to_lowercase());
        let line = folded.as_deref().unwrap_or(line);
        if glob::is_pattern(&self.text) { glob::matches(&self.text, line) } else { line.contains(&self.text) }
    }
}

fn is_smart(text: &str) -> bool {
    !text.chars().any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(filter: &str, line: &str) -> bool {
        Filter::new(filter.into()).matches(line)
    }

    #[test]
    fn small_letters_match_both_and_capitals_themselves() {
        assert!(matches("l2", "L2_MISSES"));
        assert!(matches("L2", "L2_MISSES"));
        assert!(!matches("Misses", "L2_MISSES"));
        assert!(matches("", "anything"));
        assert!(!matches("x", ""));
    }

    #[test]
    fn a_glob_matches_the_whole_line() {
        assert!(matches("l?_*", "L2_MISSES"));
        assert!(!matches("2_*", "L2_MISSES"));
        assert!(matches("a[", "xa[x"), "an unfinished glob is text");
    }

    proptest! {
        #[test]
        fn a_part_of_a_line_finds_it(line in "[a-z_]{1,20}", from in 0usize..20, to in 0usize..20) {
            let (from, to) = (from.min(line.len()), to.min(line.len()));
            prop_assert!(matches(&line[from.min(to)..from.max(to)], &line));
        }

        #[test]
        fn no_filter_stops_the_program(filter in any::<String>(), line in any::<String>()) {
            let _ = matches(&filter, &line);
        }
    }
}
