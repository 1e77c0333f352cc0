//! Writes on the lower border what is known of the selected row, with its whole name.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::page::{ScreenPage, framed};
use super::{called, row_name, table};
use crate::names::shown;
use crate::number::{share, si, time};
use crate::profile::Amount;
use crate::tui::model::profile::{CallMeasure, FrameIndex, Listing, ProfileState, RatioRow, RowCalls};
use crate::tui::text::{cut, cut_middle, cut_name, width};
use crate::tui::theme::Role;

/// Cells of the event's name.
const MOST_EVENT: usize = 24;

/// What is selected.
struct SelectedRow {
    total: Amount,
    own: Amount,
    calls: Option<RowCalls>,
    ratio: Option<RatioRow>,
    /// The last frame of a path; modules, threads and processes have none.
    frame: Option<FrameIndex>,
}

impl SelectedRow {
    fn of(profile: &ProfileState) -> Self {
        let (place, row) = (profile.place(), profile.place().selected);
        let of_list = |calls, ratio, frame| {
            let at = profile.sums().map(|list| list.at()).unwrap_or_default();
            Self { total: at.total, own: at.own, calls, ratio: Some(ratio), frame }
        };
        match profile.listing() {
            Listing::Functions => {
                let frame = profile.functions.selected;
                of_list(profile.calls_of_function(frame), RatioRow::Function(frame), Some(frame))
            }
            Listing::Modules => of_list(None, RatioRow::Module(profile.modules.selected), None),
            Listing::CallTree | Listing::Callers => Self {
                total: place.shape.total(row),
                own: place.own(row),
                calls: profile.calls_of_node(row),
                ratio: profile.ratio_row(place, row),
                frame: profile.task_of_row(place, row).is_none().then(|| place.shape.frame(place.end_of(row))),
            },
        }
    }

    /// What is said of it, the most important first.
    fn words(&self, page: &ScreenPage<'_>, profile: &ProfileState) -> Vec<String> {
        let mut said = vec![match profile.has_samples() {
            true if profile.is_off_cpu() => {
                format!("{} of {}", time(self.total.weight as f64), time(profile.whole().weight as f64))
            }
            true => samples(profile, self.total),
            false => share(profile.share(self.total)),
        }];
        // Beside what was sampled of an event stands how long the calls took.
        let measure = profile.call_measure().unwrap_or(&CallMeasure::Time);
        said.extend(self.calls.iter().flat_map(|calls| called::words(page, calls, measure)));
        let ratio = self.ratio.and_then(|row| profile.ratio_on(row, page.model.monitor.confidence()));
        said.extend(
            ratio
                .zip(profile.ratio_kind())
                .map(|(ratio, kind)| format!("{} {} ({})", kind.head(), si(ratio.value), table::ratio_interval(ratio))),
        );
        let difference = self.ratio.and_then(|row| profile.difference_on(row));
        said.extend(difference.map(|row| format!("B beside A: {}", table::changed(&row))));
        if profile.has_samples()
            && !profile.is_off_cpu()
            && self.own.samples > 0
            && self.own.samples < self.total.samples
        {
            said.push(format!("{} in itself", self.own.samples));
        }
        let places = self
            .frame
            .into_iter()
            .flat_map(|frame| [profile.calls.label(frame).module.clone(), profile.source_of(frame)]);
        said.extend(places.filter(|text| !text.is_empty()));
        said
    }
}

/// `16700 of 18270 samples`; where samples stand for unlike numbers of the event, so that this is another share than
/// that in the table, `45.0% of page-faults in 8 of 115 samples`.
fn samples(profile: &ProfileState, amount: Amount) -> String {
    let whole = profile.whole();
    let samples = format!("{} of {} samples", amount.samples, whole.samples);
    let [of_event, of_samples] =
        [profile.share(amount), amount.samples as f64 / whole.samples.max(1) as f64].map(share);
    if of_event == of_samples {
        return samples;
    }
    let event = cut_middle(&shown(profile.event_name().unwrap_or_default()), MOST_EVENT).into_owned();
    format!("{of_event} of {event} in {samples}")
}

/// `leaf_chase: 16.8k samples, 93.7%; prog, load.c`, and what stands at the right of it.
pub(super) fn draw(page: &mut ScreenPage<'_>, panel: Rect, profile: &ProfileState, beside: &Line<'static>) {
    let mut said = SelectedRow::of(profile).words(page, profile);
    let taken = if beside.width() > 0 { beside.width() + 3 } else { 0 };
    let room = usize::from(panel.width.saturating_sub(6)).saturating_sub(taken);
    // What is selected matters most; how many samples it has stands in the table as a share.
    let least_name = width(&name(profile, room)).min(room * 2 / 3);
    while !said.is_empty() && width(&said.join(", ")) + least_name + 4 > room {
        said.pop();
    }
    let tail = if said.is_empty() { String::new() } else { format!(": {}", said.join(", ")) };
    let name = name(profile, room.saturating_sub(width(&tail) + 2));
    let text = cut(&format!(" {name}{tail} "), room).into_owned();
    let row = Rect { x: panel.x + 2, y: panel.bottom() - 1, width: panel.width.saturating_sub(4), height: 1 };
    page.line(row, Line::from(page.span(Role::Dim, text)));
    if beside.width() > 0 {
        page.line(row, framed(beside.clone()).right_aligned());
    }
}

/// The whole name of what is selected, in so many cells.
fn name(profile: &ProfileState, room: usize) -> String {
    match profile.listing() {
        Listing::Functions => cut_name(&profile.calls.label(profile.functions.selected).name, room).into_owned(),
        Listing::Modules => cut_middle(&profile.module(profile.modules.selected).name, room).into_owned(),
        Listing::CallTree | Listing::Callers => row_name(profile, profile.place().selected, room),
    }
}
