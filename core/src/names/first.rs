//! Names the first of many.

use std::borrow::Borrow;

/// The first of some names, as they are, and how many more there are: `a, b and 3 more`.
pub fn first_of<S: Borrow<str>>(names: impl ExactSizeIterator<Item = S>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let first = names.take(most).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_are_named_are_counted() {
        let of = |names: &[&str]| first_of(names.iter().copied(), 2);
        assert_eq!([of(&[]), of(&["a"]), of(&["a", "b"])], ["", "a", "a, b"]);
        assert_eq!(of(&["a", "b", "c", "d", "e"]), "a, b and 3 more");
    }
}
