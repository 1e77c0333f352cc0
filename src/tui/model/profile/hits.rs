//! Finds what is searched for in the profile's tree, and goes from one hit to the next.

use super::{FrameIndex, Listing, ProfileState, Search, SearchCount, TreeNode};
use crate::tui::model::step::ListStep;

impl ProfileState {
    pub(in crate::tui) fn set_search(&mut self, text: String) {
        self.search = Search::new(text);
        self.hits.clear();
        self.match_labels();
        self.find();
    }

    /// Frames that are new since the last time.
    pub(super) fn match_labels(&mut self) {
        let labels = self.calls.labels();
        self.hits.truncate(labels.len());
        let new = labels[self.hits.len()..].iter().map(|label| self.search.matches(&label.name));
        self.hits.extend(new);
    }

    pub(in crate::tui) fn is_hit(&self, frame: FrameIndex) -> bool {
        self.hits.get(frame as usize).copied().unwrap_or(false)
    }

    /// Whether the name of a module matches.
    pub(in crate::tui) fn is_module_hit(&self, module: FrameIndex) -> bool {
        self.search.matches(&self.module(module).name)
    }

    /// Whether a row of the list of functions or modules matches.
    fn is_row_hit(&self, row: FrameIndex) -> bool {
        match self.listing() {
            Listing::Modules => self.is_module_hit(row),
            Listing::Functions | Listing::Callers | Listing::CallTree => self.is_hit(row),
        }
    }

    /// The frames that match: of a list of modules those of modules that do.
    fn hit_frames(&self) -> Vec<bool> {
        if self.listing() != Listing::Modules {
            return self.hits.clone();
        }
        let of = self.calls.modules_of_frames();
        let mut modules: Vec<Option<bool>> = Vec::new();
        let mut is_hit = |module: FrameIndex| {
            let place = module as usize;
            modules.resize(modules.len().max(place + 1), None);
            *modules[place].get_or_insert_with(|| self.is_module_hit(module))
        };
        of.iter().map(|&module| is_hit(module)).collect()
    }

    /// A sample counts once, however many frames on its path match.
    pub(super) fn find(&mut self) {
        self.found = SearchCount::default();
        self.matches.clear();
        if self.search.is_empty() {
            return;
        }
        let (place, mut found) = (self.place(), SearchCount::default());
        let (shape, hits) = (&place.shape, self.hit_frames());
        let is_hit = |node| hits.get(shape.frame(node) as usize).copied().unwrap_or(false);
        let mut covered: Option<usize> = None;
        let (mut matches, mut walked) = (Vec::new(), vec![0; shape.len()]);
        for (step, node) in shape.walk(if shape.len() > 0 { place.root() } else { return }).enumerate() {
            walked[node as usize] = step as u32;
            covered = covered.filter(|&depth| shape.depth(node) > depth);
            if is_hit(node) {
                matches.push(place.chain_of(node));
                found.frames += 1;
                if covered.is_none() {
                    covered = Some(shape.depth(node));
                    found.amount = found.amount.plus(shape.total(node));
                }
            }
        }
        // A row with several matches is one to go to; what is zoomed into may be the end of one.
        matches.sort_unstable_by_key(|&row| walked.get(row as usize).copied());
        matches.dedup();
        (self.found, self.matches, self.walked) = (found, matches, walked);
    }

    /// Goes to the next match unless one is selected, or nothing is searched for.
    pub(in crate::tui) fn go_to_match(&mut self, height: usize) -> Result<(), &'static str> {
        let is_there = match self.is_in_sums() {
            true => self.sums().is_some_and(|list| self.is_row_hit(list.selected)),
            false => self.matches.contains(&self.place().chain_of(self.place().selected)),
        };
        if is_there || self.search.is_empty() { Ok(()) } else { self.next_hit(1, height) }
    }

    /// Goes to the next match in the order of the screen, from the last to the first again.
    pub(super) fn next_hit(&mut self, step: isize, height: usize) -> Result<(), &'static str> {
        if self.search.is_empty() {
            return Err("nothing is searched for: / searches");
        }
        let none = Err("no name here matches");
        if let Some(list) = self.sums().filter(|_| self.is_in_sums()) {
            let is_hit = |row: &usize| self.is_row_hit(list.rows[*row].frame);
            let hits: Vec<_> = (0..list.rows.len()).filter(is_hit).collect();
            let at = list.row();
            let Some(row) = beside(&hits, at, step) else { return none };
            self.step(ListStep::By(row.cast_signed() - at.cast_signed()), height);
            return Ok(());
        }
        let place = |node: TreeNode| self.walked.get(node as usize).copied().unwrap_or(0);
        let at = place(self.place().selected);
        let behind = self.matches.partition_point(|&node| place(node) <= at);
        let before = self.matches.partition_point(|&node| place(node) < at);
        let next = if step > 0 { self.matches.get(behind) } else { self.matches[..before].last() };
        let round = if step > 0 { self.matches.first() } else { self.matches.last() };
        let Some(&found) = next.or(round) else { return none };
        self.select_node(found, height);
        Ok(())
    }
}

/// The number after (or before) `at` in a list that goes up, round the end.
fn beside(sorted: &[usize], at: usize, step: isize) -> Option<usize> {
    if step > 0 {
        sorted.iter().find(|&&one| one > at).or(sorted.first()).copied()
    } else {
        sorted.iter().rev().find(|&&one| one < at).or(sorted.last()).copied()
    }
}
