//! Finds the word nearest to a wrong one.

/// Longer words than this get no suggestions: they are no typing errors, and comparing costs
/// the product of the lengths.
const LONGEST: usize = 64;

/// Shorter ones are near to too many others, but for those with the same letters.
const SHORTEST: usize = 3;

/// How many suggestions are of use.
pub const MAX_SUGGESTIONS: usize = 4;

/// The words among `candidates` that `word` may have been meant to be, the nearest first, four at
/// most. Cases of letters count only among those that are as near without them.
///
/// A candidate is near when at most a third of the longer word's letters would have to change,
/// counted as Damerau-Levenshtein edits (insert, delete, replace, swap neighbours); more than one only of words that
/// begin alike.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if word.is_empty() || word.len() > LONGEST {
        return Vec::new();
    }
    let lower = word.to_lowercase();
    let exactly = |candidate: &str| strsim::damerau_levenshtein(word, candidate);
    let mut near: Vec<(usize, usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((distance(&lower, candidate)?, exactly(candidate), candidate)))
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(MAX_SUGGESTIONS);
    near.into_iter().map(|(.., candidate)| candidate).collect()
}

/// The edits between a word and a candidate, or `None` when they are too many.
fn distance(lower: &str, candidate: &str) -> Option<usize> {
    let most = lower.len().max(candidate.len()) / 3;
    if candidate.len() > LONGEST || lower.len().abs_diff(candidate.len()) > most.max(1) {
        return None;
    }
    let candidate = candidate.to_lowercase();
    let edits = strsim::damerau_levenshtein(lower, &candidate);
    let is_near = match edits {
        0 => true,
        1 => lower.len() >= SHORTEST || letters(lower) == letters(&candidate),
        _ => edits <= most && lower.chars().next() == candidate.chars().next(),
    };
    is_near.then_some(edits)
}

fn letters(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORDS: [&str; 5] = ["L1_MISSES", "L2_MISSES", "L1_HITS", "cycles", "instructions"];

    #[test]
    fn the_nearest_comes_first() {
        assert_eq!(nearest("L1_MISES", WORDS), ["L1_MISSES", "L2_MISSES"]);
        assert_eq!(nearest("cylces", WORDS), ["cycles"]);
        assert_eq!(nearest("cycels", ["CYCLES", "cycles"]), ["cycles", "CYCLES"]);
        assert_eq!(nearest("INSTRUCTION", WORDS), ["instructions"]);
    }

    #[test]
    fn nothing_is_near_to_nonsense() {
        assert!(nearest("", WORDS).is_empty());
        assert!(nearest("zzzzzzzz", WORDS).is_empty());
        assert!(nearest("nosuch", ["touch"]).is_empty() && nearest("gc", ["bc"]).is_empty());
        assert_eq!(nearest("gf", ["fg", "bg"]), ["fg"]);
        assert!(nearest(&"cycles".repeat(1000), WORDS).is_empty());
        assert!(nearest("cycles", []).is_empty());
    }

    proptest! {
        #[test]
        fn a_right_word_is_its_own_nearest(index in 0..WORDS.len()) {
            prop_assert_eq!(nearest(WORDS[index], WORDS)[0], WORDS[index]);
        }

        #[test]
        fn any_word_is_compared(word in ".{0,80}", other in ".{0,80}") {
            prop_assert!(nearest(&word, [other.as_str()]).len() <= 1);
        }
    }
}
