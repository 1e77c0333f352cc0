//! Draws frames as wide as their share, callees below their callers.

use std::borrow::Cow;

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::super::page::ScreenPage;
use super::table::chain_text;
use crate::number::{change, share};
use crate::stacks::WOKEN_BY;
use crate::tui::model::ClickTarget;
use crate::tui::model::profile::{ChainEnd, FrameOrigin, ProfileState, TreeDirection, TreeNode, TreePlace};
use crate::tui::symbols::EIGHTHS;
use crate::tui::text::{cut_front, width};
use crate::tui::theme::{Hue, HueFrom, Role};

/// The left edge of a frame: it tells frames apart where colours don't.
const EDGE: &str = EIGHTHS[0];

/// Stands for frames that are narrower than a cell together.
const MERGED: &str = "…";

/// A frame with less than this has its name, but not its share.
const LEAST_WITH_SHARE: usize = 14;

/// A frame with less than this has no name that doesn't fit: what is left of it would say nothing.
const LEAST_WITH_NAME: usize = 4;

/// What stands side by side on a level.
#[derive(Clone, Copy, Debug, PartialEq)]
struct IcicleBlock {
    what: BlockKind,
    x: u16,
    width: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Frame(TreeNode),
    /// Frames that are under a cell each.
    Merged,
}

/// Draws the levels from `first` on.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, profile: &ProfileState, first: usize) {
    if area.height == 0 || area.width == 0 {
        return;
    }
    let place = profile.place();
    let mut levels = IcicleLevels::new(place, area.width);
    for _ in 0..first {
        levels.descend();
    }
    for row in area.rows() {
        draw_level(page, row, &levels.blocks, profile);
        levels.descend();
    }
}

/// The level at the top, so that the selected frame and those below it are seen; of one that has no room for a name the nearest above
/// it that has.
pub(super) fn first_level(place: &TreePlace, area: Rect) -> usize {
    let (height, row) = (usize::from(area.height), seen(place, area.width));
    let below = usize::from(height > 1 && !place.below(row).is_empty());
    (place.level(row) + 1 + below).saturating_sub(height.max(1))
}

/// The selected frame, or the nearest above it that is wide enough for some of its name.
fn seen(place: &TreePlace, width: u16) -> TreeNode {
    let mut path = place.rows_above(place.selected).collect::<Vec<_>>();
    path.reverse();
    let mut levels = IcicleLevels::new(place, width);
    let mut seen = place.root();
    for row in path {
        let is_seen =
            |block: &IcicleBlock| block.what == BlockKind::Frame(row) && usize::from(block.width) > LEAST_WITH_NAME;
        if !levels.blocks.iter().any(is_seen) {
            break;
        }
        seen = row;
        levels.descend();
    }
    seen
}

/// Levels of the tree, from the root on. A chain of frames takes one.
struct IcicleLevels<'a> {
    place: &'a TreePlace,
    blocks: Vec<IcicleBlock>,
    next: Vec<IcicleBlock>,
}

impl<'a> IcicleLevels<'a> {
    fn new(place: &'a TreePlace, width: u16) -> Self {
        let root = IcicleBlock { what: BlockKind::Frame(place.root()), x: 0, width };
        Self { place, blocks: vec![root], next: Vec::new() }
    }

    fn descend(&mut self) {
        self.next.clear();
        for block in &self.blocks {
            if let BlockKind::Frame(node) = block.what {
                divide(self.place, node, *block, &mut self.next);
            }
        }
        std::mem::swap(&mut self.blocks, &mut self.next);
    }
}

/// The callees of a frame, from its left edge on; what was sampled in itself stays free at the right. Ends are rounded,
/// not widths, so that no cell is lost or won.
fn divide(place: &TreePlace, row: TreeNode, block: IcicleBlock, level: &mut Vec<IcicleBlock>) {
    let shape = &place.shape;
    let cells_each = f64::from(block.width) / shape.total(row).weight.max(1) as f64;
    let cells = |node: TreeNode| shape.total(node).weight as f64 * cells_each;
    let mut from = 0.0;
    let mut add = |what: BlockKind, wide: f64| {
        let [start, end] = [from, from + wide].map(|at: f64| (at.round() as u16).min(block.width));
        from += wide;
        if end > start {
            level.push(IcicleBlock { what, x: block.x + start, width: end - start });
        }
    };
    let mut narrow = 0.0;
    for child in place.below(row) {
        match cells(child) {
            wide if wide >= 1.0 => add(BlockKind::Frame(child), wide),
            wide => narrow += wide,
        }
    }
    add(BlockKind::Merged, narrow);
}

fn draw_level(page: &mut ScreenPage<'_>, row: Rect, blocks: &[IcicleBlock], profile: &ProfileState) {
    for (i, block) in blocks.iter().enumerate() {
        let area = Rect { x: row.x + block.x, width: block.width, ..row };
        match block.what {
            BlockKind::Frame(node) => draw_frame(page, area, node, profile),
            BlockKind::Merged => {
                let style = page.style(Role::FlameUnknown);
                page.buffer.set_style(area.intersection(page.buffer.area), style);
                page.put(area.x + area.width / 2, row.y, MERGED, style);
            }
        }
        // Where nothing follows, the right edge is all that says where it ends.
        let ends_free = blocks.get(i + 1).is_none_or(|next| next.x > block.x + block.width);
        if ends_free && area.right() < row.right() {
            let style = page.style(Role::Dim);
            page.put(area.right(), row.y, EDGE, style);
        }
    }
}

fn draw_frame(page: &mut ScreenPage<'_>, area: Rect, node: TreeNode, profile: &ProfileState) {
    let place = profile.place();
    let selected = node == place.selected;
    let style = frame_style(page, node, profile, selected);
    page.buffer.set_style(area.intersection(page.buffer.area), style);
    let edge = style.patch(if selected { Style::new() } else { page.style(Role::FlameEdge) });
    page.put(area.x, area.y, EDGE, edge);
    page.target(area, ClickTarget::Frame(node));
    let room = usize::from(area.width) - 1;
    let difference = profile.ratio_row(place, node).and_then(|row| profile.difference_on(row));
    let number = match difference {
        Some(row) => change(row.of_all),
        None => share(profile.share(place.shape.total(node))),
    };
    let frames = profile.frames_of_row(place, node);
    let end = profile.kept_end(place, node, &frames);
    let whole: Vec<_> = frames.iter().map(|&frame| profile.name(frame)).collect();
    let names = fitting_waits(&whole, (place.direction, end), room);
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let name_in = |room: usize| chain_text(&names, (place.direction, end), room);
    let kept = match end {
        ChainEnd::First => names.first(),
        ChainEnd::Last => names.last(),
    };
    let kept = kept.map_or(0, |name| width(name));
    let has_name = room >= LEAST_WITH_NAME || names.len() == 1 && kept <= room;
    // A name that is whole without its share says more than one that is cut.
    let beside = room.saturating_sub(2 + width(&number));
    let is_cut_by_share =
        || name_in(beside) != name_in(usize::from(u16::MAX)) && name_in(room) == name_in(usize::from(u16::MAX));
    let with_share = room >= LEAST_WITH_SHARE && kept <= beside && !is_cut_by_share();
    let text = match with_share {
        true => {
            let name = name_in(beside);
            format!("{name}{}{number} ", " ".repeat(room - 1 - width(&name) - width(&number)))
        }
        false if has_name => name_in(room),
        false => String::new(),
    };
    page.buffer.set_stringn(area.x + 1, area.y, text, room, style);
}

/// How names of waits begin.
const WAITS_FOR: &str = "[waits for ";

/// Names, with what was waited for alone where there is no room for them: `[CPU]` of `[waits for a CPU]`.
fn fitting_waits<'a>(whole: &[&'a str], shown: (TreeDirection, ChainEnd), room: usize) -> Vec<Cow<'a, str>> {
    // Chains may be very long, and few of them have one.
    let has_wait = whole.iter().any(|name| name.starts_with(WAITS_FOR) || name.starts_with(WOKEN_BY));
    let has_all = || chain_text(whole, shown, room) == chain_text(whole, shown, usize::from(u16::MAX));
    let stays = !has_wait || has_all();
    whole.iter().map(|name| if stays { Cow::Borrowed(*name) } else { short_wait(name, room) }).collect()
}

fn short_wait(name: &str, room: usize) -> Cow<'_, str> {
    if let Some(waker) = name.strip_prefix(WOKEN_BY).filter(|_| width(name) > room) {
        // The waker tells one from another, and its end tells threads of a pool apart.
        return Cow::Owned(cut_front(waker.trim_end_matches(']'), room).into_owned());
    }
    match name.strip_prefix(WAITS_FOR) {
        Some(what) => Cow::Owned(format!("[{}", what.strip_prefix("a ").unwrap_or(what))),
        None => Cow::Borrowed(name),
    }
}

/// The selected frame is reversed, which every terminal can show.
fn frame_style(page: &ScreenPage<'_>, node: TreeNode, profile: &ProfileState, selected: bool) -> Style {
    let (place, label) = (profile.place(), profile.label(node));
    let mut frames = place.chain(node).into_iter().map(|node| place.shape.frame(node));
    let difference = profile.ratio_row(place, node).and_then(|row| profile.difference_on(row));
    let style = match label.origin {
        _ if frames.any(|frame| profile.is_hit(frame)) => page.style(Role::FlameMatch),
        _ if difference.is_some() => page.theme().changed_frame(difference.map_or(0.0, |row| row.of_all)),
        FrameOrigin::Kernel | FrameOrigin::Jit | FrameOrigin::Unknown => page.style(role_of(label.origin)),
        FrameOrigin::Program | FrameOrigin::Library => match page.theme().hue_from() {
            HueFrom::Origin if label.is_region => page.theme().user_frame(Hue::Hash(label.name_hash)),
            HueFrom::Origin => page.style(role_of(label.origin)),
            HueFrom::Module => page.theme().user_frame(Hue::Hash(label.module_hash)),
            HueFrom::Name => page.theme().user_frame(Hue::Hash(label.name_hash)),
            HueFrom::Own => page.theme().user_frame(Hue::Heat(profile.share(place.own(node)))),
        },
    };
    if selected { style.add_modifier(Modifier::REVERSED | Modifier::BOLD) } else { style }
}

/// How the code of each origin looks.
pub(in crate::tui::view) fn role_of(origin: FrameOrigin) -> Role {
    match origin {
        FrameOrigin::Program => Role::FlameUser,
        FrameOrigin::Library => Role::FlameLibrary,
        FrameOrigin::Kernel => Role::FlameKernel,
        FrameOrigin::Jit => Role::FlameJit,
        FrameOrigin::Unknown => Role::FlameUnknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Amount, Frame, ProfileEvent, SampleMeasure, Tree, TreeOptions};
    use crate::stacks::StackQuality;
    use crate::tui::keys::Action;
    use crate::tui::model::ListStep;

    #[test]
    fn where_the_selected_frame_has_no_cell_the_nearest_above_it_is_seen() {
        let mut tree = Tree::new(TreeOptions::default());
        let (place, event) = (tree.sampled(), tree.event(&ProfileEvent::new("clock", SampleMeasure::Samples)));
        for (stack, samples) in [("main hot", 9_999), ("main a b c d e f g h rare", 1)] {
            let frames: Vec<_> = stack.split(' ').map(|name| tree.frame(&Frame::function(name))).collect();
            tree.stack(place, frames, event, Amount { samples, weight: samples });
        }
        let mut profile = ProfileState::default();
        profile.take(&tree, &StackQuality::default(), "");
        assert!(profile.act(Action::Chains, 9).is_ok(), "each frame is a row");
        profile.step(ListStep::Last, 9);
        let area = Rect::new(0, 0, 80, 4);
        assert!(profile.place().level(profile.place().selected) > 4, "it is far below");
        assert_eq!((seen(profile.place(), 80), first_level(profile.place(), area)), (1, 0));
    }

    #[test]
    fn a_frame_without_room_for_a_name_hides_no_levels() {
        let mut tree = Tree::new(TreeOptions::default());
        let (place, event) = (tree.sampled(), tree.event(&ProfileEvent::new("clock", SampleMeasure::Samples)));
        // Of 80 cells the second has 4.
        for (stack, samples) in [("main hot", 95), ("main a b c d e f g h rare", 5)] {
            let frames: Vec<_> = stack.split(' ').map(|name| tree.frame(&Frame::function(name))).collect();
            tree.stack(place, frames, event, Amount { samples, weight: samples });
        }
        let mut profile = ProfileState::default();
        profile.take(&tree, &StackQuality::default(), "");
        assert!(profile.act(Action::Chains, 9).is_ok(), "each frame is a row");
        profile.step(ListStep::Last, 9);
        let level = |width| first_level(profile.place(), Rect::new(0, 0, width, 4));
        assert_eq!([level(80), level(200)].map(|level| level > 0), [false, true]);
    }

    #[test]
    fn what_is_waited_for_stays_where_the_rest_has_no_room() {
        let of = |names: &[&str], room| {
            fitting_waits(names, (TreeDirection::Calls, ChainEnd::Last), room)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&["[waits for a CPU]"], 17), ["[waits for a CPU]"]);
        assert_eq!(of(&["[waits for a CPU]"], 16), ["[CPU]"]);
        assert_eq!(of(&["main", "[waits for events]"], 12), ["main", "[events]"]);
        // Of who woke it the name, and its end.
        assert_eq!(of(&["[woken by worker-12]"], 20), ["[woken by worker-12]"]);
        assert_eq!(of(&["[woken by worker-12]"], 19), ["worker-12"]);
        assert_eq!(of(&["[woken by worker-12]"], 6), ["…er-12"]);
    }
}
