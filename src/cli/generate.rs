//! The command line's shape in, completion scripts and manual pages out.

use super::args::{Completions, Man};
use super::stream::Stream;
use super::{Error, command};

/// `perfprop completions SHELL`.
pub(super) fn completions(args: &Completions) -> Result<u8, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "perfprop", &mut text);
    Stream::stdout().print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// `perfprop man [VERB]`.
pub(super) fn man(args: &Man) -> Result<u8, Error> {
    let program = command();
    let page = match &args.verb {
        None => program,
        Some(verb) => {
            let verbs = || program.get_subcommands().map(clap::Command::get_name);
            let Some(found) = program.find_subcommand(verb) else {
                return Err(Error::Usage(format!(
                    "no verb '{verb}'; there are {}",
                    verbs().collect::<Vec<_>>().join(", ")
                )));
            };
            found.clone().name(format!("perfprop-{}", found.get_name()))
        }
    };
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(page).render(&mut text);
    rendered.map_err(|source| Error::Write { path: "standard output".into(), source })?;
    Stream::stdout().print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
