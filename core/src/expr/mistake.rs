//! Says what is wrong where a text isn't an expression, and what to write instead.

use std::fmt;

use super::operations::function_names;
use super::parse::Parser;
use super::tokens::Token;
use super::tree::{Dialect, Fact, TextSpan, escaped_name};
use crate::names::{nearest, quoted, shown};

/// What is wrong with an expression. Its texts can be given to a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The bytes that are wrong.
    pub span: TextSpan,
    /// What was expected: `expected an event or '(' after '+'`.
    pub message: String,
    /// What is there instead: `second '+' here`.
    pub label: String,
    /// What to write instead, where that is known.
    pub help: Option<String>,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.label)
    }
}

impl std::error::Error for ParseError {}

/// Bytes of a help; a longer one repeats a name that nobody reads.
const LONGEST_HELP: usize = 1000;

impl ParseError {
    pub(super) fn new(span: TextSpan, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { span, message: message.into(), label: label.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into()).filter(|help| help.len() <= LONGEST_HELP);
        self
    }
}

impl<'a> Parser<'a> {
    /// What there is instead of what was `expected`.
    pub(super) fn expected(&self, expected: &str) -> ParseError {
        let span = self.span();
        let text = self.text.get(span.start..span.end).unwrap_or_default();
        let before = self.before();
        let label = match self.token() {
            Token::End if before.is_none() => "there is nothing here".to_owned(),
            Token::End => "it ends here".to_owned(),
            Token::Symbol(symbol) if before == Some(symbol) => format!("second {} here", quoted(symbol)),
            _ => format!("{} here", quoted(text)),
        };
        let after = before.map_or_else(String::new, |before| format!(" after {}", quoted(before)));
        ParseError::new(span, format!("expected {expected}{after}"), label)
    }

    pub(super) fn no_operand(&self) -> ParseError {
        match (self.token(), self.dialect) {
            (Token::Unknown(c), _) => self.unknown_character(c),
            (_, Dialect::Equation | Dialect::Metric | Dialect::Vendor) => self.expected("an event or '('"),
            (_, Dialect::Cost) => self.expected("a name, a number or '('"),
            (_, Dialect::Pair) => self.expected("{mean}, a number or '('"),
        }
    }

    /// After a whole expression comes something that can't go on with it.
    pub(super) fn no_operator(&self) -> ParseError {
        let text = |span: TextSpan| self.text.get(span.start..span.end).unwrap_or_default();
        match self.token() {
            Token::Unknown(c) => self.unknown_character(c),
            Token::Name(_) | Token::Braced(_) | Token::Number(_) | Token::Literal(_) | Token::Symbol("(") => {
                let error = self.expected("an operator");
                match (self.token(), self.before()) {
                    (Token::Symbol(_), _) | (_, None) => error,
                    (_, Some(before)) => {
                        let [before, after] = [before, text(self.span())].map(|text| shown(text).into_owned());
                        error.help(format!("a product is written {before} * {after}"))
                    }
                }
            }
            Token::Symbol("^") if self.dialect == Dialect::Cost => {
                self.unknown_character('^').help("a power is written pow(n, 2)")
            }
            Token::Symbol("^") => self.unknown_character('^').help("a square is written A * A"),
            Token::Symbol("=") => self.expected("an operator").help("two numbers are compared by '=='"),
            Token::Symbol(")") => ParseError::new(self.span(), "')' closes nothing", "no '(' belongs to this"),
            Token::Symbol(_) | Token::End => self.expected("an operator"),
        }
    }

    pub(super) fn no_equals_sign(&self) -> ParseError {
        let message = "an equation needs '=' between its sides";
        let comparison =
            |token| ["==", "<=", ">=", "<", ">", "!="].into_iter().find(|&name| token == Token::Symbol(name));
        match self.tokens.iter().find_map(|&(token, span)| Some((comparison(token)?, span))) {
            Some(("==", span)) => ParseError::new(span, message, "'==' compares two numbers"),
            Some((symbol, span)) => ParseError::new(span, message, format!("'{symbol}' compares two numbers"))
                .help("an inequality is no relation: nothing can be corrected by it"),
            None => ParseError::new(self.span(), message, "it ends here"),
        }
    }

    pub(super) fn no_facts(&self, what: &str) -> ParseError {
        let message = format!("{} is known in metrics only", quoted(what));
        let (where_not, help) = match self.dialect {
            Dialect::Cost => ("not in a cost model", "write the number"),
            _ => ("not in a relation", "define a metric with it, and name that here"),
        };
        ParseError::new(self.span(), message, where_not).help(help)
    }

    pub(super) fn chained_comparison(&self) -> ParseError {
        ParseError::new(self.span(), "comparisons don't chain", "second comparison here")
            .help("a < b < c is written a < b & b < c")
    }

    pub(super) fn unknown_character(&self, c: char) -> ParseError {
        let character = quoted(c.encode_utf8(&mut [0; 4]));
        match c {
            '{' => ParseError::new(self.span(), "'{' is not closed", "no '}' belongs to this"),
            _ => ParseError::new(
                self.span(),
                format!("{character} means nothing in an expression"),
                format!("{character} here"),
            ),
        }
    }

    pub(super) fn unknown_function(&self, name: &str) -> ParseError {
        let error = ParseError::new(self.span(), format!("there is no function {}", quoted(name)), "not a function");
        error.help(match nearest(name, self.functions().iter().copied()).first() {
            Some(similar) => format!("did you mean {similar}?"),
            None => format!("functions: {}", self.functions().join(", ")),
        })
    }

    /// The names of the functions that can be called here.
    fn functions(&self) -> Vec<&'a str> {
        let of_facts = Fact::FUNCTIONS.into_iter().map(|(name, _)| name).filter(|_| self.dialect.has_facts());
        let mut names: Vec<&str> = function_names().chain(of_facts).collect();
        names.extend(self.functions.iter().map(|function| function.name.as_str()));
        names
    }

    pub(super) fn braces_in_equation(&self, event: Option<&str>) -> ParseError {
        let what = match self.dialect {
            Dialect::Equation => "an equation",
            Dialect::Cost => "a cost model",
            _ => "a metric",
        };
        let names = if self.dialect == Dialect::Cost { "its names" } else { "the events' names" };
        let label = format!("{what} has {names} alone");
        let error = ParseError::new(self.span(), format!("braces in {what}"), label);
        match event {
            Some(event) => error.help(format!("write {}", shown(&escaped_name(event)))),
            None => error,
        }
    }

    pub(super) fn unknown_variable(&self, event: Option<&str>, moment: &str, content: &str) -> ParseError {
        let message = format!("there is no variable {}", quoted(&format!("{{{content}}}")));
        if ["mean", "variance"].contains(&moment) {
            let label = "events' names have no spaces or control characters";
            return ParseError::new(self.span(), message, label);
        }
        let error = ParseError::new(self.span(), message, "not a variable");
        if let Some(event @ ("mean" | "variance")) = event {
            return error.help(format!("did you mean {{{event}}}?"));
        }
        let (content, dot) = (shown(content), if event.is_some() { "." } else { "" });
        let event = shown(event.unwrap_or_default());
        error.help(match nearest(moment, ["mean", "variance"]).first() {
            Some(moment) => format!("did you mean {{{event}{dot}{moment}}}?"),
            None if content.is_empty() => "write {mean}, {variance} or {EVENT.mean}".to_owned(),
            None => format!("write {{{content}.mean}} or {{{content}.variance}}"),
        })
    }
}
