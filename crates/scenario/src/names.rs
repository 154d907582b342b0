//! The names that a script gives to tasks.

use std::collections::BTreeMap;

use laneway_core::{MessageId, TaskId};

/// Numbers names in the order in which a script mentions them.
#[derive(Clone, Default)]
pub(crate) struct Names {
    by_name: BTreeMap<String, TaskId>,
    names: Vec<String>,
    /// The turns of messages: `a.2` is the second turn that message `a` is the first of.
    turns: BTreeMap<TaskId, String>,
}

/// Of how many turns of a message the names are known.
const TURNS_MAX: u32 = 20;
/// The length of an id as text.
const ID_CHARS: usize = 36;

impl Names {
    pub(crate) fn id(&mut self, name: &str) -> TaskId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        self.names.push(name.to_owned());
        let id = TaskId(self.names.len() as u128);
        self.by_name.insert(name.to_owned(), id);
        id
    }

    /// Makes the turns of a message known.
    pub(crate) fn is_message(&mut self, id: TaskId) {
        let name = self.name(id);
        for number in 1..=TURNS_MAX {
            let turn = TaskId::of_turn(MessageId(id.0), number);
            self.turns.insert(turn, format!("{name}.{number}"));
            self.by_name.insert(format!("{name}.{number}"), turn);
        }
    }

    pub(crate) fn name(&self, id: TaskId) -> String {
        if let Some(turn) = self.turns.get(&id) {
            return turn.clone();
        }
        let index = usize::try_from(id.0).ok().and_then(|number| number.checked_sub(1));
        index.and_then(|index| self.names.get(index)).cloned().unwrap_or_else(|| id.to_string())
    }

    /// `text` with each id replaced by its task's name.
    pub(crate) fn with_names(&self, text: &str) -> String {
        let mut words = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            match rest.get(..ID_CHARS).and_then(read_id) {
                Some(id) => {
                    words.push_str(&self.name(id));
                    rest = &rest[ID_CHARS..];
                }
                None => {
                    words.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        words
    }
}

fn read_id(text: &str) -> Option<TaskId> {
    let looks_right = text.char_indices().all(|(place, char)| match place {
        8 | 13 | 18 | 23 => char == '-',
        _ => char.is_ascii_hexdigit(),
    });
    let digits: String = text.chars().filter(|char| *char != '-').collect();
    looks_right.then(|| u128::from_str_radix(&digits, 16).ok()).flatten().map(TaskId)
}
