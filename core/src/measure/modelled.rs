//! Says which events and metrics the emulated PMU counts, of those that were asked for.

use super::{Error, metrics};
use crate::events::{Event, Machine, Resolver, Tables};
use crate::metrics::{Facts, MeasuredScope};

/// The names of a list that the emulated PMU counts, and the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModelledNames {
    /// Those that it counts.
    pub counted: Vec<String>,
    /// Those that it has nothing for.
    pub lacking: Vec<String>,
}

/// Which events of a list as of `-e` the emulated PMU counts. A list that can't be read is lacking as a whole.
pub fn modelled_events(list: &str) -> ModelledNames {
    let resolver = Resolver::new(Machine::emulated());
    let Ok(groups) = resolver.parse(list) else {
        return ModelledNames { counted: Vec::new(), lacking: vec![list.to_owned()] };
    };
    let events = groups.into_iter().flat_map(|group| group.events);
    let (counted, lacking): (Vec<_>, Vec<_>) = events.partition(|event| Event::unavailable(event).is_none());
    let names = |events: Vec<Event>| events.into_iter().map(|event| event.name).collect();
    ModelledNames { counted: names(counted), lacking: names(lacking) }
}

/// Of which metrics of a list as of `-M`, by name, pattern or group, the emulated PMU counts all events.
///
/// # Errors
/// When perfprop's own metrics are wrong, which its tests rule out.
pub fn modelled_metrics(list: &str) -> Result<ModelledNames, Error> {
    let resolver = Resolver::new(Machine::emulated());
    let catalog = metrics::catalog(&[], &Tables::default(), &mut |_| ())?;
    let facts = Facts::new(&resolver, MeasuredScope::Part);
    let know = |fact: &_| facts.know(fact);
    let mut formulas = catalog.formulas(&know);
    let mut is_modelled = |wish: &str| {
        let meant = catalog.select(wish);
        meant.into_iter().any(|metric| metrics::refusal(metric, &mut formulas, &facts).is_none())
    };
    let wishes = list.split(',').map(str::trim).filter(|wish| !wish.is_empty()).map(str::to_owned);
    let (counted, lacking) = wishes.partition(|wish| is_modelled(wish));
    Ok(ModelledNames { counted, lacking })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_model_lacks_is_left_out() {
        let names = |counted: &[&str], lacking: &[&str]| {
            let [counted, lacking] = [counted, lacking].map(|names| names.iter().map(ToString::to_string).collect());
            ModelledNames { counted, lacking }
        };
        assert_eq!(
            modelled_events("cycles,{instructions:u,branches},task-clock"),
            names(&["instructions:u", "branches"], &["cycles", "task-clock"])
        );
        assert_eq!([modelled_events("cycles"), modelled_events("{,")], [names(&[], &["cycles"]), names(&[], &["{,"])]);
        assert_eq!(modelled_metrics("IPC, L2_MPKI,nothing").ok(), Some(names(&["L2_MPKI"], &["IPC", "nothing"])));
    }
}
