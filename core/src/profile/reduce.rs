//! Reduces a tree to what a profile with fewer samples would have been.

use super::node::NodeId;
use super::tree::Tree;
use super::weight::{Amount, EventColumn};

impl Tree {
    /// Keeps one sample of `period`, in the order of [`Tree::walk`]: a sequence with s samples gives
    /// (s + carry) / period, and (s + carry) modulo period is carried on. A sequence that no event gives a
    /// sample is left out: nothing is counted on it, nor its calls. The total weight is kept, except for the remainder
    /// at the end: each kept sample stands for `period` samples. A period of 0 leaves everything as it is.
    ///
    /// Samples of all events sum to the whole part of total / period, so that what is carried past the end is left out.
    /// A sum without samples counts its weight as samples: its weights are divided.
    pub fn down_sample(&mut self, period: u64) {
        if period == 0 {
            return;
        }
        let order: Vec<NodeId> = self.walk().map(|node| node.id()).collect();
        let sums: Vec<bool> = self.events.iter().map(|event| !event.has_samples()).collect();
        for (column, is_sum) in self.columns.iter_mut().zip(sums) {
            down_sample_column(column, &order, period, is_sum);
        }
        for id in order {
            let stays = self.columns.iter().any(|column| column.get(id.index()) != Amount::ZERO);
            if !stays {
                self.nodes[id.index()].calls = 0;
            }
        }
    }
}

fn down_sample_column(column: &mut EventColumn, order: &[NodeId], period: u64, is_sum: bool) {
    let mut carry = Amount::ZERO;
    for id in order {
        let amount = carry.plus(column.get(id.index()));
        let samples = if is_sum { amount.weight } else { amount.samples };
        let (stay, rest) = (samples / period, samples % period);
        if is_sum {
            column.set(id.index(), Amount { samples: 0, weight: stay });
            carry = Amount { samples: 0, weight: rest };
            continue;
        }
        // What is carried on keeps its share of the weight; with no sample, all of it.
        let carried = share(amount.weight, rest, samples);
        column.set(id.index(), Amount { samples: stay, weight: amount.weight - carried });
        carry = Amount { samples: rest, weight: carried };
    }
}

/// `weight` x `part` / `whole`, rounded down; all of the weight where there is no whole.
fn share(weight: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return weight;
    }
    (u128::from(weight) * u128::from(part) / u128::from(whole)) as u64
}
