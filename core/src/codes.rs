//! Lists the codes of errors, and says how the text of an error with a code begins.

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

/// How the text of an error begins: `perfprop: E14`.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "perfprop: {}", self.name())
    }
}
