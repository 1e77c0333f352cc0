//! Finds the names that typed text means.

use regex_lite::{Regex, RegexBuilder};

/// A regular expression that takes more than this means nothing.
const LARGEST: usize = 1 << 18;

/// A search for names. An empty one finds nothing.
#[derive(Clone, Debug, Default)]
pub(in crate::tui) struct Search {
    text: String,
    /// `None` where the text is no regular expression.
    expression: Option<Regex>,
}

impl Search {
    /// Capitals count only if the text has one.
    pub(in crate::tui) fn new(text: String) -> Self {
        let folds = !text.chars().any(char::is_uppercase);
        let build = |text: &str| RegexBuilder::new(text).case_insensitive(folds).size_limit(LARGEST).build().ok();
        let expression = build(&text).filter(|_| !text.is_empty());
        Self { text, expression }
    }

    pub(in crate::tui) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text is a regular expression; else it is looked for as it stands.
    pub(in crate::tui) fn is_expression(&self) -> bool {
        self.expression.is_some()
    }

    pub(in crate::tui) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a part of the name matches: the expression, or the text as it stands, because names of C++ are full
    /// of parentheses and stars.
    pub(super) fn matches(&self, name: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let is_plain = || match self.text.chars().any(char::is_uppercase) {
            true => name.contains(&self.text),
            false => name.to_lowercase().contains(&self.text),
        };
        self.expression.as_ref().is_some_and(|expression| expression.is_match(name)) || is_plain()
    }
}

/// The text that finds exactly this name.
pub(in crate::tui) fn exactly(name: &str) -> String {
    format!("^{}$", regex_lite::escape(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(text: &str, name: &str) -> bool {
        Search::new(text.into()).matches(name)
    }

    #[test]
    fn expressions_and_plain_text_find_names() {
        assert!(matches("^mid_[ab]$", "mid_a") && !matches("^mid_[ab]$", "mid_ab"));
        assert!(matches("LEAF", "LEAF_fp") && !matches("LEAF", "leaf_fp") && matches("leaf", "LEAF_fp"));
        assert!(matches("run(int*)", "void Solver::run(int*)"));
        assert!(matches("operator(", "operator()") && matches("[", "a[0]"), "no expressions, but text");
        assert!(!matches("", "anything"));
        assert!(matches("größe", "Größe_von"));
        assert!(matches(&exactly("f(int*) [.cold]"), "f(int*) [.cold]") && !matches(&exactly("f"), "ff"));
    }

    #[test]
    fn an_expression_that_explodes_is_text() {
        assert!(!matches("(a{1000}){1000}", "aaa"));
    }

    proptest! {
        #[test]
        fn no_text_stops_the_search(text in any::<String>(), name in any::<String>()) {
            let _ = matches(&text, &name);
        }

        #[test]
        fn a_name_is_found_by_itself(name in "[a-z_:<>()*&\\[\\]{}.+?|^$]{1,20}") {
            prop_assert!(matches(&name, &name) && matches(&exactly(&name), &name));
        }
    }
}
