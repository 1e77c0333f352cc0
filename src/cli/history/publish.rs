//! Implements `perfprop history publish`: a static site of results.

use std::path::PathBuf;

use clap::Args;

use super::super::Error;
use super::super::stream::say;
use super::rules::RuleArgs;
use super::{SeriesArgs, of_git};
use crate::names::shown_path;
use crate::number::grouped;
use crate::site::{Site, SiteError, SiteOptions};

/// The arguments of `perfprop history publish`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history publish site && xdg-open site/index.html
  perfprop history publish site --url https://example.org/speed    links of the feed lead there
  perfprop history publish site --results asv/results              a site of asv's results, by the rules of asv.conf.json
  perfprop history publish site --threshold 2%                     smaller rises, too")]
pub(super) struct PublishArgs {
    /// The folder of the site: a new one, an empty one, or one with an older site
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// What stands above the pages [default: the name of the repository's folder]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Where the site will be found, for links of its feed [default: the feed's links are relative]
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<String>,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    from: SeriesArgs,
}

fn address(text: &str) -> Result<String, String> {
    let is_address = ["https://", "http://", "file:///"].iter().any(|scheme| text.starts_with(scheme));
    if is_address { Ok(text.to_owned()) } else { Err("expected an address, as in https://example.org/speed".into()) }
}

pub(super) fn publish(args: &PublishArgs) -> Result<u8, Error> {
    let (stored, commits) = args.from.read()?;
    let repository = args.from.project.repository()?;
    let name = || repository.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let title = args.title.clone().unwrap_or_else(name);
    let options = SiteOptions {
        title,
        address: args.url.clone(),
        method: args.from.method.into(),
        rules: args.rules.read(&args.from.project, &commits)?,
        tags: repository.tags().map_err(of_git)?,
    };
    let site = Site::new(&stored, &commits, &options).map_err(of_site)?;
    let report = site.write(&args.folder).map_err(of_site)?;
    report.faults.iter().for_each(|fault| say(fault));
    let removed = match report.removed {
        0 => String::new(),
        removed => format!("; {} of the older site removed", many(removed, "file")),
    };
    let page = args.folder.join("index.html");
    let failed = match report.failed {
        0 => String::new(),
        failed => format!(" ({} that couldn't be built or run)", grouped(failed as u64)),
    };
    say(&format!(
        "{}: {} of {}{failed}, {}{removed}",
        shown_path(&page),
        many(report.entries, "plot"),
        many(report.commits, "commit"),
        many(report.regressions, "regression"),
    ));
    Ok(0)
}

fn of_site(error: SiteError) -> Error {
    match error {
        SiteError::System(..) => Error::Impossible(error.to_string()),
        error => Error::Input(error.to_string()),
    }
}

/// So many of something.
fn many(count: usize, of: &str) -> String {
    format!("{} {of}{}", grouped(count as u64), if count == 1 { "" } else { "s" })
}
