//! Printing: tables for people, JSON for programs, colours only on a terminal.

use std::io::{ErrorKind, IsTerminal, Write};

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use crate::trouble::Trouble;

/// Whether standard output shows colours: only a terminal does, and only if nobody said otherwise.
pub(crate) fn in_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes a text to standard output.
pub(crate) fn text(text: &str) -> Result<(), Trouble> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Trouble::Unread),
        Err(error) => Err(Trouble::Failure(format!("cannot write: {error}"))),
    }
}

/// Writes one line to standard output.
pub(crate) fn line(line: &str) -> Result<(), Trouble> {
    text(&format!("{line}\n"))
}

/// Writes a value for programs.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Trouble> {
    let written = serde_json::to_string_pretty(value);
    line(&written.map_err(|error| Trouble::Failure(format!("not writable as JSON: {error}")))?)
}

/// Writes a value for programs, on a line of its own: one of many.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), Trouble> {
    let written = serde_json::to_string(value);
    line(&written.map_err(|error| Trouble::Failure(format!("not writable as JSON: {error}")))?)
}

/// Rows under headings. A heading that begins with `>` has its column set to the right.
pub(crate) struct Rows {
    table: Table,
    count: usize,
}

impl Rows {
    /// No rows yet.
    pub(crate) fn under(headings: &[&str]) -> Rows {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(headings.iter().map(|heading| Cell::new(heading.trim_start_matches('>'))));
        for (column, heading) in table.column_iter_mut().zip(headings) {
            column.set_padding((0, 2));
            if heading.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Rows { table, count: 0 }
    }

    /// Adds a row. Cells come from elsewhere: what could move the cursor is not shown as it is.
    pub(crate) fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells.into_iter().map(|cell| Cell::new(crate::shown::plain(&cell))));
        self.count += 1;
    }

    /// Adds rows.
    pub(crate) fn add_all<const N: usize>(&mut self, rows: impl IntoIterator<Item = [String; N]>) {
        rows.into_iter().for_each(|cells| self.add(cells));
    }

    /// Prints them, or a sentence where there are none.
    pub(crate) fn print(&self, nothing: &str) -> Result<(), Trouble> {
        if self.count == 0 {
            return line(nothing);
        }
        let drawn = self.table.to_string();
        let mut lines = drawn.lines().map(str::trim_end);
        let heading = lines.next().unwrap_or_default();
        let heading = match in_colour() {
            true => format!("\u{1b}[1m{heading}\u{1b}[0m"),
            false => heading.to_owned(),
        };
        let rest: String = lines.map(|line| format!("{line}\n")).collect();
        text(&format!("{heading}\n{rest}"))
    }
}

/// Names and values, one below the other; the lines of a long value stand below its first.
pub(crate) fn pairs(pairs: &[(&str, String)]) -> Result<(), Trouble> {
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut lines = String::new();
    for (name, value) in pairs {
        let mut name = *name;
        for line in value.trim_end().split('\n') {
            let line = format!("{name:width$}  {}", crate::shown::plain(line));
            lines.push_str(line.trim_end());
            lines.push('\n');
            name = "";
        }
    }
    text(&lines)
}
