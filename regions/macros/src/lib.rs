//! Makes functions regions of `perfprop-regions`, which passes this attribute on and documents it.
//!
//! A function is left as it is but for its body, which is all that has to be found: no parser of Rust is needed.

use std::iter::Peekable;

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree, token_stream};

const NO_FUNCTION: &str = "#[profile] measures a function with a body";
const ARGUMENTS: &str = "#[profile] takes a name, as in #[profile(\"load\")], and the path of the crate of regions where that \
is another, as in #[profile(crate = perfprop::region)]";

/// Makes each call of a function a region; `perfprop_regions::profile` says how.
#[proc_macro_attribute]
pub fn profile(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let measured = Arguments::of(arguments).and_then(|arguments| measured(&arguments, function.clone()));
    // The function as it was, so that there is one error and not one for each of its calls.
    measured.unwrap_or_else(|wrong| function.into_iter().chain(wrong.tokens()).collect())
}

/// What is wrong, and where.
struct Wrong(Span, &'static str);

impl Wrong {
    fn tokens(&self) -> TokenStream {
        code(&format!("compile_error!({:?});", self.1), self.0)
    }
}

/// Code whose names are this macro's own.
fn code(text: &str, span: Span) -> TokenStream {
    respanned(text.parse().unwrap_or_default(), span)
}

fn respanned(tokens: TokenStream, span: Span) -> TokenStream {
    let respanned = |token: TokenTree| {
        let mut token = match token {
            TokenTree::Group(group) => Group::new(group.delimiter(), respanned(group.stream(), span)).into(),
            token => token,
        };
        token.set_span(span);
        token
    };
    tokens.into_iter().map(respanned).collect()
}

/// What stands in the attribute's brackets.
struct Arguments {
    /// The region's name as a literal, if it isn't that of the function.
    name: Option<String>,
    /// Where the crate of regions is.
    path: String,
}

impl Arguments {
    fn of(tokens: TokenStream) -> Result<Self, Wrong> {
        let mut found = Self { name: None, path: "::perfprop_regions".to_owned() };
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let wrong = || Wrong(token.span(), ARGUMENTS);
            match token.to_string().as_str() {
                text if text.starts_with('"') => found.name = Some(text.to_owned()),
                "crate" => found.path = path(&mut tokens).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
            if tokens.next().is_some_and(|token| token.to_string() != ",") {
                return Err(wrong());
            }
        }
        Ok(found)
    }
}

/// A path behind `=`, up to the next comma.
fn path(tokens: &mut Peekable<token_stream::IntoIter>) -> Option<String> {
    tokens.next_if(|token| token.to_string() == "=")?;
    let path = std::iter::from_fn(|| tokens.next_if(|token| token.to_string() != ","));
    Some(path.collect::<TokenStream>().to_string()).filter(|path| !path.is_empty())
}

/// What has to be known of a function.
struct Signature {
    name: String,
    is_async: bool,
    /// The type of its result; empty for none.
    result: TokenStream,
}

impl Signature {
    /// Of the tokens before the body.
    fn of(tokens: &[TokenTree]) -> Option<Self> {
        let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
        let function = tokens.iter().position(|token| is(token, "fn"))?;
        let name = tokens.get(function + 1)?.to_string();
        let arguments = function + 2 + arguments(&tokens[function + 2..])?;
        let behind = &tokens[arguments + 1..];
        let result = behind.iter().skip(2).take_while(|token| !is(token, "where"));
        let has_result = matches!(behind.first(), Some(TokenTree::Punct(first)) if first.as_char() == '-');
        Some(Self {
            name: name.strip_prefix("r#").unwrap_or(&name).to_owned(),
            is_async: tokens[..function].iter().any(|token| is(token, "async")),
            result: result.filter(|_| has_result).cloned().collect(),
        })
    }

    /// Code that is never run, and tells the compiler the type of an async block. `impl` has no place in it.
    fn hint(&self) -> String {
        let result = self.result.to_string();
        let has_impl =
            result.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == "impl");
        if result.is_empty() || has_impl {
            return String::new();
        }
        format!(
            "#[allow(unreachable_code, clippy::all)] if false {{ let result: {result} = loop {{}}; return result; }}"
        )
    }
}

/// The place of the arguments: the first brackets that are not within `<` and `>`.
fn arguments(tokens: &[TokenTree]) -> Option<usize> {
    let (mut depth, mut last) = (0, ' ');
    tokens.iter().position(|token| {
        let sign = if let TokenTree::Punct(sign) = token { sign.as_char() } else { ' ' };
        match (last, sign) {
            (_, '<') => depth += 1,
            // An arrow isn't the end of anything.
            ('-', '>') => {}
            (_, '>') => depth -= 1,
            _ => {}
        }
        last = sign;
        depth == 0 && matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis)
    })
}

/// The function with a body that is measured.
fn measured(arguments: &Arguments, function: TokenStream) -> Result<TokenStream, Wrong> {
    let no_function = || Wrong(Span::call_site(), NO_FUNCTION);
    let mut tokens: Vec<TokenTree> = function.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop().filter(is_body) else { return Err(no_function()) };
    let signature = Signature::of(&tokens).ok_or_else(no_function)?;
    let of_function = || format!("concat!(module_path!(), \"::\", {:?})", signature.name);
    let (path, name) = (&arguments.path, arguments.name.clone().unwrap_or_else(of_function));
    let region = format!("{{ static REGION: {path}::Region = {path}::Region::new({name}); &REGION }}");
    let own = |text: &str| code(text, Span::mixed_site());
    let inner: TokenStream = if signature.is_async {
        let block = own(&signature.hint()).into_iter().chain(body.stream()).collect();
        let task = own(&format!("{region}, async move")).into_iter().chain([group(Delimiter::Brace, block)]).collect();
        let call = own(&format!("{path}::Region::instrument_recursive")).into_iter();
        call.chain([group(Delimiter::Parenthesis, task)]).chain(own(".await")).collect()
    } else {
        own(&format!("let _open = {path}::Region::enter_recursive({region});"))
            .into_iter()
            .chain(body.stream())
            .collect()
    };
    let mut outer = Group::new(Delimiter::Brace, inner);
    outer.set_span(body.span());
    Ok(tokens.into_iter().chain([outer.into()]).collect())
}

fn is_body(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn group(delimiter: Delimiter, tokens: TokenStream) -> TokenTree {
    Group::new(delimiter, tokens).into()
}
