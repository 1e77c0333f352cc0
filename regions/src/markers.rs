//! Computes what the markers of calls add to regions.

use crate::snapshot::{EventMarker, Marker, NodeCounts};

/// What a marker adds to a time or to the count of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MarkerCost {
    inner: f64,
    outer: f64,
    again: f64,
}

impl From<&Marker> for MarkerCost {
    fn from(marker: &Marker) -> Self {
        Self { inner: marker.inner_ns, outer: marker.outer_ns, again: marker.again_ns }
    }
}

impl From<&EventMarker> for MarkerCost {
    fn from(marker: &EventMarker) -> Self {
        Self { inner: marker.inner, outer: marker.outer, again: marker.again }
    }
}

/// Calls, by what their markers add.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MarkedCalls {
    /// Those that entered the region and left it.
    pub(crate) entered: u64,
    /// Those that were counted while it was open: all of their marker lies within it.
    pub(crate) again: u64,
}

impl MarkedCalls {
    pub(crate) fn of(node: &NodeCounts) -> Self {
        let again = node.again.min(node.calls);
        Self { entered: node.calls - again, again }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { entered: self.entered.saturating_add(other.entered), again: self.again.saturating_add(other.again) }
    }

    pub(crate) fn total(self) -> f64 {
        self.entered as f64 + self.again as f64
    }

    /// What their markers add to their own region.
    pub(crate) fn within(self, cost: &MarkerCost) -> f64 {
        self.entered as f64 * cost.inner + self.again as f64 * cost.again
    }

    /// What they add to each region around.
    pub(crate) fn around(self, cost: &MarkerCost) -> f64 {
        self.entered as f64 * cost.outer + self.again as f64 * cost.again
    }

    /// The part of that which isn't in their own region.
    pub(crate) fn beside(self, cost: &MarkerCost) -> f64 {
        self.entered as f64 * (cost.outer - cost.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_counted_again_adds_the_same_to_its_region_and_to_those_around() {
        let cost = MarkerCost { inner: 2.0, outer: 9.0, again: 4.0 };
        let calls = MarkedCalls { entered: 1, again: 10 };
        assert_eq!([calls.within(&cost), calls.around(&cost), calls.beside(&cost)], [42.0, 49.0, 7.0]);
    }
}
