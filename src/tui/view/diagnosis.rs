//! Draws what stands out, in lines above the table of events.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::diagnosis::{Diagnosis, DiagnosisRule, EvidenceScreen, MOST_SHOWN, nothing};
use crate::tui::keys::Action;
use crate::tui::layout::split_above;
use crate::tui::model::{ClickTarget, DiagnosisRows};
use crate::tui::screen::Screen;
use crate::tui::symbols::{INFO, WARN};
use crate::tui::text::{cut, width, wrap};
use crate::tui::theme::Role;

/// Cells of the glyph before the words, and of the key behind them.
const GLYPH: usize = 3;
const KEY: usize = 11;
/// Rows of a region below which a sentence has one line, and there is one sentence.
const LEAST_REGION: u16 = 16;

/// Draws what stands out; gives the region below it. Before two intervals there is nothing to say it by; the line is
/// there all the same, so that the table stays where it is.
pub(super) fn above_events(page: &mut ScreenPage<'_>, area: Rect) -> Rect {
    let model = page.model;
    if area.height < LEAST_REGION / 2 {
        return area;
    }
    let is_low = area.height < LEAST_REGION;
    let room = usize::from(area.width).saturating_sub(GLYPH + KEY).max(8);
    let most = if is_low { 1 } else { MOST_SHOWN };
    let mut lines: Vec<(Line<'static>, Option<Screen>)> = Vec::new();
    for diagnosis in model.diagnoses.iter().take(most) {
        let screen = screen(page, diagnosis);
        let sentence = sentence(page, diagnosis, screen, (room, is_low));
        // Whole sentences, in a fifth of the region.
        if !lines.is_empty() && lines.len() + sentence.len() > usize::from(area.height / 5) {
            break;
        }
        lines.extend(sentence.into_iter().map(|line| (line, Some(screen))));
    }
    if lines.is_empty() {
        let words = if model.monitor.intervals() < 2 { "" } else { nothing(&model.monitor) };
        lines.push((Line::from(page.span(Role::Dim, format!("   {words}"))), None));
    }
    // Rows stay when sentences go: else the table would jump with each of them.
    let region = (area.width, area.height);
    let held = Some(model.diagnosis_rows).filter(|held| held.region == region).map_or(0, |held| held.rows);
    let rows = lines.len().max(held);
    page.drawn.diagnosis_rows = Some(DiagnosisRows { region, rows });
    let (above, below) = split_above(area, u16::try_from(rows).unwrap_or(u16::MAX));
    for ((line, screen), row) in lines.into_iter().zip(above.rows()) {
        page.line(row, line);
        if let Some(screen) = screen {
            page.target(row, ClickTarget::Screen(screen));
        }
    }
    below
}

/// The screen that shows more: of what runs, the threads where no stacks are.
fn screen(page: &ScreenPage<'_>, diagnosis: &Diagnosis) -> Screen {
    let is_of_cpu_time = matches!(diagnosis.rule, DiagnosisRule::CpuBound | DiagnosisRule::KernelTime);
    match screen_of(diagnosis.rule.screen()) {
        Screen::Profile if page.model.profile.is_none() && is_of_cpu_time => Screen::Threads,
        found => found,
    }
}

fn screen_of(evidence: EvidenceScreen) -> Screen {
    match evidence {
        EvidenceScreen::Detail => Screen::Detail,
        EvidenceScreen::Profile => Screen::Profile,
        EvidenceScreen::Groups => Screen::Groups,
        EvidenceScreen::Threads => Screen::Threads,
    }
}

/// `▲ 6 threads wait for locks ...       7 Threads`
fn sentence(
    page: &ScreenPage<'_>,
    diagnosis: &Diagnosis,
    screen: Screen,
    (room, is_low): (usize, bool),
) -> Vec<Line<'static>> {
    let (role, glyph) = if diagnosis.rule.is_fault() { (Role::Warn, WARN) } else { (Role::Info, INFO) };
    let key = page.model.options.keymap.key_of(Action::Go(screen));
    let words = match is_low {
        true => vec![cut(&diagnosis.text, room).into_owned()],
        false => wrap(&diagnosis.text, room),
    };
    let line = |(place, words): (usize, String)| {
        let first = if place == 0 { format!(" {glyph} ") } else { "   ".to_owned() };
        let mut line = Line::from(vec![page.span(role, first), page.span(Role::Text, words.clone())]);
        if place == 0 {
            let gap = room.saturating_sub(width(&words));
            line.push_span(page.span(Role::Text, " ".repeat(gap)));
            line.push_span(page.span(Role::Key, format!(" {key} ")));
            line.push_span(page.span(Role::Dim, screen.name()));
        }
        line
    };
    words.into_iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;

    use super::*;
    use crate::builders;
    use crate::diagnosis::DiagnosisRule;
    use crate::estimate::EstimatorKind;
    use crate::tui::model::{DrawnScreen, ScreenModel};
    use crate::tui::options::ScreenOptions;

    #[test]
    fn a_sentence_that_is_cut_says_so() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let model = ScreenModel::new(monitor, &ScreenOptions::default());
        let mut buffer = Buffer::empty(Rect::new(0, 0, 60, 1));
        let page =
            ScreenPage { model: &model, buffer: &mut buffer, targets: Vec::new(), drawn: DrawnScreen::default() };
        let diagnosis = Diagnosis {
            rule: DiagnosisRule::CpuBound,
            text: "the program was on 1.98 CPUs, and waited for nothing else".into(),
            why: String::new(),
            sure: String::new(),
        };
        let told = |room, is_low| {
            let lines = sentence(&page, &diagnosis, Screen::Threads, (room, is_low));
            lines.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let low = told(30, true);
        assert!(low.len() == 1 && low[0].contains('…'), "{low:?}");
        assert!(told(30, false).len() > 1 && told(80, true).concat().contains("nothing else"));
    }

    #[test]
    fn the_table_stays_when_sentences_go_but_for_another_size() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &ScreenOptions::default());
        model.diagnosis_rows = DiagnosisRows { region: (60, 40), rows: 3 };
        let rows = |area: Rect| {
            let mut buffer = Buffer::empty(area);
            let drawn = DrawnScreen::default();
            let mut page = ScreenPage { model: &model, buffer: &mut buffer, targets: Vec::new(), drawn };
            let below = above_events(&mut page, area);
            (below.y, page.drawn.diagnosis_rows)
        };
        let held = DiagnosisRows { region: (60, 40), rows: 3 };
        assert_eq!(rows(Rect::new(0, 0, 60, 40)), (3, Some(held)));
        let anew = DiagnosisRows { region: (60, 30), rows: 1 };
        assert_eq!(rows(Rect::new(0, 0, 60, 30)), (1, Some(anew)));
    }

    #[test]
    fn each_rule_names_a_screen_and_its_key() {
        for evidence in DiagnosisRule::ALL.map(DiagnosisRule::screen) {
            let screen = screen_of(evidence);
            let place = Screen::ALL.iter().position(|one| *one == screen);
            assert_eq!(screen.word(), evidence.name());
            assert_eq!(place.map(|place| place + 1), evidence.key().to_digit(10).map(|key| key as usize));
        }
    }
}
