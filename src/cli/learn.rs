//! Programs' complete counts in, the prior of the estimator `gp` out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::Error;
use super::args::Learn;
use super::stream::Stream;
use crate::estimate::gp::{Complete, Prior};

/// A table of counts.
struct Table {
    names: Vec<String>,
    rows: Vec<Vec<f64>>,
    row_ms: f64,
}

/// The first column of tables whose rows are of uneven length, and the length that they are meant
/// to have; rows of all others last a millisecond.
const WALL_TIME: &str = "bin_us";
const WALL_ROW_MS: f64 = 2.0;

/// `perfprop relations learn`.
pub(super) fn run(args: &Learn) -> Result<u8, Error> {
    let wrong = |path: &PathBuf, error: io::Error| Error::Usage(format!("trace {}: {error}", path.display()));
    let tables: Result<Vec<Table>, Error> =
        args.traces.iter().map(|path| read(path).map_err(|error| wrong(path, error))).collect();
    let tables = tables?;
    let programs: Vec<Complete<'_>> =
        tables.iter().map(|table| Complete { names: &table.names, rows: &table.rows, row_ms: table.row_ms }).collect();
    let text = Prior::learn(&programs).to_json().map_err(io::Error::from);
    let text = text.map_err(|source| Error::Write { path: args.prior.clone(), source })?;
    Stream::file(&args.prior, false)?.print(&(text + "\n"))?;
    Ok(0)
}

/// Reads CSV, gzipped or not: a header of names, then counts.
fn read(path: &Path) -> io::Result<Table> {
    let file = File::open(path)?;
    let zipped = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> = if zipped { Box::new(flate2::read::GzDecoder::new(file)) } else { Box::new(file) };
    let mut lines = BufReader::new(reader).lines();
    let header = lines.next().ok_or_else(|| io::Error::other("it is empty"))??;
    let wall = header.split(',').next() == Some(WALL_TIME);
    let names: Vec<String> = header.split(',').skip(usize::from(wall)).map(str::to_owned).collect();
    let mut rows = Vec::new();
    for (number, line) in lines.enumerate() {
        let line = line?;
        let row: Option<Vec<f64>> = line
            .split(',')
            .skip(usize::from(wall))
            .map(|field| field.parse().ok().filter(|v: &f64| v.is_finite()))
            .collect();
        match row {
            Some(row) if row.len() == names.len() => rows.push(row),
            _ => return Err(io::Error::other(format!("line {}: not {} counts", number + 2, names.len()))),
        }
    }
    Ok(Table { names, rows, row_ms: if wall { WALL_ROW_MS } else { 1.0 } })
}
