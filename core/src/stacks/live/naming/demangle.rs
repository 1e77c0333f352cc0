//! Turns mangled names of C++ and Rust into those that people write.

use std::borrow::Cow;
use std::fmt;

use cpp_demangle::{DemangleOptions, Symbol};

/// A name is no longer than this, in bytes: substitutions can make a short mangled name as long as memory.
const LONGEST: usize = 64 << 10;

/// The name as people write it; a name that isn't mangled as it is. A part that the compiler set apart because it
/// rarely runs (`f.cold`) belongs to its function.
pub(super) fn demangle(name: &str) -> Cow<'_, str> {
    let whole = name.strip_suffix(".cold").unwrap_or(name);
    plain(whole).map(Cow::Owned).unwrap_or(Cow::Borrowed(whole))
}

/// Whether a name tells its scopes itself.
pub(super) fn is_mangled(name: &str) -> bool {
    ["_Z", "__Z", "_R"].iter().any(|begin| name.starts_with(begin))
}

/// Whether a name is mangled as C++ does it, and not as older compilers of Rust do, which put a hash at its end: `17h`,
/// 16 digits, `E`.
pub(super) fn is_cpp(name: &[u8]) -> bool {
    // Behind a dot stands what compilers and linkers add.
    let whole = name.split(|&byte| byte == b'.').next().unwrap_or_default();
    let has_hash = whole.last_chunk::<20>().is_some_and(|end| {
        end.starts_with(b"17h") && end.ends_with(b"E") && end[3..19].iter().all(u8::is_ascii_hexdigit)
    });
    name.starts_with(b"_Z") && !has_hash
}

fn plain(name: &str) -> Option<String> {
    if !is_mangled(name) {
        return None;
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return bounded(|out| fmt::write(out, format_args!("{rust:#}")));
    }
    cpp(name).or_else(|| {
        // What compilers and linkers write behind a name that they copied: `.constprop.0`, `.llvm.123`.
        let (name, copy) = name.split_once('.')?;
        Some(format!("{} [clone .{copy}]", cpp(name)?))
    })
}

fn cpp(name: &str) -> Option<String> {
    let symbol = Symbol::new(name).ok()?;
    bounded(|out| symbol.structured_demangle(out, &DemangleOptions::default()))
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut out = Bounded(String::new());
    write(&mut out).ok().map(|()| out.0)
}

/// A text that doesn't grow without end.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_are_told_from_those_of_rust() {
        let names: [&[u8]; 5] = [
            b"_ZN3foo3barEv",
            b"_ZN4core3fmt5write17h0123456789abcdefE",
            b"_ZN1f17h0123456789abcdefE.llvm.7",
            b"main",
            b"_ZL",
        ];
        assert_eq!(names.map(is_cpp), [true, false, false, false, true]);
    }

    #[test]
    fn nothing_stays_mangled() {
        for (mangled, name) in [
            ("_Z4bothl", "both(long)"),
            ("_Z4bothl.cold", "both(long)"),
            ("_ZZ4bothlENKUllE_clEl", "both(long)::{lambda(long)#1}::operator()(long) const"),
            ("_ZN12_GLOBAL__N_14Anon5twistEl", "(anonymous namespace)::Anon::twist(long)"),
            ("_ZN3foo3barEv.constprop.0", "foo::bar() [clone .constprop.0]"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("main", "main"),
            ("read.cold", "read"),
            ("_Zz", "_Zz"),
        ] {
            assert_eq!(demangle(mangled), name, "{mangled}");
        }
    }
}
