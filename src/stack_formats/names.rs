//! Splits a symbol and its module, as profilers print them, into the names of a frame.

use std::borrow::Cow;

use crate::profile::Frame;

/// How frames are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// The symbol as printed; of an unknown one `[module]`.
    #[default]
    Full,
    /// Names by symbols alone, whatever module holds them: all unknown frames are one.
    Symbols,
    /// As inferno-collapse-perf names them: without lists of arguments; of an unknown symbol `[module]`; `;` is `:`.
    Short,
    /// As `Short`, and the kernel's frames end in `_[k]`.
    ShortKernel,
}

/// What perf prints where it knows no symbol or no module.
pub(super) const UNKNOWN: &str = "[unknown]";

impl Names {
    /// A frame for a symbol, whose offset is cut off already.
    pub(super) fn frame<'a>(self, symbol: &'a str, module: &'a str, name: &'a mut String) -> Frame<'a> {
        if self == Self::Symbols {
            return Frame::function(symbol);
        }
        let is_unknown = symbol == UNKNOWN || symbol.is_empty();
        *name = match (is_unknown, module) {
            (true, UNKNOWN | "") => UNKNOWN.into(),
            (true, _) => format!("[{}]", module.rsplit('/').next().unwrap_or_default()),
            (false, _) if self == Self::Full => symbol.into(),
            (false, _) => short(&rust(symbol)),
        };
        let module = if module == UNKNOWN || module == "inlined" { "" } else { module };
        // inferno takes all in brackets for the kernel, `[vdso]` too.
        let is_kernel = || module.starts_with('[') || Frame { module, ..Frame::default() }.is_kernel();
        if self == Self::ShortKernel && is_kernel() {
            name.push_str("_[k]");
        }
        // `(below main)` is a name, not a list of arguments.
        if name.is_empty() {
            name.push_str(symbol);
        }
        // Equal names are one frame, as their lines will be one.
        let module = if self == Self::Full { module } else { "" };
        Frame { name, module, ..Frame::default() }
    }

    /// A name in a process of Java, as inferno has it: without the `L` in front of the class, `Lorg/A;::call`. Full names keep it.
    pub(super) fn of_java(self, name: &str) -> &str {
        match (self, name.strip_prefix('L')) {
            (Self::Short | Self::ShortKernel, Some(rest)) if rest.contains('/') => rest,
            _ => name,
        }
    }
}

/// A symbol with its offset cut off: at the last `+0x` that only hexadecimal digits follow, as names of
/// operators hold plus signs too.
pub(super) fn without_offset(symbol: &str) -> &str {
    match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    }
}

/// A name without its list of arguments. Those within templates and lambdas stay, as do methods of Go,
/// `(*T).m`, and `(anonymous namespace)`.
fn short(symbol: &str) -> String {
    let mut depth = 0_i64;
    let mut before = ' ';
    let mut end = symbol.len();
    for (index, c) in symbol.char_indices() {
        match c {
            '(' if depth == 0 && before != '.' && !symbol[index..].starts_with("(anonymous namespace)") => {
                end = index;
                break;
            }
            '<' | '{' | '[' | '(' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    symbol[..end].replace(';', ":")
}

/// The signs that Rust's older mangling writes out.
const RUST_SIGNS: [(&str, &str); 8] =
    [("SP", "@"), ("BP", "*"), ("RF", "&"), ("LT", "<"), ("GT", ">"), ("LP", "("), ("RP", ")"), ("C", ",")];

/// A name of Rust that perf demangled by halves, `_$LT$T$GT$::f::h0123456789abcdef`, as it is written.
fn rust(symbol: &str) -> Cow<'_, str> {
    let Some(cut) = symbol.len().checked_sub(17) else { return Cow::Borrowed(symbol) };
    let is_hash = symbol.get(cut..).and_then(|end| end.strip_prefix('h'));
    if !is_hash.is_some_and(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Cow::Borrowed(symbol);
    }
    let name = symbol[..cut].strip_suffix("::").unwrap_or(&symbol[..cut]);
    let mut rest = if name.starts_with("_$") { &name[1..] } else { name };
    let mut out = String::with_capacity(rest.len());
    while let Some(c) = rest.chars().next() {
        let sign = rest.strip_prefix('$').and_then(|after| after.split_once('$'));
        if let Some((sign, after)) = sign.and_then(|(code, after)| Some((rust_sign(code)?, after))) {
            out.push_str(&sign);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            out.push_str("::");
            rest = after;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    Cow::Owned(out)
}

/// What a code between dollars stands for: a short word, or `u` and the number of a character.
fn rust_sign(code: &str) -> Option<String> {
    let known = RUST_SIGNS.iter().find(|(name, _)| *name == code).map(|(_, sign)| (*sign).to_owned());
    let number = || u32::from_str_radix(code.strip_prefix('u')?, 16).ok().and_then(char::from_u32);
    known.or_else(|| number().map(String::from))
}

/// The frames of a symbol of compiled Java, `a->b->c`, outermost first: b and c were inlined.
pub(super) fn inlined<'a>(symbol: &'a str, module: &str) -> impl Iterator<Item = Cow<'a, str>> {
    let is_java = module.ends_with(".map");
    let end = if is_java { symbol.find("->") } else { None };
    let (first, rest) = end.map_or((symbol, None), |end| (&symbol[..end], Some(&symbol[end + 2..])));
    let rest = rest.into_iter().flat_map(|rest| rest.split("->"));
    std::iter::once(Cow::Borrowed(first)).chain(rest.map(|name| Cow::Owned(format!("{name}_[i]"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_cut_at_the_last_plus() {
        for (symbol, name) in [
            ("main+0x1f", "main"),
            ("Big::operator++0x5d", "Big::operator+"),
            ("Big::operator+=+0x5", "Big::operator+="),
            ("Big::operator+", "Big::operator+"),
            ("Big::operator+(Big const&)+0x1d", "Big::operator+(Big const&)"),
            ("f+0xno", "f+0xno"),
        ] {
            assert_eq!(without_offset(symbol), name);
        }
    }

    #[test]
    fn all_in_brackets_is_marked_as_inferno_marks_it() {
        let of = |module| {
            let mut name = String::new();
            Names::ShortKernel.frame("f", module, &mut name).name.to_owned()
        };
        let names = ["[kernel.kallsyms]", "[vdso]", "/lib/ext4.ko", "[unknown]", "/bin/p"].map(of);
        assert_eq!(names, ["f_[k]", "f_[k]", "f_[k]", "f", "f"]);
    }

    #[test]
    fn arguments_are_cut_where_they_begin() {
        for (symbol, name) in [
            ("base(BasicType) const", "base"),
            ("geo::apply<long, main::{lambda(long)#1}>", "geo::apply<long, main::{lambda(long)#1}>"),
            ("std::function<void (int, int)>::operator()(int)", "std::function<void (int, int)>::operator"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("Lorg/A;::call", "Lorg/A:::call"),
            ("", ""),
        ] {
            assert_eq!(short(symbol), name);
        }
    }

    #[test]
    fn classes_of_java_have_no_letter_in_front() {
        for (name, short) in [("Lorg/A:::call", "org/A:::call"), ("List::add", "List::add"), ("a/L", "a/L"), ("L", "L")]
        {
            assert_eq!(
                [Names::Short, Names::ShortKernel, Names::Full].map(|names| names.of_java(name)),
                [short, short, name]
            );
        }
    }

    #[test]
    fn rust_is_demangled_to_the_end() {
        for (symbol, name) in [
            ("std::fs::File::open::hb90e1c1c787080f0", "std::fs::File::open"),
            ("_$LT$F$u20$as$u20$a..B$LT$A$GT$$GT$::call::h8612a2a83552fc2d", "<F as a::B<A>>::call"),
            ("a::_$u7b$$u7b$closure$u7d$$u7d$::h6e849b55a66fcd85", "a::_{{closure}}"),
            ("no_hash::h12", "no_hash::h12"),
        ] {
            assert_eq!(rust(symbol), name);
        }
    }
}
