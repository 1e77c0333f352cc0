//! Reads what language runtimes call the code that they make: a function of a source file.
//!
//! ```text
//! CPython   py::Queue.get:/usr/lib/python3.12/queue.py     Queue.get  in  /usr/lib/python3.12/queue.py
//! V8        JS:*fib file:///srv/app.js:3:13                fib        in  /srv/app.js
//! V8        JS:~ /srv/app.js:4:83                          (anonymous app.js:4:83)
//! HotSpot   long Work.fib(int)                             as it is
//! ```
//!
//! V8 compiles a function several times, and marks how (`~`, `^`, `+`, `*`): all are one function.

/// A function of code that a process made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::stacks::live) struct MadeCode {
    pub(in crate::stacks::live) name: String,
    /// The source file.
    pub(in crate::stacks::live) file: Option<String>,
    /// The line of the place, where the runtime tells it.
    pub(in crate::stacks::live) line: Option<u32>,
}

impl MadeCode {
    /// Of a name in a perf map or in a jitdump.
    pub(super) fn named(name: &str) -> Self {
        let known = match name.split_once(':') {
            Some(("py", rest)) => rest.strip_prefix(':').and_then(python),
            Some(("JS" | "LazyCompile" | "Function" | "InterpretedFunction" | "Eval" | "Script", rest)) => {
                javascript(rest)
            }
            _ => None,
        };
        known.unwrap_or_else(|| Self { name: name.to_owned(), ..Self::default() })
    }
}

/// `Queue.get:/usr/lib/python3.12/queue.py`.
fn python(rest: &str) -> Option<MadeCode> {
    let (name, file) = rest.split_once(':')?;
    (!name.is_empty()).then(|| MadeCode { name: name.to_owned(), file: source(file), line: None })
}

/// `*fib file:///srv/app.js:3:13`; a function may have a blank in its name, and a path, too.
fn javascript(rest: &str) -> Option<MadeCode> {
    let rest = rest.trim_start_matches(['~', '^', '+', '*']);
    let begins = [" /", " file:", " node:"].iter().filter_map(|begin| rest.find(begin)).min();
    let (name, place) = rest.split_at(begins.or_else(|| rest.rfind(' '))?);
    let place = place.trim_start();
    let (file, at) = without_numbers(place);
    let file = file.strip_prefix("file://").unwrap_or(file);
    let short = file.rsplit('/').next().unwrap_or(file);
    let name = if name.is_empty() { format!("(anonymous {short}{at})") } else { name.to_owned() };
    Some(MadeCode { name, file: source(file), line: None })
}

fn source(file: &str) -> Option<String> {
    (!file.is_empty()).then(|| file.to_owned())
}

/// A place without the line and column behind it, and those.
fn without_numbers(place: &str) -> (&str, &str) {
    let mut end = place.len();
    for _ in 0..2 {
        match place[..end].rsplit_once(':') {
            Some((before, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                end = before.len();
            }
            _ => break,
        }
    }
    place.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_names_of_their_languages() {
        for (name, function, file) in [
            ("py::fib:/a b/c:d.py", "fib", Some("/a b/c:d.py")),
            ("py::Queue.get.<locals>.<lambda>:<string>", "Queue.get.<locals>.<lambda>", Some("<string>")),
            ("py::<module>:/m.py", "<module>", Some("/m.py")),
            ("JS:*fib /srv/app.js:3:13", "fib", Some("/srv/app.js")),
            ("JS:~fib file:///srv/a b.mjs:3:13", "fib", Some("/srv/a b.mjs")),
            ("LazyCompile:~get size node:internal/util:7:1", "get size", Some("node:internal/util")),
            ("JS:^ /srv/app.js:4:83", "(anonymous app.js:4:83)", Some("/srv/app.js")),
            ("Eval:~ evalmachine:1:1", "(anonymous evalmachine:1:1)", Some("evalmachine")),
            ("JS:*fib", "JS:*fib", None),
            ("py:fib", "py:fib", None),
            ("py::", "py::", None),
            ("py:::x", "py:::x", None),
            ("Builtin:ArrayMap", "Builtin:ArrayMap", None),
            ("long Work.fib(int)", "long Work.fib(int)", None),
            ("", "", None),
        ] {
            let expected = MadeCode { name: function.into(), file: file.map(Into::into), line: None };
            assert_eq!(MadeCode::named(name), expected, "{name}");
        }
    }
}
