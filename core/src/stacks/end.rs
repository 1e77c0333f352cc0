//! Tells by the name of a stack's outermost frame whether the stack begins there.

/// The functions that call all others of a thread, as libraries, languages and the kernel name them.
const BEGINNINGS: [&str; 29] = [
    "_start",
    "_start_c",
    "_rt0_amd64",
    "_rt0_arm64",
    "_dl_start",
    "_dl_start_user",
    "main",
    "(below main)",
    "__libc_start_call_main",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_main_alias_1",
    "generic_start_main",
    "libc_start_main_stage2",
    "start_thread",
    "thread_start",
    "__start_context",
    "clone",
    "__clone",
    "__clone_internal",
    "clone3",
    "__clone3",
    "_pthread_start",
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.mstart",
    "runtime.mstart.abi0",
    "runtime.rt0_go",
    "runtime.rt0_go.abi0",
];

/// Where a stack ends, by its outermost frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StackEnd {
    Beginning,
    Cut,
    #[default]
    Unknown,
}

impl StackEnd {
    /// Of an outermost frame by its name, its module, and whether it is in the kernel.
    pub(super) fn of(name: &str, module: &str, is_kernel: bool) -> Self {
        // What perf and the linker write behind a name.
        let plain = name.split(['@', '(']).next().unwrap_or_default();
        let name = if plain.is_empty() { name } else { plain };
        if name == super::CUT {
            return Self::Cut;
        }
        if is_kernel || BEGINNINGS.contains(&name) {
            Self::Beginning
        } else if name == "[unknown]" && matches!(module, "" | "[unknown]") {
            // No code lies there: something else stood where the frame pointer was believed to lead.
            Self::Cut
        } else if name.starts_with('[') || name.contains("+0x") || name.starts_with("0x") {
            Self::Unknown
        } else {
            Self::Cut
        }
    }

    /// The same once it is known whether `main` was called: who calls it begins the program, though the library may
    /// tell no names.
    pub(super) fn with_main(self, is_main: bool) -> Self {
        if self == Self::Unknown && is_main { Self::Beginning } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_where_stacks_begin() {
        let of = |name| StackEnd::of(name, "/bin/p", false);
        assert!(
            ["_start", "main@plt", "clone3", "__start_context"].map(of).iter().all(|end| *end == StackEnd::Beginning)
        );
        assert_eq!((of("f"), of("[unknown]"), of("p+0x10")), (StackEnd::Cut, StackEnd::Unknown, StackEnd::Unknown));
        assert_eq!(StackEnd::of("[unknown]", "", false), StackEnd::Cut);
        assert_eq!(StackEnd::of("[cut]", "", false).with_main(true), StackEnd::Cut);
        assert_eq!(StackEnd::of("kthread", "[kernel]", true), StackEnd::Beginning);
        assert_eq!(StackEnd::Unknown.with_main(true), StackEnd::Beginning);
        assert_eq!(StackEnd::Unknown.with_main(false), StackEnd::Unknown);
        assert_eq!(StackEnd::Cut.with_main(true), StackEnd::Cut);
    }
}
