//! Shortens names of functions: without the arguments of templates, generics and functions.

use std::borrow::Cow;

/// Types within types are shortened so deep; what is deeper is whole.
const DEEPEST: usize = 8;

/// A function's name without what stands between brackets: `std::vector<…>::resize(…)`. What names the function itself
/// stays: the type and trait of `<Vec<…> as Iterator>::next`, the operator of `operator<<`, `(anonymous namespace)` and
/// the receiver of Go's `(*T).f`. A name whose brackets don't match stays as it is.
pub fn short_name(name: &str) -> Cow<'_, str> {
    if !name.contains(['<', '(']) {
        return Cow::Borrowed(name);
    }
    shorten(name, DEEPEST).map_or(Cow::Borrowed(name), Cow::Owned)
}

/// `None` where brackets don't match.
fn shorten(name: &str, deep: usize) -> Option<String> {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(['<', '(', ')', '>']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(symbol) = operator(rest).filter(|_| text.ends_with("operator")) {
            text.push_str(&rest[..symbol]);
            rest = &rest[symbol..];
            continue;
        }
        if text.ends_with('-') && rest.starts_with('>') {
            text.push('>');
            rest = &rest[1..];
            continue;
        }
        let end = matching(rest)?;
        let (inner, bracket) = (&rest[1..end], &rest[..1]);
        text.push_str(bracket);
        if is_part_of_the_name(&text, inner, &rest[end + 1..]) {
            text.push_str(&if deep > 0 { shorten(inner, deep - 1)? } else { inner.to_owned() });
        } else if !inner.is_empty() {
            text.push('…');
        }
        text.push_str(&rest[end..=end]);
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    Some(text)
}

/// Whether what is in brackets names the function: `before` ends with the opening one.
fn is_part_of_the_name(before: &str, inner: &str, after: &str) -> bool {
    let outside = &before[..before.len() - 1];
    if before.ends_with('(') {
        return inner == "anonymous namespace"
            || (outside.ends_with('.') && inner.starts_with('*') && after.starts_with('.'));
    }
    // The type that a function of Rust belongs to.
    let begins = outside.is_empty() || outside.ends_with(['<', '(', ' ', '&', '*', ',']);
    (begins && after.starts_with("::")) || inner.starts_with("impl ")
}

/// The bytes of the operator that a name goes on with, if it does.
fn operator(rest: &str) -> Option<usize> {
    if rest.starts_with("()") {
        return Some(2);
    }
    let symbols = rest.bytes().take_while(|byte| b"<>=".contains(byte)).count();
    // None is longer than `operator<=>`.
    (symbols > 0).then_some(symbols.min(3))
}

/// Where the bracket closes with which a text begins.
fn matching(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' => open.push(byte),
            b'>' if before == b'-' => {}
            b'>' | b')' => {
                let opened = open.pop()?;
                if (opened == b'<') != (byte == b'>') {
                    return None;
                }
                if open.is_empty() {
                    return Some(at);
                }
            }
            _ => {}
        }
        before = byte;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_go_and_names_stay() {
        for (name, short) in [
            ("main", "main"),
            ("f()", "f()"),
            ("std::vector<double, std::allocator<double> >::resize(unsigned long)", "std::vector<…>::resize(…)"),
            ("alloc::vec::Vec<T,A>::push", "alloc::vec::Vec<…>::push"),
            ("core::slice::sort::<u8>", "core::slice::sort::<…>"),
            (
                "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend",
                "<alloc::vec::Vec<…> as core::iter::Extend<…>>::extend",
            ),
            (
                "a::impls::<impl core::ops::FnMut<A> for &F>::call_mut",
                "a::impls::<impl core::ops::FnMut<…> for &F>::call_mut",
            ),
            ("f<g()::{lambda(int)#1}>(int) const", "f<…>(…) const"),
            ("(anonymous namespace)::run(int)", "(anonymous namespace)::run(…)"),
            ("std::ostream& operator<< <char>(std::ostream&, char)", "std::ostream& operator<< <…>(…)"),
            ("A::operator()(int)", "A::operator()(…)"),
            ("A::operator->()", "A::operator->()"),
            ("A::operator<(A const&)", "A::operator<(…)"),
            ("main.(*Tree).Walk", "main.(*Tree).Walk"),
            ("map<fn(u8) -> u8>::next", "map<…>::next"),
            ("resize(int) [clone .cold]", "resize(…) [clone .cold]"),
        ] {
            assert_eq!(short_name(name), short, "{name}");
        }
    }

    #[test]
    fn what_does_not_match_stays_whole() {
        for name in ["a<b", "a>b", "f(", "f)", "f(<)>", "<<<<", "a<(b>)"] {
            assert_eq!(short_name(name), name);
        }
        let deep = "<".repeat(100_000) + &">::a".repeat(100_000);
        assert!(short_name(&deep).len() <= deep.len() + 3);
    }

    proptest! {
        #[test]
        fn no_name_stops_it_or_gets_longer(name in "[a-z:<>() .*&,-]{0,40}|\\PC{0,20}") {
            let short = short_name(&name);
            prop_assert!(short.chars().count() <= name.chars().count());
            prop_assert_eq!(short_name(&short).chars().count(), short.chars().count());
        }
    }
}
