//! Splits text into numbers, names and symbols with their places, by nom.

use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_while1};
use nom::character::complete::{anychar, char, multispace0, one_of, satisfy};
use nom::combinator::{fail, map, peek, recognize};
use nom::multi::{many0_count, many1_count};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser as _};

use super::tree::{Dialect, TextSpan, is_name_char, is_name_start};
use crate::names::is_hidden;

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// Infinite where it is too large.
    Number(f64),
    /// A name, backslashes included.
    Name(&'a str),
    /// What stands between the braces.
    Braced(&'a str),
    /// What stands behind a `#`.
    Literal(&'a str),
    /// An operator, a parenthesis, a comma or an equals sign.
    Symbol(&'a str),
    /// A character that nothing begins with.
    Unknown(char),
    End,
}

fn token(input: &str, dialect: Dialect) -> IResult<&str, Token<'_>> {
    let word = move |input| match dialect {
        Dialect::Vendor => vendor_word(input),
        Dialect::Cost => alt((map(number, Token::Number), map(identifier, Token::Name))).parse(input),
        Dialect::Pair | Dialect::Equation | Dialect::Metric => {
            alt((map(number, Token::Number), map(name, Token::Name))).parse(input)
        }
    };
    alt((
        word,
        map(delimited(char('{'), is_not("{}"), char('}')), Token::Braced),
        map(preceded(char('#'), literal), Token::Literal),
        map(symbol, Token::Symbol),
        map(anychar, Token::Unknown),
    ))
    .parse(input)
}

/// A number or a name, whichever is longer: `1e9` is a number, `2nd_try` a name.
fn vendor_word(input: &str) -> IResult<&str, Token<'_>> {
    let part = alt((satisfy(|c| is_name_char(c) || matches!(c, '?' | '@')), escape));
    let name: IResult<&str, &str> = recognize(many1_count(part)).parse(input);
    match (number(input), name) {
        (Ok((after, number)), Ok((rest, _))) if after.len() <= rest.len() => Ok((after, Token::Number(number))),
        (Ok((after, number)), Err(_)) => Ok((after, Token::Number(number))),
        (_, name) => name.map(|(rest, name)| (rest, Token::Name(name))),
    }
}

fn identifier(input: &str) -> IResult<&str, &str> {
    recognize((satisfy(is_name_start), many0_count(satisfy(|c| c.is_alphanumeric() || c == '_')))).parse(input)
}

fn literal(input: &str) -> IResult<&str, &str> {
    take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')).parse(input)
}

fn escape(input: &str) -> IResult<&str, char> {
    preceded(char('\\'), satisfy(|c| !c.is_whitespace() && !is_hidden(c))).parse(input)
}

fn blank(input: &str) -> IResult<&str, &str> {
    multispace0(input)
}

fn number(input: &str) -> IResult<&str, f64> {
    let end = number_end(input);
    match input[..end].parse() {
        Ok(number) => Ok((&input[end..], number)),
        Err(_) => fail().parse(input),
    }
}

/// Where the number without a sign ends that `text` begins with: at its beginning where there is none,
/// and before an `e` that no digits follow.
pub(crate) fn number_end(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    let fraction = if text[whole..].starts_with('.') { digits(whole + 1) + 1 } else { 0 };
    if whole == 0 && fraction < 2 {
        return 0;
    }
    let end = whole + fraction;
    let sign = |from: usize| usize::from(text[from..].starts_with(['+', '-']));
    if !text[end..].starts_with(['e', 'E']) {
        return end;
    }
    let exponent = end + 1 + sign(end + 1);
    let width = digits(exponent);
    if width > 0 { exponent + width } else { end }
}

fn name(input: &str) -> IResult<&str, &str> {
    fn inner(input: &str) -> IResult<&str, char> {
        alt((satisfy(is_name_char), escape)).parse(input)
    }
    let first = alt((satisfy(is_name_start), escape));
    let dash = terminated(char('-'), peek(inner));
    recognize((first, many0_count(alt((inner, dash))))).parse(input)
}

fn symbol(input: &str) -> IResult<&str, &str> {
    let comparison = alt((tag("<="), tag(">="), tag("=="), tag("!="), tag("<"), tag(">")));
    alt((comparison, recognize(one_of("+-*/%&^|(),=")))).parse(input)
}

/// The tokens of `text` with their places; the last one is `End`, right behind the one before.
pub(super) fn tokens(text: &str, dialect: Dialect) -> Vec<(Token<'_>, TextSpan)> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut end = 0;
    while let Ok((at, _)) = blank(rest)
        && let Ok((after, found)) = token(at, dialect)
    {
        let start = text.len() - at.len();
        end = text.len() - after.len();
        tokens.push((found, TextSpan { start, end }));
        rest = after;
    }
    tokens.push((Token::End, TextSpan { start: end, end }));
    tokens
}
