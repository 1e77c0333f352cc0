//! Implements `perfprop history steps`: the steps of a series that others measured.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::Error;
use super::super::stream::Stream;
use super::super::text_input::{in_file, text_of};
use super::MethodName;
use crate::history::SeriesTable;
use crate::rates::Confidence;
use crate::steps::{changes, detect};
use crate::text;

/// The arguments of `perfprop history steps`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history steps times.txt                        a number a line
  git log --format=%h | xargs -n1 ./time-of | perfprop history steps -
  perfprop history steps -j commits.csv                   lines of index,value or index,value,weight, as JSON")]
pub(super) struct StepsArgs {
    /// The numbers: one a line, or lines of index,value or index,value,weight, also with blanks, tabs or semicolons for commas; - is standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// How steps are found
    #[arg(long, value_enum, default_value_t = MethodName::Best)]
    method: MethodName,
    /// Print JSON
    #[arg(short, long)]
    json: bool,
}

pub(super) fn steps(args: &StepsArgs) -> Result<u8, Error> {
    let series = read(&args.file)?;
    let method = args.method.into();
    let steps = detect(&series.values, series.weights(), method);
    let changes = changes(&series.values, series.weights(), &steps, method, Confidence::DEFAULT);
    let text = match args.json {
        true => format!("{}\n", text::json_steps(&series, &steps, &changes)),
        false => text::steps(&series, &steps, &changes),
    };
    Stream::stdout().print(&text)?;
    Ok(0)
}

fn read(path: &Path) -> Result<SeriesTable, Error> {
    let text = text_of(path).map_err(|error| in_file(path, format!("{error}; give a file of numbers, one a line")))?;
    SeriesTable::parse(&text).map_err(|fault| in_file(path, fault))
}
