//! Simulated traffic: users who ask in bursts, steady conversations, and workers whose attempts sometimes fail.

use std::time::Duration;

use laneway_client::{AskKind, AskOptions, Client};
use laneway_protocol::{ChatRequest, ClaimBody, CompleteBody, MessageRequest, PriorityRequest, TaskRequest};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long a claim waits for work at the server.
const CLAIM_WAIT_MS: u64 = 5_000;
/// How long a worker pauses after a failed claim.
const PAUSE: Duration = Duration::from_secs(1);
/// One in this number of attempts fails.
const FAILS_ONE_IN: u64 = 4;

const PEOPLE: [&str; 5] = ["ann", "bob", "cat", "dan", "eve"];
const QUESTIONS: [&str; 5] = [
    "Why does the nightly build fail?",
    "Write the release notes",
    "Rename the module and fix what breaks",
    "Summarise yesterday's incidents",
    "Add a test for the empty case",
];

/// Starts the traffic. It stops when the result is dropped.
pub(super) fn start(client: Client) -> JoinSet<()> {
    let mut parts = JoinSet::new();
    parts.spawn(bursts(client.clone(), Chance(1)));
    parts.spawn(conversations(client.clone(), Chance(2)));
    parts.spawn(builds(client.clone(), Chance(3)));
    for number in 1..=2 {
        parts.spawn(worker(client.clone(), format!("worker-{number}"), Chance(10 + number)));
    }
    parts
}

/// Pseudo-random numbers, the same in each demo.
struct Chance(u64);

impl Chance {
    /// A number below `bound`, which is not zero.
    fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }

    async fn rest(&mut self, from_ms: u64, to_ms: u64) {
        sleep(Duration::from_millis(from_ms + self.below(to_ms - from_ms))).await;
    }
}

/// More users ask the coder at once than may wait, so that some are refused.
async fn bursts(client: Client, mut chance: Chance) {
    loop {
        for _ in 0..4 + chance.below(7) {
            let request = question(chance.of(&QUESTIONS), Some(chance.of(&PEOPLE)));
            // The demo is meant to show refusals.
            drop(client.chat_later("coder", AskKind::Chat, &request, &AskOptions::default()).await);
            chance.rest(20, 150).await;
        }
        chance.rest(6_000, 12_000).await;
    }
}

fn question(message: &str, session: Option<&str>) -> ChatRequest {
    ChatRequest { message: message.to_owned(), session: session.map(str::to_owned), ..ChatRequest::default() }
}

/// Users send messages to the writer faster than it answers.
async fn conversations(client: Client, mut chance: Chance) {
    loop {
        let who = chance.of(&PEOPLE);
        let text = chance.of(&QUESTIONS).to_owned();
        let message = MessageRequest {
            sender_name: Some(who.to_owned()),
            channel: Some("chat".to_owned()),
            ..crate::commands::sessions::message("writer".to_owned(), text)
        };
        drop(client.send_message(&format!("chat-{who}"), &message).await);
        chance.rest(200, 1_400).await;
    }
}

/// Background work for the workers.
async fn builds(client: Client, mut chance: Chance) {
    let mut number = 0;
    loop {
        for _ in 0..1 + chance.below(4) {
            number += 1;
            let request = TaskRequest {
                kind: "build".to_owned(),
                lanes: Vec::new(),
                payload: json!({ "commit": number }),
                priority: Some(PriorityRequest::Word("background".to_owned())),
                source: None,
                fair_key: None,
                parent: None,
                group: Some("nightly".to_owned()),
                wait_timeout_ms: None,
                timeout_ms: None,
                deadline_ms: None,
                run_after_ms: None,
                retry: None,
            };
            drop(client.submit(&request, None).await);
        }
        let deploy = question("Deploy what was built", None);
        drop(client.chat_later("builder", AskKind::Chat, &deploy, &AskOptions::default()).await);
        chance.rest(1_500, 4_000).await;
    }
}

/// A worker whose attempts sometimes fail: a task that fails twice becomes a dead letter.
async fn worker(client: Client, name: String, mut chance: Chance) {
    let claim = ClaimBody {
        worker: name,
        lanes: vec!["external".to_owned(), "agent:builder".to_owned()],
        kinds: Vec::new(),
        ids: Vec::new(),
        max: Some(1),
        wait_ms: Some(CLAIM_WAIT_MS),
        lease_ms: None,
    };
    loop {
        let Ok(claimed) = client.claim(&claim).await else {
            sleep(PAUSE).await;
            continue;
        };
        for task in claimed.tasks {
            chance.rest(600, 2_400).await;
            let success = chance.below(FAILS_ONE_IN) > 0;
            let outcome = CompleteBody {
                fence: task.fence,
                success,
                result: success.then(|| json!("built")),
                error: (!success).then(|| "the linker ran out of memory".to_owned()),
                retryable: None,
                steered: vec![],
            };
            drop(client.complete(&task.id, &outcome).await);
        }
    }
}
