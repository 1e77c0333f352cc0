//! Resolves names of this machine's events, and tries whether they can be counted.

use std::path::Path;
use std::sync::Arc;

use super::Error;
use crate::events::{Event, Machine, Resolver, Tables};
use crate::sources::perf;

/// A resolver of this machine's events, and of those in a folder of event tables.
///
/// # Errors
/// When the tables can't be read.
pub fn resolver(tables: Option<&Path>) -> Result<Resolver, Error> {
    let machine = Machine::here();
    let tables = tables.map(|folder| Tables::read(folder, &machine)).transpose().map_err(Error::Tables)?;
    Ok(Resolver::new(machine).with_tables(Arc::new(tables.unwrap_or_default())))
}

/// Whether this user can count an event here, tried by opening it.
pub fn can_count(event: &Event) -> bool {
    event.unavailable().is_none() && perf::probe(event).is_open()
}
