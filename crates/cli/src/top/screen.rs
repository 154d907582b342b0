//! Draws the screen for 80 x 24. A smaller screen shows fewer columns and lines, none of them cut.

use laneway_protocol::LaneNumbers;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table, TableState, Wrap};

use super::columns;
use super::view::{Mode, View};
use crate::output::format;

/// How wide the bar of a lane is.
pub(super) const BAR: usize = 14;
/// The help line, from the widest to the narrowest.
const KEYS: [&str; 3] = [
    "↑↓ lane  p pause  r resume  c clear  l limit  x cancel longest  q quit",
    "p pause  r resume  c clear  l limit  q quit",
    "p r c l x  q quit",
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    // A low screen leaves out the longest waiting task in favour of lanes.
    let longest_lines = match frame.area().height {
        0..10 => 0,
        10..14 => 3,
        _ => 5,
    };
    let parts = [
        Constraint::Length(1),
        Constraint::Length(if longest_lines > 0 { 1 } else { 0 }),
        Constraint::Min(2),
        Constraint::Length(longest_lines),
        Constraint::Length(1),
        Constraint::Length(1),
    ];
    let [head, _, lanes, longest, prompt, keys] = Layout::vertical(parts).areas(frame.area());
    draw_head(frame, head, view);
    draw_lanes(frame, lanes, view);
    draw_longest(frame, longest, view);
    draw_prompt(frame, prompt, view);
    let fits = |keys: &&&str| keys.chars().count() <= frame.area().width as usize;
    let shown = KEYS.iter().find(fits).copied().unwrap_or_default();
    frame.render_widget(Paragraph::new(shown).style(faint()), keys);
}

/// A colour, unless `NO_COLOR` is set.
pub(super) fn colour(colour: Color) -> Style {
    if crate::output::in_colour() { Style::new().fg(colour) } else { Style::new() }
}

fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let numbers = match (&view.away, &view.status) {
        (Some(_), _) => Span::styled("AWAY: trying again", bold().patch(colour(Color::Red))),
        (None, None) => Span::raw("connecting …"),
        (None, Some(status)) => {
            let limit = format::limit(status.max_concurrent);
            Span::styled(format!("running {}/{limit}  waiting {}", status.running, status.waiting), bold())
        }
    };
    let parts = [Constraint::Min(0), Constraint::Length(numbers.width() as u16)];
    let [left, right] = Layout::horizontal(parts).spacing(1).areas(area);
    let title = Line::from(vec![Span::styled("Laneway ", bold()), Span::raw(view.url.as_str())]);
    frame.render_widget(Paragraph::new(title), left);
    frame.render_widget(Paragraph::new(numbers).alignment(Alignment::Right), right);
}

fn draw_lanes(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let columns = columns::fitting(area.width);
    let heading = columns.iter().map(|column| column.heading());
    let rows = view.lanes.iter().map(|lane| {
        let refused = view.refused.get(&lane.label).copied().unwrap_or_default();
        Row::new(columns.iter().map(|column| column.cell(lane, refused)))
    });
    let more = view.has_more.then(|| Row::new(["… and more"]));
    let table = Table::new(rows.chain(more), columns.iter().map(|column| column.width()))
        .header(Row::new(heading).style(bold()))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .style(if view.away.is_some() { faint() } else { Style::new() });
    let chosen = (!view.lanes.is_empty()).then(|| view.chosen_row());
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(chosen));
}

/// Running tasks as full blocks, free slots as dots, waiting tasks as shaded blocks. The bar scales a limit that does not
/// fit.
pub(super) fn bar(lane: &LaneNumbers) -> Line<'static> {
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
            lines
                .push(Line::styled("The server cannot be reached; the numbers are old.", colour(Color::Red)));
            lines.push(Line::from(format::plain(why)));
        }
        (None, None) => lines.push(Line::styled("No task waits.", faint())),
        (None, Some(longest)) => {
            let task = &longest.task;
            let lane = task.lanes.first().map(String::as_str).unwrap_or_default();
            let waited = format::since(task.submitted_at);
            let label = task.label.as_ref().map(|label| format!("{}, ", format::short(label)));
            let title =
                format!("Longest waiting, {waited}: {}{} in {lane}", label.unwrap_or_default(), task.id);
            lines.push(Line::styled(format::plain(&title), bold()));
            lines.push(Line::from(format::plain(&longest.why)));
        }
    }
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: true }), area);
}

fn draw_prompt(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let line = match &view.mode {
        Mode::Looking => Line::from(view.message.as_str()),
        Mode::Asking { question, .. } => {
            Line::styled(format!("{} [y/n]", format::plain(question)), bold().patch(colour(Color::Yellow)))
        }
        Mode::Typing { lane, digits } => {
            let text =
                format!("New limit of lane {}: {digits}_  Enter sets it, Esc cancels", format::plain(lane));
            Line::styled(text, bold().patch(colour(Color::Yellow)))
        }
    };
    frame.render_widget(Paragraph::new(line), area);
}
