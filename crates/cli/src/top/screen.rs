//! Draws the screen. Readable at 80 x 24; what does not fit is cut, the numbers last.

use laneway_protocol::LaneNumbers;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, TableState, Wrap};

use super::view::{Mode, View};
use crate::shown;

/// How wide the bar of a lane is.
const BAR: usize = 14;
/// How many lines tell of the task that has waited for longest.
const LONGEST_LINES: u16 = 5;
const KEYS: &str = "↑↓ lane  p pause  r resume  c clear  l limit  x cancel longest  q quit";

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let parts = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(4),
        Constraint::Length(LONGEST_LINES),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, _, lanes, longest, said, keys] = Layout::vertical(parts).areas(frame.area());
    draw_head(frame, head, view);
    draw_lanes(frame, lanes, view);
    draw_longest(frame, longest, view);
    draw_said(frame, said, view);
    frame.render_widget(Paragraph::new(KEYS).style(faint()), keys);
}

/// No colours where somebody asked for none.
fn colour(colour: Color) -> Style {
    match crate::output::in_colour() {
        true => Style::new().fg(colour),
        false => Style::new(),
    }
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let [left, right] = Layout::horizontal([Constraint::Min(20), Constraint::Length(34)]).areas(area);
    let title = Line::from(vec![Span::styled("Laneway ", bold()), Span::raw(view.url.as_str())]);
    frame.render_widget(Paragraph::new(title), left);
    let numbers = match (&view.away, &view.status) {
        (Some(_), _) => Span::styled("AWAY: trying again", bold().patch(colour(Color::Red))),
        (None, None) => Span::raw("asking …"),
        (None, Some(status)) => {
            let limit = shown::limit(status.max_concurrent);
            Span::styled(format!("running {}/{limit}  waiting {}", status.running, status.waiting), bold())
        }
    };
    frame.render_widget(Paragraph::new(numbers).alignment(Alignment::Right), right);
}

fn draw_lanes(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    let headings = ["LANE", "", "RUN", "WAIT", "P50", "P90", "P99", "REFUSED"];
    let heading = headings.iter().enumerate().map(|(column, heading)| match column {
        0 | 1 => Cell::from(*heading),
        _ => right((*heading).to_owned()),
    });
    let rows = view.lanes.iter().map(|lane| {
        let refused = view.refused.get(&lane.label).copied().unwrap_or_default();
        let state = crate::lanes::state(lane);
        let name = if state.is_empty() { lane.lane.clone() } else { format!("{} ({state})", lane.lane) };
        Row::new([
            Cell::from(shown::plain(&name)).style(if state.is_empty() {
                Style::new()
            } else {
                colour(Color::Yellow)
            }),
            Cell::from(bar(lane)),
            right(format!("{}/{}", lane.running, shown::limit(lane.max_concurrency))),
            right((lane.waiting + lane.retrying).to_string()),
            right(shown::maybe(lane.wait.p50_ms)),
            right(shown::maybe(lane.wait.p90_ms)),
            right(shown::maybe(lane.wait.p99_ms)),
            right(if refused == 0 { String::new() } else { refused.to_string() }),
        ])
    });
    let widths = [
        Constraint::Min(18),
        Constraint::Length(BAR as u16),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(6),
        Constraint::Length(7),
    ];
    let table = Table::new(rows, widths)
        .header(Row::new(heading).style(bold()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .style(if view.away.is_some() { faint() } else { Style::new() });
    let chosen = (!view.lanes.is_empty()).then(|| view.chosen_row());
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(chosen));
}

/// What runs as full blocks, what waits as half ones, and the room that is left as dots. A limit that does not fit is
/// drawn to scale.
fn bar(lane: &LaneNumbers) -> Line<'static> {
    let limit = lane.max_concurrency.unwrap_or(lane.running.max(1)).max(1) as usize;
    let room = BAR - 4;
    let scaled = |count: usize| if limit > room { (count * room).div_ceil(limit) } else { count };
    let running = scaled(lane.running as usize).min(room);
    let free = scaled(limit).min(room).saturating_sub(running);
    let waiting = ((lane.waiting + lane.retrying) as usize).min(BAR - running - free);
    let style = if lane.waiting > 0 { colour(Color::Yellow) } else { colour(Color::Green) };
    Line::from(vec![
        Span::styled("█".repeat(running), style),
        Span::styled("·".repeat(free), faint()),
        Span::styled("▒".repeat(waiting), colour(Color::Yellow)),
    ])
}

fn draw_longest(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let mut lines = vec![Line::from("")];
    match (&view.away, &view.longest) {
        (Some(why), _) => {
            lines.push(Line::styled(
                "The server cannot be reached; what is shown is old.",
                colour(Color::Red),
            ));
            lines.push(Line::from(shown::plain(why)));
        }
        (None, None) => lines.push(Line::styled("Nothing waits.", faint())),
        (None, Some(longest)) => {
            let task = &longest.task;
            let lane = task.lanes.first().map(String::as_str).unwrap_or_default();
            let waited = shown::since(task.submitted_at);
            let title = format!("Longest waiting, {waited}: {} in {lane}", task.id);
            lines.push(Line::styled(shown::plain(&title), bold()));
            lines.push(Line::from(shown::plain(&longest.why)));
        }
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), area);
}

fn draw_said(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let line = match &view.mode {
        Mode::Looking => Line::from(view.message.as_str()),
        Mode::Asking { question, .. } => {
            Line::styled(format!("{} [y/n]", shown::plain(question)), bold().patch(colour(Color::Yellow)))
        }
        Mode::Typing { lane, digits } => {
            let text =
                format!("New limit of lane {}: {digits}_  Enter, or Esc to leave it", shown::plain(lane));
            Line::styled(text, bold().patch(colour(Color::Yellow)))
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}
