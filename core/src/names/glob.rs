//! Matches names against patterns with `*`, `?` and `[a-z]`.

/// Whether `text` has a character that makes it a pattern; a `[` alone doesn't.
pub fn is_pattern(text: &str) -> bool {
    let has_set = || text.split_once('[').is_some_and(|(_, rest)| rest.contains(']'));
    text.contains(['*', '?']) || has_set()
}

/// Whether `pattern` matches the whole of `name`. Takes time in proportion to the product of the
/// lengths at most; an open `[` stands for itself.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where to go on when a character doesn't match: the last star takes one more.
    let mut last_star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            last_star = Some((p, n));
            p += 1;
        } else if let Some(width) = step(&pattern[p..], name[n]) {
            p += width;
            n += 1;
        } else if let Some((star, from)) = last_star {
            last_star = Some((star, from + 1));
            p = star + 1;
            n = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// How many characters of the pattern take `c`, if they do.
fn step(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => match set_end(pattern) {
            Some(end) => in_set(&pattern[1..end], c).then_some(end + 1),
            None => (c == '[').then_some(1),
        },
        literal => (*literal == c).then_some(1),
    }
}

/// Where the set that begins the pattern ends. A `]` right at its beginning belongs to it.
fn set_end(pattern: &[char]) -> Option<usize> {
    let body = if pattern.get(1) == Some(&'!') { 2 } else { 1 };
    (body + 1..pattern.len()).find(|&index| pattern[index] == ']')
}

fn in_set(set: &[char], c: char) -> bool {
    let (negated, mut set) = match set {
        ['!', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    while let Some(&low) = set.first() {
        let (high, width) = match set {
            [_, '-', high, ..] => (*high, 3),
            _ => (low, 1),
        };
        found |= (low..=high).contains(&c);
        set = &set[width..];
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbbc"),
            ("a?c", "abc"),
            ("**a**", "bab"),
            ("uncore_imc*", "uncore_imc_0"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]]", "]"),
            ("a[b", "a[b"),
            ("*b*d", "abcbd"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("a", ""), ("a?c", "ac"), ("[a-c]", "d"), ("*b", "bc"), ("[!a]", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_stars_is_quick() {
        assert!(!matches(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!matches(&("*a".repeat(200) + "b"), &"a".repeat(2000)));
    }

    proptest! {
        #[test]
        fn never_panics(pattern in ".{0,40}", name in ".{0,40}") {
            matches(&pattern, &name);
        }

        #[test]
        fn a_plain_text_matches_itself_only(text in "[a-z_:]{0,20}", other in "[a-z_:]{0,20}") {
            prop_assert!(matches(&text, &text));
            prop_assert_eq!(matches(&text, &other), text == other);
        }
    }
}
