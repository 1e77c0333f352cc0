//! Parses the text of an `-e` option into a tree; no machine is asked.
//!
//! The grammar is that of perf 6.12, with libpfm's names let through:
//!
//! ```text
//! list      = item { "," item }
//! item      = [ name ] "{" event { "," event } "}" [ ":" letters ] | event
//! event     = head [ "/" [ term { "," term } ] "/" [ [ ":" ] letters ] ]
//! head      = "mem:" number [ "/" number ] [ ":" access ] [ ":" letters ]
//!           | number ":" number [ ":" letters ]
//!           | "r" [ "0x" ] hex [ ":" letters ]
//!           | ( "uprobe:" | "uretprobe:" ) path ":" place [ ":" letters ]
//!           | ( "kprobe:" | "kretprobe:" ) place [ ":" letters ]
//!           | name                            (cycles:u  sched:sched_switch:k  skl::L1D:REPLACEMENT)
//! path      = "'" quoted "'" | text without , : { } and white space
//! place     = function [ "+" number ] | "0x" hex
//! term      = key [ "=" ( number | text | "'" quoted "'" ) ]
//! ```
//!
//! Where a name ends and its modifiers begin (`a:b`) only the machine knows, so a name keeps its
//! colons here. Braces don't nest, so nothing recurses and a hostile text costs one pass.

use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, multispace0, satisfy};
use nom::combinator::{all_consuming, cut, map, not, opt, peek, recognize, verify};
use nom::error::{ContextError, ErrorKind, ParseError, context};
use nom::multi::separated_list1;
use nom::sequence::{delimited, preceded, terminated};
use nom::{Err, IResult};

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 1 << 20;

/// What one `-e` option asks for, in the order written.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// An event outside of braces.
    Single(Spec<'a>),
    /// Events in braces.
    Group {
        /// The name in front of the braces.
        name: Option<&'a str>,
        /// The members; never empty.
        events: Vec<Spec<'a>>,
        /// The modifier letters behind the braces, `""` when there are none.
        modifiers: &'a str,
    },
}

/// One event as it was written; all text is borrowed from the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec<'a> {
    /// The whole text of the event.
    pub text: &'a str,
    /// What stands in front of the slash.
    pub head: Head<'a>,
    /// What stands between the slashes; `None` without slashes.
    pub terms: Option<Vec<Term<'a>>>,
    /// The modifier letters of a head that is no [`Head::Name`], and those behind the last slash.
    pub modifiers: &'a str,
}

/// What stands in front of the slash.
#[derive(Clone, Debug, PartialEq)]
pub enum Head<'a> {
    /// A name with its colons: symbol, tracepoint, PMU, libpfm event, and perhaps modifiers.
    Name(&'a str),
    /// A PMU's number and a code: `type:config`.
    Numeric {
        /// `perf_event_attr.type`.
        pmu_type: u64,
        /// `perf_event_attr.config`.
        config: u64,
    },
    /// A raw code: `rNNN`.
    Raw(u64),
    /// `mem:address/length:access`.
    Memory {
        /// The address of the breakpoint.
        address: u64,
        /// How many bytes it covers; `None` leaves it to the access.
        length: Option<u64>,
        /// The accesses that count, out of `rwx`; `""` stands for `rw`.
        access: &'a str,
    },
    /// `uprobe:path:place`, `kprobe:place`.
    Probe {
        /// The program or library; `None` is the kernel.
        path: Option<&'a str>,
        /// The place of the probe.
        place: ProbePlace<'a>,
        /// Whether returns from there are counted (`uretprobe`, `kretprobe`), and not calls.
        returns: bool,
    },
}

/// The place of a probe.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbePlace<'a> {
    /// At an offset behind the beginning of a function.
    Function {
        /// The function's name, as the linker knows it.
        name: &'a str,
        /// The offset in bytes.
        offset: u64,
    },
    /// At an address, as `nm` and `objdump` show it.
    Address(u64),
}

/// One term between slashes: `event=0x3c`, `edge`, `name='a b'`.
#[derive(Clone, Debug, PartialEq)]
pub struct Term<'a> {
    /// Key of the term.
    pub key: &'a str,
    /// Value of the term; `None` where only the key was written.
    pub value: Option<TermValue<'a>>,
}

/// The value of a term.
#[derive(Clone, Debug, PartialEq)]
pub enum TermValue<'a> {
    /// A decimal or hexadecimal number.
    Number(u64),
    /// Text, without its quotes.
    Text(&'a str),
}

/// Where the text can't be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The byte of the text at which reading stopped.
    pub at: usize,
    /// What the grammar allows there.
    pub expected: &'static str,
}

/// Reads the text of an `-e` option.
///
/// # Errors
/// Returns the first place that can't be understood, and what was expected there.
pub fn parse(text: &str) -> Result<Vec<Item<'_>>, SyntaxError> {
    if text.len() > MAX_TEXT {
        return Err(SyntaxError { at: MAX_TEXT, expected: "the end of a list shorter than 1 MiB" });
    }
    let list = separated_list1(spaced(char(',')), context("an event", cut_if_comma(item)));
    let end = context("',' or the end of the list", nom::combinator::eof);
    match all_consuming(terminated(delimited(multispace0, list, multispace0), end)).parse(text) {
        Ok((_, items)) => Ok(items),
        Err(error) => Err(located(text, error)),
    }
}

/// Reads terms alone, as sysfs has them in a PMU's `events/` files: `event=0x3c,umask=0x01`.
///
/// # Errors
/// Returns the first place that can't be understood, and what was expected there.
pub fn parse_terms(text: &str) -> Result<Vec<Term<'_>>, SyntaxError> {
    match all_consuming(delimited(multispace0, term_list, multispace0)).parse(text) {
        Ok((_, terms)) => Ok(terms),
        Err(error) => Err(located(text, error)),
    }
}

/// The furthest place that the parser reached, and what it expected there.
#[derive(Debug)]
struct ExpectedSyntax<'a> {
    rest: &'a str,
    what: &'static str,
}

const NOTHING_SAID: &str = "something else";

impl<'a> ParseError<&'a str> for ExpectedSyntax<'a> {
    fn from_error_kind(rest: &'a str, _: ErrorKind) -> Self {
        Self { rest, what: NOTHING_SAID }
    }

    fn append(_: &'a str, _: ErrorKind, other: Self) -> Self {
        other
    }

    fn or(self, other: Self) -> Self {
        if other.rest.len() < self.rest.len() { other } else { self }
    }
}

impl<'a> ContextError<&'a str> for ExpectedSyntax<'a> {
    fn add_context(rest: &'a str, what: &'static str, other: Self) -> Self {
        if other.rest.len() == rest.len() { Self { rest, what } } else { other }
    }
}

fn located(text: &str, error: Err<ExpectedSyntax<'_>>) -> SyntaxError {
    match error {
        Err::Error(e) | Err::Failure(e) => {
            let expected = if e.what == NOTHING_SAID { "',' or the end of the list" } else { e.what };
            SyntaxError { at: text.len().saturating_sub(e.rest.len()), expected }
        }
        Err::Incomplete(_) => SyntaxError { at: text.len(), expected: "an event" },
    }
}

type Read<'a, T> = IResult<&'a str, T, ExpectedSyntax<'a>>;

/// `parser`, with a failure made final unless it stands at the very beginning of the text.
fn cut_if_comma<'a, T>(
    mut parser: impl Parser<&'a str, Output = T, Error = ExpectedSyntax<'a>>,
) -> impl Parser<&'a str, Output = T, Error = ExpectedSyntax<'a>> {
    move |text: &'a str| {
        parser.parse(text).map_err(|error| match error {
            Err::Error(e) => Err::Failure(e),
            other => other,
        })
    }
}

fn spaced<'a, T>(
    parser: impl Parser<&'a str, Output = T, Error = ExpectedSyntax<'a>>,
) -> impl Parser<&'a str, Output = T, Error = ExpectedSyntax<'a>> {
    delimited(multispace0, parser, multispace0)
}

fn item(text: &str) -> Read<'_, Item<'_>> {
    alt((group, map(spec, Item::Single))).parse(text)
}

fn group(text: &str) -> Read<'_, Item<'_>> {
    let (rest, name) = opt(name).parse(text)?;
    let (rest, _) = spaced(char('{')).parse(rest)?;
    let members = separated_list1(spaced(char(',')), context("an event", cut_if_comma(spec)));
    let close = context("',' or '}'", preceded(multispace0, char('}')));
    let (rest, events) = cut(terminated(members, close)).parse(rest)?;
    let (rest, modifiers) = modifiers_after_colon(rest)?;
    Ok((rest, Item::Group { name, events, modifiers }))
}

fn spec(text: &str) -> Read<'_, Spec<'_>> {
    let (rest, (head, own)) = context("an event", head).parse(text)?;
    let (rest, terms) = opt(terms_in_slashes).parse(rest)?;
    let (rest, behind) = match terms {
        Some(_) => alt((modifiers_after_colon1, letters)).parse(rest)?,
        None => (rest, own),
    };
    let modifiers = if behind.is_empty() { own } else { behind };
    let written = &text[..text.len() - rest.len()];
    Ok((rest, Spec { text: written, head, terms, modifiers }))
}

fn head(text: &str) -> Read<'_, (Head<'_>, &str)> {
    alt((memory, numeric, raw, probe, map(name, |name| (Head::Name(name), "")))).parse(text)
}

fn memory(text: &str) -> Read<'_, (Head<'_>, &str)> {
    let (rest, _) = tag("mem:").parse(text)?;
    let (rest, address) = cut(context("the address of a breakpoint", number)).parse(rest)?;
    // A slash in front of a digit begins the length, any other begins the terms.
    let (rest, length) = opt(preceded(char('/'), number)).parse(rest)?;
    let rwx = take_while_m_n(1, 3, |c| matches!(c, 'r' | 'w' | 'x'));
    let (rest, access) = opt(preceded(char(':'), terminated(rwx, not(peek(word_char))))).parse(rest)?;
    let (rest, modifiers) = modifiers_after_colon(rest)?;
    Ok((rest, (Head::Memory { address, length, access: access.unwrap_or("") }, modifiers)))
}

fn probe(text: &str) -> Read<'_, (Head<'_>, &str)> {
    let kinds = (
        map(tag("uprobe:"), |_| (true, false)),
        map(tag("uretprobe:"), |_| (true, true)),
        map(tag("kprobe:"), |_| (false, false)),
        map(tag("kretprobe:"), |_| (false, true)),
    );
    let (rest, (in_file, returns)) = alt(kinds).parse(text)?;
    let (rest, path) = match in_file {
        true => map(cut(terminated(path, context("':' and a function", char(':')))), Some).parse(rest)?,
        false => (rest, None),
    };
    let (rest, place) = cut(context("a function or an address (0x...)", place)).parse(rest)?;
    let (rest, modifiers) = modifiers_after_colon(rest)?;
    Ok((rest, (Head::Probe { path, place, returns }, modifiers)))
}

fn path(text: &str) -> Read<'_, &str> {
    let bare = take_while1(|c: char| !c.is_whitespace() && !",:{}'".contains(c));
    context("the path of a program", alt((quoted, bare))).parse(text)
}

fn place(text: &str) -> Read<'_, ProbePlace<'_>> {
    let function = take_while1(|c: char| c.is_ascii_alphanumeric() || "_.$@".contains(c));
    let offset = map(opt(preceded(char('+'), cut(context("an offset in bytes", number)))), Option::unwrap_or_default);
    let function = map((function, offset), |(name, offset)| ProbePlace::Function { name, offset });
    alt((map(preceded(tag("0x"), hex), ProbePlace::Address), function)).parse(text)
}

fn numeric(text: &str) -> Read<'_, (Head<'_>, &str)> {
    let (rest, pmu_type) = number(text)?;
    let (rest, config) = preceded(char(':'), number).parse(rest)?;
    let (rest, modifiers) = modifiers_after_colon(rest)?;
    Ok((rest, (Head::Numeric { pmu_type, config }, modifiers)))
}

fn raw(text: &str) -> Read<'_, (Head<'_>, &str)> {
    let (rest, code) = code(text)?;
    let (rest, modifiers) = modifiers_after_colon(rest)?;
    Ok((rest, (Head::Raw(code), modifiers)))
}

/// `r1a`, `r0x1a`: a whole word, so that `ref-cycles` isn't one.
fn code(text: &str) -> Read<'_, u64> {
    let (rest, _) = char('r').parse(text)?;
    let (rest, _) = opt(tag("0x")).parse(rest)?;
    terminated(hex, not(peek(word_char))).parse(rest)
}

/// The code of a raw event, where the text is one.
pub(super) fn raw_code(text: &str) -> Option<u64> {
    all_consuming(code).parse(text).ok().map(|(_, code)| code)
}

fn terms_in_slashes(text: &str) -> Read<'_, Vec<Term<'_>>> {
    let (rest, _) = char('/').parse(text)?;
    let (rest, terms) = opt(spaced(term_list)).parse(rest)?;
    let (rest, _) = cut(context("',' or '/'", char('/'))).parse(rest)?;
    Ok((rest, terms.unwrap_or_default()))
}

fn term_list(text: &str) -> Read<'_, Vec<Term<'_>>> {
    separated_list1(spaced(char(',')), context("a term", term)).parse(text)
}

fn term(text: &str) -> Read<'_, Term<'_>> {
    let (rest, key) = alt((quoted, recognize((opt(char('@')), term_word)))).parse(text)?;
    let (rest, value) = opt(preceded(spaced(char('=')), cut(context("a value", value)))).parse(rest)?;
    Ok((rest, Term { key, value }))
}

fn value(text: &str) -> Read<'_, TermValue<'_>> {
    let whole_number = terminated(number, not(peek(satisfy(is_term_char))));
    alt((map(whole_number, TermValue::Number), map(quoted, TermValue::Text), map(term_word, TermValue::Text)))
        .parse(text)
}

fn quoted(text: &str) -> Read<'_, &str> {
    let body = take_while(|c: char| c != '\'');
    delimited(char('\''), body, cut(context("a closing quote", char('\'')))).parse(text)
}

fn is_term_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_*?.:[]!%+".contains(c)
}

fn term_word(text: &str) -> Read<'_, &str> {
    take_while1(is_term_char).parse(text)
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_*?.[]!".contains(c)
}

fn word_char(text: &str) -> Read<'_, char> {
    satisfy(is_word_char).parse(text)
}

/// A name with its colons. libpfm's own modifiers (`c=1`) and a trailing colon, which perf lets
/// pass, belong to it.
fn name(text: &str) -> Read<'_, &str> {
    verify(take_while1(|c| is_word_char(c) || c == ':' || c == '='), |name: &str| {
        name.starts_with(is_word_char) && !name.starts_with(['-', '.', '!'])
    })
    .parse(text)
}

fn modifiers_after_colon(text: &str) -> Read<'_, &str> {
    alt((modifiers_after_colon1, tag(""))).parse(text)
}

fn modifiers_after_colon1(text: &str) -> Read<'_, &str> {
    preceded(char(':'), letters).parse(text)
}

fn letters(text: &str) -> Read<'_, &str> {
    take_while(|c: char| c.is_ascii_alphabetic()).parse(text)
}

fn number(text: &str) -> Read<'_, u64> {
    alt((preceded(tag("0x"), hex), terminated(decimal, not(peek(char('x')))))).parse(text)
}

fn hex(text: &str) -> Read<'_, u64> {
    let (rest, digits) = take_while1(|c: char| c.is_ascii_hexdigit()).parse(text)?;
    in_64_bits(text, rest, u64::from_str_radix(digits, 16))
}

fn decimal(text: &str) -> Read<'_, u64> {
    let (rest, digits) = take_while1(|c: char| c.is_ascii_digit()).parse(text)?;
    in_64_bits(text, rest, digits.parse())
}

fn in_64_bits<'a, E>(text: &'a str, rest: &'a str, number: Result<u64, E>) -> Read<'a, u64> {
    match number {
        Ok(number) => Ok((rest, number)),
        Err(_) => Err(Err::Failure(ExpectedSyntax { rest: text, what: "a number of at most 64 bits" })),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str) -> Spec<'_> {
        match parse(text).unwrap().as_slice() {
            [Item::Single(spec)] => spec.clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn refused(text: &str) -> (usize, &'static str) {
        let error = parse(text).unwrap_err();
        (error.at, error.expected)
    }

    #[test]
    fn a_name_keeps_its_colons() {
        for name in
            ["cycles:u", "sched:sched_switch:k", "skl::L1D:REPLACEMENT:c=1", "9p:9p_client_req", "ref-cycles", "cs:"]
        {
            assert_eq!(one(name).head, Head::Name(name));
        }
    }

    #[test]
    fn numbers_and_codes() {
        assert_eq!(one("1:3").head, Head::Numeric { pmu_type: 1, config: 3 });
        assert_eq!(one("0x4:0x1a:k").head, Head::Numeric { pmu_type: 4, config: 0x1a });
        assert_eq!(one("0x4:0x1a:k").modifiers, "k");
        assert_eq!(one("r1a:kp").head, Head::Raw(0x1a));
        assert_eq!(one("r0x1A").head, Head::Raw(0x1a));
        assert_eq!(one("rffffffffffffffff").head, Head::Raw(u64::MAX));
        assert_eq!(refused("r10000000000000000"), (1, "a number of at most 64 bits"));
        assert_eq!(refused("1:18446744073709551616"), (2, "a number of at most 64 bits"));
    }

    #[test]
    fn a_breakpoint_has_length_access_and_modifiers() {
        let memory = |address, length, access| Head::Memory { address, length, access };
        assert_eq!(one("mem:0").head, memory(0, None, ""));
        assert_eq!(one("mem:0x10/4:rw:u").head, memory(16, Some(4), "rw"));
        assert_eq!(one("mem:0x10/4:rw:u").modifiers, "u");
        assert_eq!(one("mem:0:u").head, memory(0, None, ""));
        assert_eq!(one("mem:0:u").modifiers, "u");
        assert_eq!(one("mem:0/1/name=b/k").head, memory(0, Some(1), ""));
        assert_eq!(one("mem:0/name=b/k").modifiers, "k");
        assert_eq!(refused("mem:x"), (4, "the address of a breakpoint"));
    }

    #[test]
    fn a_probe_has_a_path_a_place_and_modifiers() {
        let probe = |path, place, returns| Head::Probe { path, place, returns };
        let function = |name, offset| ProbePlace::Function { name, offset };
        assert_eq!(one("uprobe:./a-b/prog.1:main").head, probe(Some("./a-b/prog.1"), function("main", 0), false));
        assert_eq!(one("uretprobe:/p:f+0x10:u").head, probe(Some("/p"), function("f", 16), true));
        assert_eq!(one("uretprobe:/p:f+0x10:u").modifiers, "u");
        assert_eq!(
            one("uprobe:'a b,c':_ZN3fooEv.cold").head,
            probe(Some("a b,c"), function("_ZN3fooEv.cold", 0), false)
        );
        assert_eq!(one("uprobe:p:0x1139").head, probe(Some("p"), ProbePlace::Address(0x1139), false));
        assert_eq!(one("kprobe:do_sys_open+4:k").head, probe(None, function("do_sys_open", 4), false));
        assert_eq!(one("kretprobe:f").head, probe(None, function("f", 0), true));
        assert_eq!(refused("uprobe:./prog"), (13, "':' and a function"));
        assert_eq!(refused("uprobe:./prog:"), (14, "a function or an address (0x...)"));
        assert_eq!(refused("uprobe:,cs"), (7, "the path of a program"));
        assert_eq!(refused("kprobe:f+x"), (9, "an offset in bytes"));
        assert_eq!(parse("{uprobe:p:f,cs}:u").unwrap().len(), 1);
    }

    #[test]
    fn terms_have_numbers_texts_and_quotes() {
        let spec = one("cpu/event=0x3c,edge,name='a:b=c,d',cmask=1,@sink/uk");
        let value = |key, value| Term { key, value };
        assert_eq!(spec.head, Head::Name("cpu"));
        assert_eq!(
            spec.terms.unwrap(),
            [
                value("event", Some(TermValue::Number(0x3c))),
                value("edge", None),
                value("name", Some(TermValue::Text("a:b=c,d"))),
                value("cmask", Some(TermValue::Number(1))),
                value("@sink", None),
            ]
        );
        assert_eq!(spec.modifiers, "uk");
        assert_eq!(one("intel_pt//u").terms, Some(vec![]));
        assert_eq!(one("cycles/name=1abc/").terms.unwrap()[0].value, Some(TermValue::Text("1abc")));
        assert_eq!(one("r1a/name=x/:k").modifiers, "k");
    }

    #[test]
    fn groups_have_names_members_and_modifiers() {
        let items = parse(" g1{a:k , b/c=1/u}:Su, {d} ,e").unwrap();
        let [
            Item::Group { name: Some("g1"), events, modifiers: "Su" },
            Item::Group { name: None, .. },
            Item::Single(e),
        ] = items.as_slice()
        else {
            panic!("{items:?}");
        };
        assert_eq!(events.iter().map(|event| event.text).collect::<Vec<_>>(), ["a:k", "b/c=1/u"]);
        assert_eq!(e.text, "e");
    }

    #[test]
    fn errors_say_where_and_what() {
        assert_eq!(refused(""), (0, "an event"));
        assert_eq!(refused("a,,b"), (2, "an event"));
        assert_eq!(refused("a,"), (2, "an event"));
        assert_eq!(refused("{a,b"), (4, "',' or '}'"));
        assert_eq!(refused("{}"), (1, "an event"));
        assert_eq!(refused("{a,{b}}"), (3, "an event"));
        assert_eq!(refused("cpu/event=/"), (10, "a value"));
        assert_eq!(refused("cpu/event=1"), (11, "',' or '/'"));
        assert_eq!(refused("cpu/name='a/"), (12, "a closing quote"));
        assert_eq!(refused("a}"), (1, "',' or the end of the list"));
        assert_eq!(refused("a b"), (2, "',' or the end of the list"));
    }

    #[test]
    fn hostile_texts_cost_one_pass() {
        for text in ["{", "{a,", "a/", "a/b=", "'", ":", ",", "mem:", "a{", "/", "a,"] {
            assert!(parse(&text.repeat(100_000)).is_err(), "{text}");
        }
        assert_eq!(one(&"r:".repeat(100_000)).text.len(), 200_000);
        assert_eq!(parse(&"a,".repeat(MAX_TEXT)).unwrap_err().at, MAX_TEXT);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,60}") {
            if let Err(error) = parse(&text) {
                prop_assert!(error.at <= text.len());
            }
        }

        #[test]
        fn any_near_miss_is_read(text in "[a-cr0-9x:/=,{} 'um@*-]{0,40}") {
            if let Ok(items) = parse(&text) {
                prop_assert!(!items.is_empty());
            }
        }

        #[test]
        fn what_is_written_comes_back(names in proptest::collection::vec("[a-q][a-z_0-9]{0,8}(:[ukp]{1,3})?", 1..6)) {
            let text = names.join(",");
            let items = parse(&text).unwrap();
            let back: Vec<&str> = items.iter().map(|item| match item {
                Item::Single(spec) => spec.text,
                Item::Group { .. } => "",
            }).collect();
            prop_assert_eq!(back, names);
        }
    }
}
