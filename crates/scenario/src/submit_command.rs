//! The command `submit`.

use std::num::NonZeroU128;

use laneway_core::{
    BlobId, Command, Idempotency, LaneName, LaneSettings, Millis, Name, Parent, Source, TaskSpec, duration,
};

use crate::error::{LineError, wrong};
use crate::names::Names;
use crate::script::Action;
use crate::tokens::{Tokens, name, number, pair, task, tasks};

const KEYS: &str = "kind, payload, priority, fair_key, wait_timeout, timeout, deadline, run_after, retry, \
    retry.max_retries (and the like), parent, detached_from, after, group, key, key_until_end, body";

pub(crate) fn submit(words: &mut Tokens, names: &mut Names) -> Result<Action, LineError> {
    let tasks = tasks(&words.need("the task")?, names)?;
    let lanes = words.need("the lane")?;
    let mut spec = TaskSpec::new(Name::new("work")?, vec![]);
    let mut retry = LaneSettings::default();
    while let Some(word) = words.next() {
        match source(&word) {
            Some(source) => spec.source = source,
            None => set(&mut spec, &mut retry, &word, names)?,
        }
    }
    spec.retry = retry.retry;
    let mut commands = Vec::with_capacity(tasks.len());
    for task in tasks {
        let mut spec = spec.clone();
        let lanes = lanes.replace("{}", &names.name(task));
        spec.lanes = lanes.split(',').map(LaneName::new).collect::<Result<_, _>>()?;
        commands.push(Command::Submit { task, spec: Box::new(spec) });
    }
    Ok(Action::Commands(commands))
}

fn source(word: &str) -> Option<Source> {
    match word {
        "user" => Some(Source::User),
        "schedule" => Some(Source::Schedule),
        "agent" => Some(Source::Agent),
        "background" => Some(Source::Background),
        _ => None,
    }
}

fn set(
    spec: &mut TaskSpec,
    retry: &mut LaneSettings,
    word: &str,
    names: &mut Names,
) -> Result<(), LineError> {
    let (key, value) = pair(word)?;
    let length = || duration(key, value, Millis(0)).map(Some);
    match key {
        "kind" => spec.kind = name(value)?,
        "payload" => {
            let number: u128 = number("payload", value)?;
            spec.payload = NonZeroU128::new(number).map(BlobId);
        }
        "priority" => spec.priority = Some(number("priority", value)?),
        "fair_key" => spec.fair_key = Some(LaneName::new(value)?),
        "wait_timeout" => spec.wait_timeout = length()?,
        "timeout" => spec.timeout = length()?,
        "deadline" => spec.deadline = length()?,
        "run_after" => spec.run_after = length()?,
        "parent" => spec.parent = Some(Parent { task: task(value, names)?, detached: false }),
        "detached_from" => spec.parent = Some(Parent { task: task(value, names)?, detached: true }),
        "after" => spec.after = Some(task(value, names)?),
        "group" => spec.group = Some(name(value)?),
        "key" | "key_until_end" => {
            let fingerprint = spec.idempotency.as_ref().map_or(0, |asked| asked.fingerprint);
            let until_end = key == "key_until_end";
            spec.idempotency = Some(Idempotency { key: value.into(), fingerprint, until_end });
        }
        "body" => match &mut spec.idempotency {
            Some(asked) => asked.fingerprint = digest(value),
            None => return wrong("a body means something only after a key"),
        },
        _ if key == "retry" || key.starts_with("retry.") => retry.set(key, value)?,
        _ => return wrong(format!("{key:?} is nothing that a task can ask for; there are {KEYS}")),
    }
    Ok(())
}

/// FNV-1a: tells short texts apart, which is all that a script needs.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}
