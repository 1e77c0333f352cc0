//! Says what serialized text leaves out, because whoever reads it puts it in again.

/// Whether a value is the one that `#[serde(default)]` puts in.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
