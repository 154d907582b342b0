//! What runs say and nobody keeps, for those who watch at other replicas. Only those hear it who listen at the time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use laneway_core::{Fence, LaneName, TaskId};
use laneway_store::{PUBLISHED_BYTES_MAX, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::events::watch::{Update, Watchers};

/// How long after something was said the next is: what is said meanwhile goes together.
const PAUSE: Duration = Duration::from_millis(10);
/// So much may wait to be said. What is beyond that is not heard elsewhere.
const WAITING_MAX: usize = 1024;
/// A longer piece of text is said in several, each of which fits whatever it is made of.
const PIECE_CHARS_MAX: usize = 800;
/// The end of a run does not wait for longer until all that it said was said.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);
/// How soon to listen again when that has failed.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// The voice of one replica.
#[derive(Clone)]
pub(crate) struct Voice(Arc<Shared>);

struct Shared {
    said: mpsc::Sender<Said>,
    /// Somebody waits for all to be said.
    hurry: Arc<Notify>,
    /// Somebody here wants to hear the others.
    wanted: watch::Sender<bool>,
    /// The runs that have said something.
    speakers: Mutex<HashSet<TaskId>>,
}

enum Said {
    Words(Words),
    Flush(oneshot::Sender<()>),
}

/// Something that a run says.
#[derive(Serialize, Deserialize)]
struct Words {
    task: TaskId,
    fence: Fence,
    lanes: Vec<LaneName>,
    what: What,
}

#[derive(Serialize, Deserialize)]
enum What {
    Delta(Arc<str>),
    Progress(Arc<Value>),
}

/// What is said together, and by whom.
#[derive(Deserialize)]
struct Message {
    by: u64,
    words: Vec<Words>,
}

/// What carries a voice to others and theirs to us.
pub(crate) struct Ears {
    by: u64,
    store: Weak<dyn Store>,
    said: mpsc::Receiver<Said>,
    hurry: Arc<Notify>,
    wanted: watch::Receiver<bool>,
    watchers: Arc<Watchers>,
}

impl Voice {
    /// The voice of the replica `by`, and what must run for it to be heard.
    pub(crate) fn new(by: u64, store: &Arc<dyn Store>, watchers: Arc<Watchers>) -> (Voice, Ears) {
        let (said, heard) = mpsc::channel(WAITING_MAX);
        let (wanted, wants) = watch::channel(false);
        let hurry = Arc::new(Notify::new());
        let ears = Ears {
            by,
            store: Arc::downgrade(store),
            said: heard,
            hurry: Arc::clone(&hurry),
            wanted: wants,
            watchers,
        };
        (Voice(Arc::new(Shared { said, hurry, wanted, speakers: Mutex::default() })), ears)
    }

    fn speakers(&self) -> std::sync::MutexGuard<'_, HashSet<TaskId>> {
        self.0.speakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells others what a run here says.
    pub(crate) fn say_of_run(&self, update: &Update, lanes: &[LaneName]) {
        if let Update::Delta { task, .. } | Update::Progress { task, .. } = update {
            self.speakers().insert(*task);
        }
        self.say(update, lanes);
    }

    /// Tells others what somebody says of a task.
    pub(crate) fn say(&self, update: &Update, lanes: &[LaneName]) {
        let (task, fence, what) = match update {
            Update::Delta { task, fence, text } => (*task, *fence, What::Delta(Arc::clone(text))),
            Update::Progress { task, fence, value } => (*task, *fence, What::Progress(Arc::clone(value))),
            _ => return,
        };
        // Where it cannot be said fast enough it is not heard.
        drop(self.0.said.try_send(Said::Words(Words { task, fence, lanes: lanes.to_vec(), what })));
    }

    /// Waits until all that a run has said was said, so that others hear of its end after that.
    pub(crate) async fn has_ended(&self, task: TaskId) {
        if !self.speakers().remove(&task) {
            return;
        }
        let (done, said) = oneshot::channel();
        self.0.hurry.notify_one();
        let flush = async {
            if self.0.said.send(Said::Flush(done)).await.is_ok() {
                drop(said.await);
            }
        };
        drop(tokio::time::timeout(FLUSH_WITHIN, flush).await);
    }

    /// Says whether somebody here wants to hear what runs at other replicas say.
    pub(crate) fn overhear(&self, is_wanted: bool) {
        self.0.wanted.send_if_modified(|wanted| std::mem::replace(wanted, is_wanted) != is_wanted);
    }
}

impl Ears {
    pub(crate) async fn run(self) {
        let Ears { by, store, said, hurry, wanted, watchers } = self;
        tokio::join!(speak(by, store.clone(), said, hurry), listen(by, store, wanted, watchers));
    }
}

async fn speak(by: u64, store: Weak<dyn Store>, mut said: mpsc::Receiver<Said>, hurry: Arc<Notify>) {
    let mut taken = Vec::new();
    while said.recv_many(&mut taken, WAITING_MAX).await > 0 {
        let (mut words, mut flushes) = (Vec::new(), Vec::new());
        for said in taken.drain(..) {
            match said {
                Said::Words(said) => words.push(said),
                Said::Flush(done) => flushes.push(done),
            }
        }
        for message in messages(by, words) {
            let Some(store) = store.upgrade() else { return };
            // It is not kept, so it is not tried again either.
            drop(store.publish(message.into()).await);
        }
        let is_hurried = !flushes.is_empty();
        // Whoever does not wait any more need not be told.
        flushes.into_iter().for_each(|done| done.send(()).unwrap_or_default());
        if !is_hurried {
            drop(tokio::time::timeout(PAUSE, hurry.notified()).await);
        }
    }
}

/// Puts what was said into as few messages as it takes. What fits into none is left out.
fn messages(by: u64, words: Vec<Words>) -> Vec<String> {
    let room = PUBLISHED_BYTES_MAX - 64;
    let parts = words.into_iter().flat_map(in_pieces).filter_map(|words| serde_json::to_string(&words).ok());
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
    lists.into_iter().map(|list| format!("{{\"by\":{by},\"words\":[{list}]}}")).collect()
}

fn in_pieces(words: Words) -> Vec<Words> {
    let Words { task, fence, lanes, what: What::Delta(text) } = words else { return vec![words] };
    let mut pieces = Vec::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(PIECE_CHARS_MAX).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(Words { task, fence, lanes: lanes.clone(), what: What::Delta(piece.into()) });
        rest = after;
    }
    pieces
}

/// Listens to the others while somebody wants that.
async fn listen(by: u64, store: Weak<dyn Store>, mut wanted: watch::Receiver<bool>, watchers: Arc<Watchers>) {
    while wanted.wait_for(|wanted| *wanted).await.is_ok() {
        let Some(open) = store.upgrade() else { return };
        let listening = open.subscribe().await;
        drop(open);
        match listening {
            Ok(Some(mut words)) => loop {
                tokio::select! {
                    message = words.recv() => match message {
                        Some(message) => hear(by, &message, &watchers),
                        None => break,
                    },
                    // Nobody wants to any more, or the engine is gone.
                    _ = wanted.wait_for(|wanted| !*wanted) => break,
                }
            },
            // Nobody else can be there.
            Ok(None) => return,
            Err(_) => {}
        }
        if *wanted.borrow() {
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }
}

fn hear(by: u64, message: &str, watchers: &Watchers) {
    // What another program says in other words is not for us.
    let Ok(Message { by: author, words }) = serde_json::from_str(message) else { return };
    for Words { task, fence, lanes, what } in words.into_iter().filter(|_| author != by) {
        let update = match what {
            What::Delta(text) => Update::Delta { task, fence, text },
            What::Progress(value) => Update::Progress { task, fence, value },
        };
        watchers.tell(&update, |lane| lanes.contains(lane));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(text: String) -> Words {
        Words {
            task: TaskId(u128::MAX),
            fence: Fence(7),
            lanes: vec![LaneName::main()],
            what: What::Delta(text.into()),
        }
    }

    fn texts(messages: &[String]) -> Vec<String> {
        let read = |message: &String| serde_json::from_str::<Message>(message).unwrap().words;
        let text = |words: Words| match words.what {
            What::Delta(text) => text.to_string(),
            What::Progress(value) => value.to_string(),
        };
        messages.iter().flat_map(read).map(text).collect()
    }

    #[test]
    fn everything_fits_whatever_it_is_made_of_and_keeps_its_order() {
        let long: String = (0..5000).map(|number| ["\u{1}", "\u{1f600}", "a", "\""][number % 4]).collect();
        let words = (0..50).map(|number| delta(number.to_string())).chain([delta(long.clone())]).collect();
        let said = messages(3, words);
        assert!(said.len() > 2 && said.iter().all(|message| message.len() <= PUBLISHED_BYTES_MAX));
        let all: String = (0..50).map(|number| number.to_string()).chain([long]).collect();
        assert_eq!(texts(&said).concat(), all);
        assert_eq!(said.iter().map(|message| texts(std::slice::from_ref(message)).len()).next(), Some(50));
    }

    #[test]
    fn what_fits_nowhere_is_left_out_alone() {
        let huge = Words {
            what: What::Progress(Arc::new("x".repeat(PUBLISHED_BYTES_MAX).into())),
            ..delta(String::new())
        };
        assert_eq!(texts(&messages(3, vec![delta("a".into()), huge, delta("b".into())])), ["a", "b"]);
    }
}
