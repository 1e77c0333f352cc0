//! Gathers the call stacks of a measurement, and prints the functions in which most was sampled.

use super::Error;
use crate::monitor::Monitor;
use crate::profile::TreeOptions;
use crate::session::Session;
use crate::stacks::Gathering;
use crate::text;

/// Puts what is sampled into a tree, if anything is.
pub(super) fn gather(session: &Session) -> Result<Option<Gathering>, Error> {
    let gathering = session
        .stacks()
        .map(|stacks| Gathering::start(stacks.batches().clone(), stacks.sampled().clone(), TreeOptions::default()));
    gathering.transpose().map_err(Error::System)
}

/// Ends sampling, and waits for what is on its way.
pub(super) fn finish(session: &Session, profile: Option<&mut Gathering>) {
    if let (Some(stacks), Some(profile)) = (session.stacks(), profile) {
        stacks.stop();
        profile.finish();
    }
}

/// The functions in which most was sampled; nothing if nothing is.
pub(super) fn text(profile: Option<&Gathering>, monitor: &Monitor) -> String {
    let stacks = |profile: &Gathering| {
        let gathered = profile.look();
        let target = monitor.header().target.selection();
        format!("\n{}", text::stacks(gathered.tree(), gathered.quality(), &target))
    };
    profile.map(stacks).unwrap_or_default()
}
