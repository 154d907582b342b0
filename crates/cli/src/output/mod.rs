//! Prints tables for people and JSON for programs. Only a terminal gets colours.

pub(crate) mod format;
pub(crate) mod progress;
pub(crate) mod sentences;

use std::io::{ErrorKind, IsTerminal, Write};

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use crate::error::CliError;

/// Whether to print colours: standard output is a terminal and `NO_COLOR` is not set.
pub(crate) fn in_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes a text to standard output.
pub(crate) fn text(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(CliError::Unread),
        Err(error) => Err(CliError::Failure(format!("cannot write: {error}"))),
    }
}

/// Writes one line to standard output.
pub(crate) fn line(line: &str) -> Result<(), CliError> {
    text(&format!("{line}\n"))
}

/// Writes a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), CliError> {
    let written = serde_json::to_string_pretty(value);
    line(&written.map_err(|error| CliError::Failure(format!("not writable as JSON: {error}")))?)
}

/// Writes a value as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), CliError> {
    let written = serde_json::to_string(value);
    line(&written.map_err(|error| CliError::Failure(format!("not writable as JSON: {error}")))?)
}

/// A table. A heading that begins with `?` marks a column that a narrow terminal leaves out. A `>` aligns the column to
/// the right.
pub(crate) struct Rows {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// A table with headings and no rows.
    pub(crate) fn under(headings: &[&'static str]) -> Rows {
        Rows { headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row. Cells may hold any text, so control characters are replaced.
    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| crate::output::format::plain(&cell)).collect());
    }

    pub(crate) fn add_all<const N: usize>(&mut self, rows: impl IntoIterator<Item = [String; N]>) {
        rows.into_iter().for_each(|cells| self.add(cells));
    }

    /// The table without this column, if all its cells are empty.
    pub(crate) fn without_empty(mut self, heading: &str) -> Rows {
        let column = self.headings.iter().position(|one| *one == heading);
        if let Some(column) = column.filter(|column| self.rows.iter().all(|row| row[*column].is_empty())) {
            self.headings.remove(column);
            self.rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
        self
    }

    /// Prints the table, or `nothing` if it has no rows.
    pub(crate) fn print(&self, nothing: &str) -> Result<(), CliError> {
        if self.rows.is_empty() {
            return line(nothing);
        }
        let drawn = self.drawn(terminal_width());
        let (heading, rest) = drawn.split_once('\n').unwrap_or((&drawn, ""));
        if in_colour() { text(&format!("\u{1b}[1m{heading}\u{1b}[0m\n{rest}")) } else { text(&drawn) }
    }

    /// The table in lines of at most `width`: it leaves out optional columns, then cuts lines.
    fn drawn(&self, width: Option<usize>) -> String {
        let mut kept: Vec<usize> = (0..self.headings.len()).collect();
        loop {
            let drawn = self.table(&kept);
            let lines = || drawn.lines().map(str::trim_end);
            let Some(width) = width.filter(|width| lines().any(|line| line.chars().count() > *width)) else {
                return lines().map(|line| format!("{line}\n")).collect();
            };
            let Some(gone) = kept.iter().position(|column| self.headings[*column].starts_with('?')) else {
                return lines().map(|line| format!("{}\n", cut(line, width))).collect();
            };
            kept.remove(gone);
        }
    }

    fn table(&self, columns: &[usize]) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        let headings = || columns.iter().map(|column| self.headings[*column].trim_start_matches('?'));
        table.set_header(headings().map(|heading| Cell::new(heading.trim_start_matches('>'))));
        for (column, heading) in table.column_iter_mut().zip(headings()) {
            column.set_padding((0, 2));
            if heading.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for row in &self.rows {
            let cells = columns.iter().map(|column| Cell::new(row.get(*column).map_or("", String::as_str)));
            table.add_row(cells);
        }
        table.to_string()
    }
}

/// The width of the terminal, or `None` if standard output is no terminal.
fn terminal_width() -> Option<usize> {
    let is_terminal = std::io::stdout().is_terminal();
    let size = is_terminal.then(|| ratatui::crossterm::terminal::size().ok()).flatten();
    size.map(|(width, _)| usize::from(width)).filter(|width| *width > 0)
}

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() > width {
        line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
    } else {
        line.to_owned()
    }
}

/// Prints names and values, one pair per line. Further lines of a value are indented to its first.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> Result<(), CliError> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines = String::new();
    for (name, value) in pairs {
        let mut name = *name;
        for line in value.trim_end().split('\n') {
            let line = format!("{name:width$}  {}", crate::output::format::plain(line));
            lines.push_str(line.trim_end());
            lines.push('\n');
            name = "";
        }
    }
    text(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_the_terminal_and_is_complete_elsewhere() {
        let mut rows = Rows::under(&["TASK", "?KIND", "?>TRIES", "ABOUT"]);
        rows.add(["t1", "render", "3", "a frame of the film"].map(str::to_owned));
        let whole = "TASK  KIND    TRIES  ABOUT\nt1    render      3  a frame of the film\n";
        let samples = [
            (None, whole),
            (Some(80), whole),
            (Some(35), "TASK  TRIES  ABOUT\nt1        3  a frame of the film\n"),
            (Some(26), "TASK  ABOUT\nt1    a frame of the film\n"),
            (Some(12), "TASK  ABOUT\nt1    a fra…\n"),
        ];
        for (width, expected) in samples {
            assert_eq!(rows.drawn(width), expected, "{width:?}");
        }
    }
}
