//! Implements `perfprop check`: says what works on this machine, what doesn't, and the commands that mend it.

use std::io::IsTerminal;

use super::Error;
use super::args::{Check, When};
use super::stream::Stream;
use crate::machine::{Host, ThisKernel, facts};
use crate::measure::resolver;
use crate::names::shown;
use crate::tui::{Config, Depth, theme_of_base16};

mod codes;
mod events;
mod expected;
mod files;
mod report;

use events::Events;
use files::CheckedFile;
use report::{Paint, Report};

#[cfg(test)]
mod tests;

pub(super) fn run(args: &Check) -> Result<u8, Error> {
    let paint = paint(args.color);
    if let Some(code) = &args.explain {
        let text = codes::explain(code).ok_or_else(|| Error::Usage(codes::unknown(code)))?;
        Stream::stdout().print(&text)?;
        return Ok(0);
    }
    if args.default_config {
        Stream::stdout().print(&Config::default_text())?;
        return Ok(0);
    }
    if let Some(path) = &args.import_theme {
        let failed = |error: String| Error::Theme(format!("{}: {error}", shown(&path.to_string_lossy())));
        let scheme = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Stream::stdout().print(&theme_of_base16(&scheme).map_err(|error| failed(error.to_string()))?)?;
        return Ok(0);
    }
    let resolver = resolver(args.event_tables.as_deref())?;
    let files: Vec<_> = args.files.iter().map(|path| CheckedFile::read(path, &resolver)).collect();
    let only_files = !files.is_empty() && args.events.is_empty();
    let report = if only_files {
        Report { facts: Vec::new(), events: None, files }
    } else {
        let host = Host::with(resolver);
        let text = args.events.join(",");
        let events = (!args.events.is_empty()).then(|| Events::try_out(&text, &host, &ThisKernel));
        Report { facts: facts(&host, &ThisKernel), events, files }
    };
    let text = if args.json { report.json() } else { report.text(paint) };
    Stream::stdout().print(&text)?;
    Ok(u8::from(!report.is_well()))
}

/// Colour where people look, unless the environment says otherwise.
fn paint(when: When) -> Paint {
    let variable = |name: &str| std::env::var(name).ok();
    let [no_color, colorterm, term] = ["NO_COLOR", "COLORTERM", "TERM"].map(variable);
    let depth = Depth::detect(no_color.as_deref(), colorterm.as_deref(), term.as_deref());
    let coloured = match when {
        When::Always => true,
        When::Never => false,
        When::Auto => std::io::stdout().is_terminal() && depth != Depth::Mono,
    };
    if coloured { Paint::Colour } else { Paint::Plain }
}
