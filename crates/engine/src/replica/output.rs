//! The output of attempts as messages between replicas.

use std::sync::Arc;

use laneway_core::{Fence, LaneName, TaskId};
use laneway_store::PUBLISHED_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::events::update::Update;

/// Longer text goes out in several pieces, each of which fits into a message whatever its characters are.
const PIECE_CHARS_MAX: usize = 800;

/// Output of one attempt.
#[derive(Serialize, Deserialize)]
pub(super) struct Output {
    task: TaskId,
    fence: Fence,
    lanes: Vec<LaneName>,
    content: Content,
}

#[derive(Serialize, Deserialize)]
enum Content {
    Delta(Arc<str>),
    Progress(Option<Arc<str>>, Arc<Value>),
    Usage(Arc<Value>),
}

#[derive(Deserialize)]
struct Message {
    replica: u64,
    outputs: Vec<Output>,
}

impl Output {
    /// The output that an update is, if it is one.
    pub(super) fn of(update: &Update, lanes: &[LaneName]) -> Option<Output> {
        let (task, fence, content) = match update {
            Update::Delta { task, fence, text } => (*task, *fence, Content::Delta(Arc::clone(text))),
            Update::Progress { task, fence, name, value } => {
                (*task, *fence, Content::Progress(name.clone(), Arc::clone(value)))
            }
            Update::Usage { task, fence, value } => (*task, *fence, Content::Usage(Arc::clone(value))),
            _ => return None,
        };
        Some(Output { task, fence, lanes: lanes.to_vec(), content })
    }

    fn into_update(self) -> (Update, Vec<LaneName>) {
        let Output { task, fence, lanes, content } = self;
        let update = match content {
            Content::Delta(text) => Update::Delta { task, fence, text },
            Content::Progress(name, value) => Update::Progress { task, fence, name, value },
            Content::Usage(value) => Update::Usage { task, fence, value },
        };
        (update, lanes)
    }
}

/// Packs outputs into as few messages as possible. Drops an output that fits into none.
pub(super) fn messages(replica: u64, outputs: Vec<Output>) -> Vec<String> {
    let room = PUBLISHED_BYTES_MAX - 64;
    let pieces = outputs.into_iter().flat_map(in_pieces);
    let parts = pieces.filter_map(|piece| serde_json::to_string(&piece).ok());
    let mut lists: Vec<String> = Vec::new();
    for part in parts.filter(|part| part.len() < room) {
        match lists.last_mut().filter(|list| list.len() + part.len() < room) {
            Some(list) => {
                list.push(',');
                list.push_str(&part);
            }
            None => lists.push(part),
        }
    }
    lists.into_iter().map(|list| format!("{{\"replica\":{replica},\"outputs\":[{list}]}}")).collect()
}

/// The updates in a message, with their lanes; none if it came from this replica or from another program.
pub(super) fn updates(message: &str, replica: u64) -> impl Iterator<Item = (Update, Vec<LaneName>)> {
    let message: Option<Message> = serde_json::from_str(message).ok();
    let foreign = message.filter(|message| message.replica != replica);
    foreign.into_iter().flat_map(|message| message.outputs).map(Output::into_update)
}

fn in_pieces(output: Output) -> Vec<Output> {
    let Output { task, fence, lanes, content: Content::Delta(text) } = output else { return vec![output] };
    let mut pieces = Vec::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(PIECE_CHARS_MAX).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(Output { task, fence, lanes: lanes.clone(), content: Content::Delta(piece.into()) });
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: String) -> Output {
        Output {
            task: TaskId(u128::MAX),
            fence: Fence(7),
            lanes: vec![LaneName::main()],
            content: Content::Delta(text.into()),
        }
    }

    fn texts(messages: &[String]) -> Vec<String> {
        let read = |message: &String| serde_json::from_str::<Message>(message).unwrap().outputs;
        let text = |output: Output| match output.content {
            Content::Delta(text) => text.to_string(),
            Content::Progress(_, value) | Content::Usage(value) => value.to_string(),
        };
        messages.iter().flat_map(read).map(text).collect()
    }

    #[test]
    fn output_fits_whatever_its_characters_are_and_keeps_its_order() {
        let long: String = (0..5000).map(|number| ["\u{1}", "\u{1f600}", "a", "\""][number % 4]).collect();
        let outputs = (0..50).map(|number| delta(number.to_string())).chain([delta(long.clone())]).collect();
        let packed = messages(3, outputs);
        assert!(packed.len() > 2 && packed.iter().all(|message| message.len() <= PUBLISHED_BYTES_MAX));
        let all: String = (0..50).map(|number| number.to_string()).chain([long]).collect();
        assert_eq!(texts(&packed).concat(), all);
        assert_eq!(packed.iter().map(|message| texts(std::slice::from_ref(message)).len()).next(), Some(50));
    }

    #[test]
    fn output_that_fits_nowhere_is_dropped_alone() {
        let huge = Output {
            content: Content::Progress(None, Arc::new("x".repeat(PUBLISHED_BYTES_MAX).into())),
            ..delta(String::new())
        };
        assert_eq!(texts(&messages(3, vec![delta("a".into()), huge, delta("b".into())])), ["a", "b"]);
    }
}
