//! Parses expressions.
//!
//! ```text
//! equation   := expression '=' expression
//! expression := choice [ 'if' expression 'else' expression ]
//! choice     := exclusive { '|' exclusive }
//! exclusive  := both { '^' both }
//! both       := comparison { '&' comparison }
//! comparison := sum [ ( '<' | '>' | '<=' | '>=' | '==' | '!=' ) sum ]   (the vendors' chain)
//! sum        := product { ( '+' | '-' ) product }
//! product    := operand { ( '*' | '/' | '%' ) operand }
//! operand    := '-' operand | '(' expression ')' | function | number | variable | fact
//! function   := ( 'min' | 'max' | ... ) '(' expression { ',' expression } ')'
//! fact       := '#' { letter | digit | '_' | '.' | '-' }                (in metrics)
//!             | ( 'has_event' | 'source_count' | 'strcmp_cpuid_str' ) '(' text ')'
//! number     := digits [ '.' [ digits ] ] [ exponent ] | '.' digits [ exponent ]
//! exponent   := ( 'e' | 'E' ) [ '+' | '-' ] digits
//! variable   := name                                                  (in equations and metrics)
//!             | '{' [ event '.' ] ( 'mean' | 'variance' ) '}'         (in pairs)
//! name       := ( letter | '_' | escape ) { letter | digit | '_' | '.' | ':' | escape | dash }
//!             | { letter | digit | '_' | '.' | ':' | '?' | '@' | escape }   (the vendors')
//! dash       := '-' where one of the others follows
//! escape     := '\' any character that isn't a space
//! ```
//!
//! `tokens` cuts the text into words; the levels from `choice` to `product` are one function that
//! compares the powers of the operators.

use super::mistake::ParseError;
use super::operations::{COMPARISON, NEGATE, Operation, function, infix};
use super::tokens::{Token, tokens};
use super::tree::{
    Dialect, Expr, ExprNode, Fact, Moment, NodeKind, Subject, TextSpan, Variable, fact_function, is_reserved,
};
use crate::names::{is_hidden, nearest, quoted, shown};

/// How many levels of parentheses, minus signs and `else` branches an expression can have. People
/// write fewer than ten; the limit keeps a file from overflowing the stack.
pub const MAX_DEPTH: usize = 200;

/// How a choice is written, for those who know it otherwise.
const CHOICE: &str = "write X if CONDITION else Y";

/// How long the text of an expression can be, in bytes.
///
/// The vendors' longest metric has 80 KB once the metrics that it names are put in.
pub const MAX_LENGTH: usize = 256 * 1024;

/// Reads one expression.
///
/// # Errors
/// Returns the first mistake in the text.
pub fn parse(text: &str, dialect: Dialect) -> Result<Expr, ParseError> {
    parse_with_functions(text, dialect, &[])
}

/// Reads one expression that may call these functions, whose bodies stand in place of the calls.
///
/// # Errors
/// Returns the first mistake in the text, also where the expression gets too large.
pub fn parse_with_functions(text: &str, dialect: Dialect, functions: &[Function]) -> Result<Expr, ParseError> {
    let mut parser = Parser { functions, ..Parser::new(text, dialect)? };
    let expr = parser.whole_expression()?;
    match parser.token() {
        Token::End => Ok(expr),
        _ => Err(parser.no_operator()),
    }
}

/// Reads the two sides of an equation.
///
/// # Errors
/// Returns the first mistake in the text.
pub fn parse_equation(text: &str) -> Result<(Expr, Expr), ParseError> {
    let mut parser = Parser::new(text, Dialect::Equation)?;
    let left = parser.whole_expression()?;
    match parser.token() {
        Token::Symbol("=") => parser.next += 1,
        Token::End => return Err(parser.no_equals_sign()),
        _ => return Err(parser.no_operator()),
    }
    let right = parser.whole_expression()?;
    match parser.token() {
        Token::End => Ok((left, right)),
        Token::Symbol("=") => {
            let label = "second '=' here";
            Err(ParseError::new(parser.span(), "an equation has one '='", label))
        }
        _ => Err(parser.no_operator()),
    }
}

/// A function that a text defines.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name that calls it.
    pub name: String,
    /// The names that stand for its arguments.
    pub parameters: Vec<String>,
    /// What it computes from them.
    pub body: Expr,
}

/// How many nodes an expression may get by calls of functions.
const MAX_CALLED: usize = 100_000;

pub(super) struct Parser<'a> {
    pub(super) functions: &'a [Function],
    pub(super) text: &'a str,
    pub(super) dialect: Dialect,
    pub(super) tokens: Vec<(Token<'a>, TextSpan)>,
    next: usize,
    depth: usize,
    nodes: Vec<ExprNode>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, dialect: Dialect) -> Result<Self, ParseError> {
        if text.len() > MAX_LENGTH {
            let message = format!("an expression of {} bytes is too long", text.len());
            let label = format!("at most {MAX_LENGTH} bytes");
            return Err(ParseError::new(TextSpan { start: 0, end: 0 }, message, label));
        }
        let tokens = tokens(text, dialect);
        Ok(Self { functions: &[], text, dialect, tokens, next: 0, depth: 0, nodes: Vec::new() })
    }

    pub(super) fn token(&self) -> Token<'a> {
        self.tokens.get(self.next).map_or(Token::End, |(token, _)| *token)
    }

    pub(super) fn span(&self) -> TextSpan {
        let last = self.tokens.get(self.next).or(self.tokens.last());
        last.map_or(TextSpan { start: 0, end: 0 }, |(_, span)| *span)
    }

    /// The text of the token before the next one.
    pub(super) fn before(&self) -> Option<&'a str> {
        let (_, span) = self.tokens.get(self.next.checked_sub(1)?)?;
        self.text.get(span.start..span.end)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let is_next = self.token() == Token::Symbol(symbol);
        self.next += usize::from(is_next);
        is_next
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.token() == Token::Name(word);
        self.next += usize::from(is_next);
        is_next
    }

    fn push(&mut self, kind: NodeKind, start: TextSpan, end: TextSpan) -> TextSpan {
        let span = TextSpan { start: start.start, end: end.end };
        self.nodes.push(ExprNode { kind, span });
        span
    }

    fn whole_expression(&mut self) -> Result<Expr, ParseError> {
        self.expression()?;
        Ok(Expr::new(self.dialect, std::mem::take(&mut self.nodes)))
    }

    fn expression(&mut self) -> Result<TextSpan, ParseError> {
        self.nested(|parser| {
            let first = parser.choice()?;
            if !parser.take_word("if") {
                return Ok(first);
            }
            parser.expression()?;
            if !parser.take_word("else") {
                let error = parser.expected("'else' or an operator");
                return Err(if parser.token() == Token::Name("then") { error.help(CHOICE) } else { error });
            }
            let last = parser.expression()?;
            Ok(parser.push(NodeKind::Select, first, last))
        })
    }

    /// The only way down, so that `MAX_DEPTH` bounds the stack.
    fn nested(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<TextSpan, ParseError>,
    ) -> Result<TextSpan, ParseError> {
        if self.depth > MAX_DEPTH {
            let label = format!("more than {MAX_DEPTH} levels deep here");
            return Err(ParseError::new(self.span(), "the expression is nested too deeply", label));
        }
        self.depth += 1;
        let span = inner(self)?;
        self.depth -= 1;
        Ok(span)
    }

    /// Operands joined by operators. An operator waits until one of no more power follows; they
    /// wait in a vector, as levels of calls for them would take most of the stack.
    fn choice(&mut self) -> Result<TextSpan, ParseError> {
        let mut waiting: Vec<(&'static Operation, u8, TextSpan)> = Vec::new();
        let mut operand = self.operand()?;
        loop {
            let next = match self.token() {
                // In a relation it would be taken for a power.
                Token::Symbol("^") if !self.dialect.has_facts() => None,
                Token::Symbol(symbol) => infix(symbol),
                _ => None,
            };
            let floor = next.map_or(0, |(_, power)| power);
            while let Some((operation, power, left)) = waiting.pop_if(|(_, power, _)| *power >= floor) {
                if (power, floor) == (COMPARISON, COMPARISON) && self.dialect != Dialect::Vendor {
                    return Err(self.chained_comparison());
                }
                operand = self.push(NodeKind::Operation(operation), left, operand);
            }
            let Some((operation, power)) = next else {
                return Ok(operand);
            };
            self.next += 1;
            waiting.push((operation, power, operand));
            operand = self.operand()?;
        }
    }

    fn operand(&mut self) -> Result<TextSpan, ParseError> {
        let start = self.span();
        let kind = match self.token() {
            Token::Symbol("-") => {
                self.next += 1;
                let operand = self.nested(Self::operand)?;
                return Ok(self.push(NodeKind::Operation(&NEGATE), start, operand));
            }
            Token::Symbol("(") => {
                self.next += 1;
                self.expression()?;
                return self.close(start);
            }
            Token::Number(number) if number.is_finite() => NodeKind::Number(number),
            Token::Number(_) => {
                return Err(ParseError::new(start, "a number is too large", "more than 1.8e308"));
            }
            Token::Name(name) if self.is_function(name) => return self.call(name),
            Token::Literal(name) => NodeKind::Fact(self.literal(name)?),
            Token::Name(name) => NodeKind::Variable(self.bare_name(name)?),
            Token::Braced(content) => NodeKind::Variable(self.braced(content)?),
            Token::Symbol(_) | Token::Unknown(_) | Token::End => return Err(self.no_operand()),
        };
        self.next += 1;
        Ok(self.push(kind, start, start))
    }

    fn close(&mut self, start: TextSpan) -> Result<TextSpan, ParseError> {
        let end = self.span();
        if self.take(")") {
            return Ok(TextSpan { start: start.start, end: end.end });
        }
        Err(self.expected("')' or an operator"))
    }

    fn is_function(&self, name: &str) -> bool {
        let is_called = matches!(self.tokens.get(self.next + 1), Some((Token::Symbol("("), _)));
        let is_known = function(name).is_some() || fact_function(name).is_some();
        // A size may be called `min`.
        let is_kept = !matches!(self.dialect, Dialect::Vendor | Dialect::Cost);
        (is_known && is_kept) || (is_called && !matches!(name, "if" | "else"))
    }

    /// The fact that a literal such as `#num_cpus` asks for.
    fn literal(&self, name: &str) -> Result<Fact, ParseError> {
        match self.dialect.has_facts() {
            true => Ok(Fact::Literal(name.to_ascii_lowercase())),
            false => Err(self.no_facts(&format!("#{name}"))),
        }
    }

    /// `has_event(NAME)`, up to the parenthesis that closes it.
    fn fact(&mut self, name: &str, make: fn(String) -> Fact) -> Result<TextSpan, ParseError> {
        let start = self.span();
        if !self.dialect.has_facts() {
            return Err(self.no_facts(&format!("{name}()")));
        }
        self.next += 1;
        let open = self.span();
        if !self.take("(") {
            return Err(self.expected("'('"));
        }
        let mut depth = 1_usize;
        loop {
            match self.token() {
                Token::Symbol("(") => depth += 1,
                Token::Symbol(")") => depth -= 1,
                Token::End => return Err(self.expected("')'")),
                _ => {}
            }
            if depth == 0 {
                break;
            }
            self.next += 1;
        }
        let text = self.text.get(open.end..self.span().start).unwrap_or_default().trim();
        if text.is_empty() || text.contains(|c: char| c.is_whitespace() || is_hidden(c)) {
            let inside = TextSpan { start: open.end, end: self.span().start };
            return Err(ParseError::new(inside, format!("{name} takes one name"), "not a name"));
        }
        let fact = match make(self.name(text)) {
            Fact::CpuIs(_) => Fact::CpuIs(text.to_owned()),
            fact => fact,
        };
        let span = self.close(start)?;
        Ok(self.push(NodeKind::Fact(fact), span, span))
    }

    /// What a name means, escapes taken away.
    fn name(&self, raw: &str) -> String {
        unescaped(raw, if self.dialect == Dialect::Vendor { '/' } else { '@' })
    }

    fn call(&mut self, name: &str) -> Result<TextSpan, ParseError> {
        if let Some(make) = fact_function(name) {
            return self.fact(name, make);
        }
        let start = self.span();
        let defined = self.functions.iter().rfind(|function| function.name == name);
        if let Some(defined) = defined {
            let (first, span) = self.arguments(name, defined.parameters.len())?;
            return self.put_body(defined, &first, span);
        }
        let Some((operation, arity)) = function(name) else {
            return Err(self.unknown_function(name));
        };
        let (_, span) = self.arguments(name, arity)?;
        debug_assert_eq!(start.start, span.start, "a call begins with its name");
        Ok(self.push(NodeKind::Operation(operation), span, span))
    }

    /// The arguments of a call of `name`: where the nodes of each begin, and the place of the whole call.
    fn arguments(&mut self, name: &str, arity: usize) -> Result<(Vec<usize>, TextSpan), ParseError> {
        let start = self.span();
        self.next += 1;
        if !self.take("(") {
            let error = self.expected("'('");
            return Err(match self.dialect {
                Dialect::Cost => error,
                _ => error.help(format!("an event of this name is written \\{name}")),
            });
        }
        let mut first = vec![self.nodes.len()];
        self.expression()?;
        while self.take(",") {
            first.push(self.nodes.len());
            self.expression()?;
        }
        if first.len() != arity {
            let message = format!("{name} takes {}", arguments(arity));
            let call = TextSpan { start: start.start, end: self.span().end };
            return Err(ParseError::new(call, message, format!("{} here", arguments(first.len()))));
        }
        Ok((first, self.close(start)?))
    }

    /// Puts the body of a function in place of its arguments, whose nodes begin at `first`.
    fn put_body(&mut self, function: &Function, first: &[usize], span: TextSpan) -> Result<TextSpan, ParseError> {
        let mut parts: Vec<Expr> = Vec::new();
        for &at in first.iter().rev() {
            parts.push(Expr::new(self.dialect, self.nodes.split_off(at)));
        }
        parts.reverse();
        let part = |kind: &NodeKind| match kind {
            NodeKind::Variable(Variable { subject: Subject::Event(name), .. }) => {
                let place = function.parameters.iter().position(|parameter| parameter == name)?;
                parts.get(place).cloned()
            }
            _ => None,
        };
        let room = MAX_CALLED.saturating_sub(self.nodes.len());
        let Some(body) = function.body.with_parts(room, part) else {
            let label = format!("more than {MAX_CALLED} nodes");
            return Err(ParseError::new(span, "the calls make the expression too large", label));
        };
        self.nodes.extend(body.nodes().iter().map(|node| ExprNode { kind: node.kind.clone(), span }));
        Ok(span)
    }

    fn bare_name(&self, raw: &str) -> Result<Variable, ParseError> {
        let name = self.name(raw);
        match self.dialect {
            Dialect::Equation | Dialect::Metric if is_reserved(raw) => Err(self.no_operand()),
            Dialect::Cost if raw == "if" => Err(self.no_operand().help(CHOICE)),
            Dialect::Vendor | Dialect::Cost if matches!(raw, "if" | "else") => Err(self.no_operand()),
            Dialect::Equation | Dialect::Metric | Dialect::Vendor | Dialect::Cost => {
                Ok(Variable { subject: Subject::Event(name), moment: Moment::Mean })
            }
            Dialect::Pair if matches!(raw, "true" | "false" | "null") => {
                Err(ParseError::new(self.span(), "expected an expression", format!("{} here", quoted(raw))))
            }
            Dialect::Pair => {
                let message = format!("{} is not in braces", quoted(raw));
                let help = match nearest(&name, ["mean", "variance"]).first() {
                    Some(moment) => format!("write {{{moment}}}"),
                    None => format!("write {{{0}.mean}} or {{{0}.variance}}", shown(&name)),
                };
                Err(ParseError::new(self.span(), message, "a pair has its variables in braces").help(help))
            }
        }
    }

    fn braced(&self, content: &str) -> Result<Variable, ParseError> {
        let content = content.trim();
        let (event, moment) = match content.rsplit_once('.') {
            Some((event, moment)) => (Some(event), moment),
            None => (None, content),
        };
        let found = [Moment::Mean, Moment::Variance].into_iter().find(|known| known.name() == moment);
        let is_name = |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || is_hidden(c));
        match (self.dialect, event, found) {
            (Dialect::Equation | Dialect::Metric | Dialect::Vendor | Dialect::Cost, ..) => {
                Err(self.braces_in_equation(event))
            }
            (Dialect::Pair, None, Some(moment)) => Ok(Variable { subject: Subject::From, moment }),
            (Dialect::Pair, Some(event), Some(moment)) if is_name(event) => {
                Ok(Variable { subject: Subject::Event(event.to_owned()), moment })
            }
            _ => Err(self.unknown_variable(event, moment, content)),
        }
    }
}

fn arguments(count: usize) -> String {
    match count {
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    }
}

/// A name without its backslashes; `at` stands for a bare `@`.
fn unescaped(name: &str, at: char) -> String {
    let mut out = String::with_capacity(name.len());
    let mut characters = name.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => out.extend(characters.next()),
            '@' => out.push(at),
            c => out.push(c),
        }
    }
    out
}
