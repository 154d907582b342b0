//! A file's text with the choices written into it.

use std::cmp::Reverse;
use std::ops::Range;

use crate::sites::{Edit, question};

/// A text, and which part of it belongs to which change.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) text: String,
    pub(crate) parts: Vec<(u32, Range<usize>)>,
}

impl Written {
    /// Writes all edits into a text, but for the changes that `leave_out` names.
    pub(crate) fn new(text: &str, mut edits: Vec<&Edit>, leave_out: &dyn Fn(u32) -> bool) -> Written {
        // What encloses comes before what it encloses, and what is put before something before that.
        edits.sort_by_key(|edit| match edit {
            Edit::More { at, .. } => (*at, Reverse(usize::MAX)),
            Edit::Choice { range, .. } => (range.start, Reverse(range.end)),
        });
        let mut written = Written::default();
        written.write(text, 0..text.len(), &edits, leave_out);
        written
    }

    fn write(
        &mut self,
        text: &str,
        range: Range<usize>,
        mut edits: &[&Edit],
        leave_out: &dyn Fn(u32) -> bool,
    ) {
        let mut from = range.start;
        while let [edit, rest @ ..] = edits {
            edits = rest;
            match edit {
                Edit::More { at, switch, text: more } => {
                    self.text.push_str(&text[from..*at]);
                    from = *at;
                    if !leave_out(*switch) {
                        self.part(*switch, more);
                    }
                }
                Edit::Choice { range, others } => {
                    self.text.push_str(&text[from..range.start]);
                    from = range.end;
                    let within = edits.iter().take_while(|edit| edit.start() < range.end).count();
                    let (inner, after) = edits.split_at(within);
                    edits = after;
                    self.choice(text, range.clone(), others, inner, leave_out);
                }
            }
        }
        self.text.push_str(&text[from..range.end]);
    }

    /// Only one change is on at a time, so that only the text that was there before has others within.
    fn choice(
        &mut self,
        text: &str,
        range: Range<usize>,
        others: &[(u32, String)],
        inner: &[&Edit],
        leave_out: &dyn Fn(u32) -> bool,
    ) {
        let others = others.iter().filter(|(switch, _)| !leave_out(*switch));
        let mut open = "";
        for (switch, other) in others {
            self.text.push_str(if open.is_empty() { "(" } else { "" });
            open = "{ ";
            self.part(*switch, &format!("if {} {{ {other} }} ", question(*switch)));
            self.text.push_str("else ");
        }
        self.text.push_str(open);
        self.write(text, range, inner, leave_out);
        self.text.push_str(if open.is_empty() { "" } else { " })" });
    }

    fn part(&mut self, switch: u32, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.parts.push((switch, start..self.text.len()));
    }

    /// The changes that a part of the text belongs to.
    pub(crate) fn at(&self, range: &Range<usize>) -> Option<u32> {
        let belongs = |(_, part): &&(u32, Range<usize>)| part.start <= range.start && range.end <= part.end;
        self.parts.iter().find(belongs).map(|(switch, _)| *switch)
    }
}

impl Edit {
    fn start(&self) -> usize {
        match self {
            Edit::More { at, .. } => *at,
            Edit::Choice { range, .. } => range.start,
        }
    }
}
