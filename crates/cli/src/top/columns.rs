//! The columns of the table of lanes. The most important ones that fit are shown, each in full width.

use laneway_protocol::LaneNumbers;
use ratatui::layout::{Alignment, Constraint};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::Cell;

use super::screen::{BAR, bar, colour};
use crate::output::format;

/// The width of a lane's name on a narrow and on a wide screen.
const NAME_MIN: u16 = 12;
const NAME: u16 = 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    Bar,
    Run,
    Wait,
    P50,
    P90,
    P95,
    P99,
    Refused,
}

/// All columns, in the order of the screen.
const ALL: [Column; 9] = [
    Column::Name,
    Column::Bar,
    Column::Run,
    Column::Wait,
    Column::P50,
    Column::P90,
    Column::P95,
    Column::P99,
    Column::Refused,
];
/// The optional columns, the most important first.
const BY_WEIGHT: [Column; 6] =
    [Column::P99, Column::Bar, Column::Refused, Column::P95, Column::P50, Column::P90];

/// The columns that fit on a screen.
pub(super) fn fitting(width: u16) -> Vec<Column> {
    let always = [Column::Run, Column::Wait];
    let needed = |columns: &[Column]| columns.iter().map(|column| column.cells() + 1).sum::<u16>();
    let name = if width >= 60 { NAME } else { NAME_MIN };
    let mut room = width.saturating_sub(name + needed(&always));
    let mut kept = vec![Column::Name, Column::Run, Column::Wait];
    for column in BY_WEIGHT {
        let Some(left) = room.checked_sub(column.cells() + 1) else { break };
        room = left;
        kept.push(column);
    }
    ALL.into_iter().filter(|column| kept.contains(column)).collect()
}

impl Column {
    fn cells(self) -> u16 {
        match self {
            Column::Name => NAME_MIN,
            Column::Bar => BAR as u16,
            Column::Refused => 7,
            _ => 6,
        }
    }

    pub(super) fn width(self) -> Constraint {
        match self {
            Column::Name => Constraint::Fill(1),
            column => Constraint::Length(column.cells()),
        }
    }

    pub(super) fn heading(self) -> Cell<'static> {
        match self {
            Column::Name => Cell::from("LANE"),
            Column::Bar => Cell::from(""),
            Column::Run => right("RUN".to_owned()),
            Column::Wait => right("WAIT".to_owned()),
            Column::P50 => right("P50".to_owned()),
            Column::P90 => right("P90".to_owned()),
            Column::P95 => right("P95".to_owned()),
            Column::P99 => right("P99".to_owned()),
            Column::Refused => right("REFUSED".to_owned()),
        }
    }

    pub(super) fn cell(self, lane: &LaneNumbers, refused: u64) -> Cell<'static> {
        match self {
            Column::Name => name(lane),
            Column::Bar => Cell::from(bar(lane)),
            Column::Run => right(format!("{}/{}", lane.running, format::limit(lane.max_concurrency))),
            Column::Wait => right((lane.waiting + lane.retrying).to_string()),
            Column::P50 => right(format::maybe(lane.wait.p50_ms)),
            Column::P90 => right(format::maybe(lane.wait.p90_ms)),
            Column::P95 => right(format::maybe(lane.wait.p95_ms)),
            Column::P99 => right(format::maybe(lane.wait.p99_ms)),
            Column::Refused => right(if refused == 0 { String::new() } else { refused.to_string() }),
        }
    }
}

fn name(lane: &LaneNumbers) -> Cell<'static> {
    match crate::commands::lanes::state(lane) {
        "" => Cell::from(format::plain(&lane.lane)),
        state => Cell::from(format::plain(&format!("{} ({state})", lane.lane))).style(warning()),
    }
}

fn warning() -> Style {
    colour(Color::Yellow)
}

fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).alignment(Alignment::Right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_screen_shows_fewer_columns_in_full_width() {
        use Column::*;
        let samples = [
            (200, ALL.to_vec()),
            (90, ALL.to_vec()),
            (80, vec![Name, Bar, Run, Wait, P50, P95, P99, Refused]),
            (60, vec![Name, Bar, Run, Wait, P99]),
            (40, vec![Name, Run, Wait, P99]),
            (20, vec![Name, Run, Wait]),
            (1, vec![Name, Run, Wait]),
        ];
        for (width, columns) in samples {
            assert_eq!(fitting(width), columns, "{width}");
        }
    }
}
