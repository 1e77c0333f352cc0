//! Measures how many events a PMU counts at the same time, by groups of growing size.

use super::{Host, Kernel};
use crate::events::{Event, Pmu};
use crate::plan::Fit;

/// The most counters that are looked for: more than any core PMU has.
const MOST: usize = 64;

/// The generic events that have counters of their own on some CPUs (Intel's fixed counters, Arm's
/// cycle counter); the first takes the general ones.
const TRIED: [&str; 3] = ["instructions", "cycles", "ref-cycles"];

/// How many events of each kind a PMU counts at once, all together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The event, and how many of it were counted beside the others.
    pub each: Vec<(&'static str, usize)>,
}

impl Counters {
    /// How many counters that is.
    pub fn total(&self) -> usize {
        self.each.iter().map(|(_, count)| count).sum()
    }
}

/// Counts the counters of a core PMU; `None` where none of the events can be counted.
///
/// As many copies of the first event as fit are counted together, then as many of the next beside
/// them. What the NMI watchdog or others hold isn't there to be counted.
pub fn measure(host: &Host, kernel: &dyn Kernel, pmu: &Pmu) -> Option<Counters> {
    let mut group: Vec<Event> = Vec::new();
    let mut each = Vec::new();
    for name in TRIED {
        let Some(event) = host.event(&format!("{}/{name}/", pmu.name)) else { continue };
        let before = group.len();
        while group.len() < MOST {
            group.push(event.clone());
            if kernel.fit(&group.iter().collect::<Vec<_>>()) != Fit::Fits {
                group.pop();
                break;
            }
        }
        if group.len() > before {
            each.push((name, group.len() - before));
        }
    }
    (!group.is_empty()).then_some(Counters { each })
}
