//! Says how much of a stack the kernel copies with a sample.

/// How much of a stack is copied with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) enum CopySize {
    /// Nothing: the kernel follows frame pointers.
    None,
    /// What finds the callers of functions without a frame pointer that others with one called.
    Tiny,
    Small,
    Large,
}

impl CopySize {
    /// All of them; a check begins with the first.
    pub(in crate::stacks::live) const ALL: [Self; 4] = [Self::Small, Self::None, Self::Tiny, Self::Large];

    /// The size in bytes.
    pub(in crate::stacks::live) fn bytes(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Tiny => 512,
            Self::Small => 8192,
            Self::Large => 32_768,
        }
    }
}
