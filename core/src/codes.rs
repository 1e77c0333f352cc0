//! Lists the codes of errors, and prints errors with them.

use std::fmt;

macro_rules! codes {
    ($($code:ident: $what:literal),* $(,)?) => {
        /// A kind of error, which `perfprop check` explains by its code. Numbers stay what they were in earlier
        /// releases.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $(#[doc = $what] $code,)*
        }

        impl ErrorCode {
            /// All codes, in order.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// The code: `E14`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)*
                }
            }
        }
    };
}

codes! {
    E01: "This user may not count the events.",
    E02: "This machine doesn't count the events.",
    E03: "An event's name is wrong.",
    E04: "A group can't be counted together.",
    E05: "The counters need more files than this process may open.",
    E06: "A command can't be executed.",
    E07: "A relation file is wrong.",
    E09: "There is no terminal to draw on.",
    E10: "The terminal is too small.",
    E11: "The target isn't there.",
    E12: "The target is another user's.",
    E13: "A metric is unknown, or can't be measured here.",
    E14: "No call stacks can be sampled.",
    E15: "There is no valgrind.",
    E16: "The kernel's rotation interval can't be changed.",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error that may have a code.
pub trait Coded {
    /// The code.
    fn code(&self) -> Option<ErrorCode>;

    /// What is wrong, one by one, each with what helps in lines below.
    fn problems(&self) -> Vec<String>;

    /// The problems, each with the code in front of it.
    fn with_code(&self) -> Vec<String> {
        let begin = self.code().map_or_else(String::new, |code| format!("{code} "));
        self.problems().into_iter().map(|problem| format!("{begin}{problem}")).collect()
    }

    /// The error as it is printed: each problem behind the program's name and the code.
    fn printed(&self) -> String {
        named(self.with_code())
    }
}

/// Errors as they are printed: each behind the program's name.
pub fn named(problems: impl IntoIterator<Item = String>) -> String {
    problems.into_iter().map(|problem| format!("perfprop: {problem}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wrong(Option<ErrorCode>);

    impl Coded for Wrong {
        fn code(&self) -> Option<ErrorCode> {
            self.0
        }

        fn problems(&self) -> Vec<String> {
            vec!["no event a\n      did you mean b?".into(), "no event c".into()]
        }
    }

    #[test]
    fn each_problem_has_the_name_and_the_code() {
        let text = "perfprop: E03 no event a\n      did you mean b?\nperfprop: E03 no event c";
        assert_eq!(Wrong(Some(ErrorCode::E03)).printed(), text);
        assert_eq!(Wrong(None).printed(), text.replace("E03 ", ""));
    }
}
