//! Says which events and metrics the emulated PMU counts, of those that were asked for.

use super::{Error, metrics};
use crate::events::{Event, Machine, Resolver, Tables};
use crate::metrics::{Facts, MeasuredScope};

/// The names of the events in a list as of `-e` that the emulated PMU counts, without those that it lacks.
pub fn modelled_events(list: &str) -> Vec<String> {
    let resolver = Resolver::new(Machine::emulated());
    let groups = resolver.parse(list).unwrap_or_default();
    let events = groups.into_iter().flat_map(|group| group.events);
    events.filter(|event| Event::unavailable(event).is_none()).map(|event| event.name).collect()
}

/// The metrics in a list as of `-M`, by name, pattern or group, that the emulated PMU counts all events of.
///
/// # Errors
/// When perfprop's own metrics are wrong, which its tests rule out.
pub fn modelled_metrics(list: &str) -> Result<Vec<String>, Error> {
    let resolver = Resolver::new(Machine::emulated());
    let catalog = metrics::catalog(&[], &Tables::default(), &mut |_| ())?;
    let facts = Facts::new(&resolver, MeasuredScope::Part);
    let know = |fact: &_| facts.know(fact);
    let mut formulas = catalog.formulas(&know);
    let mut is_modelled = |wish: &str| {
        let meant = catalog.select(wish);
        meant.into_iter().any(|metric| metrics::refusal(metric, &mut formulas, &facts).is_none())
    };
    let wishes = list.split(',').map(str::trim).filter(|wish| !wish.is_empty());
    Ok(wishes.filter(|wish| is_modelled(wish)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_lacks_is_left_out() {
        assert_eq!(modelled_events("cycles,{instructions:u,branches},task-clock"), ["instructions:u", "branches"]);
        assert!(modelled_events("cycles").is_empty() && modelled_events("{,").is_empty());
        assert_eq!(modelled_metrics("IPC, L2_MPKI,nothing").ok(), Some(vec!["L2_MPKI".to_owned()]));
    }
}
