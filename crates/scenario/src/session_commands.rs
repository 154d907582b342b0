//! Commands about sessions and their messages.

use std::sync::Arc;

use laneway_core::{
    Agent, Command, DropRule, Incoming, LaneName, MessageId, MessageSettings, Millis, Mode, Name, Otherwise,
    QueueOverrides, SessionCommand, Steer, duration,
};

use crate::error::{LineError, wrong};
use crate::names::Names;
use crate::script::Action;
use crate::tokens::{Tokens, name, number, pair, task, tasks};

const SEND_KEYS: &str = "agent, lanes, mode, debounce, max_wait, cap, drop, channel, to, account, thread, sender, \
    name, permissions, id, steer, otherwise, priority, heartbeat, may";

fn one(command: SessionCommand) -> Result<Action, LineError> {
    Ok(Action::Commands(vec![Command::Session(Box::new(command))]))
}

pub(crate) fn message(word: &str, names: &mut Names) -> Result<MessageId, LineError> {
    Ok(MessageId(task(word, names)?.0))
}

/// Reads `send MESSAGES SESSION "TEXT" …`; `{}` in the text stands for the message's name.
pub(crate) fn send(words: &mut Tokens, names: &mut Names) -> Result<Action, LineError> {
    let list = words.need("the message")?;
    let ids = tasks(&list, names)?;
    ids.iter().for_each(|id| names.is_message(*id));
    let session: Arc<str> = words.need("the session")?.into();
    let text = words.need("the text")?;
    let mut incoming = Incoming::new(MessageId(0), session, Agent::new(Name::new("bot")?), text.as_str());
    while let Some(word) = words.next() {
        match &*word {
            "heartbeat" => incoming.heartbeat = true,
            "may" => incoming.may_configure = true,
            word => set(&mut incoming, word, names)?,
        }
    }
    let commands = ids.into_iter().map(|id| {
        let text = text.replace("{}", &names.name(id)).into();
        let incoming = Incoming { id: MessageId(id.0), text, ..incoming.clone() };
        Command::Session(Box::new(SessionCommand::Send(Box::new(incoming))))
    });
    Ok(Action::Commands(commands.collect()))
}

fn set(incoming: &mut Incoming, word: &str, names: &mut Names) -> Result<(), LineError> {
    let (key, value) = pair(word)?;
    let text = || Some(Arc::<str>::from(value));
    match key {
        "agent" => {
            incoming.agent.name = name(value)?;
            incoming.agent.kind = name(value)?;
        }
        "lanes" => incoming.agent.lanes = value.split(',').map(LaneName::new).collect::<Result<_, _>>()?,
        "asker" => incoming.asker = Some(LaneName::new(value)?),
        "channel" => incoming.place.channel = text(),
        "to" => incoming.place.to = text(),
        "account" => incoming.place.account = text(),
        "thread" => incoming.place.thread = text(),
        "sender" => incoming.sender = text(),
        "name" => incoming.sender_name = text(),
        "permissions" => incoming.permissions = value.split(',').map(name).collect::<Result<_, _>>()?,
        "id" => incoming.message_id = text(),
        "priority" => incoming.priority = Some(number("priority", value)?),
        "steer" => {
            let otherwise = incoming.steer.map(|steer| steer.otherwise).unwrap_or_default();
            incoming.steer = Some(Steer { turn: task(value, names)?, otherwise });
        }
        "otherwise" => {
            let Some(steer) = &mut incoming.steer else { return wrong("otherwise comes after steer") };
            steer.otherwise = match value {
                "followup" => Otherwise::Followup,
                "reject" => Otherwise::Reject,
                "drop" => Otherwise::Drop,
                _ => return wrong(format!("{value:?} is not followup, reject or drop")),
            };
        }
        _ if queue_word(&mut incoming.queue, key, value)? => {}
        _ => return wrong(format!("{key:?} is nothing that a message can say; there are {SEND_KEYS}")),
    }
    Ok(())
}

/// Sets one value of a queue; says whether there is such a value.
pub(crate) fn queue_word(queue: &mut QueueOverrides, key: &str, value: &str) -> Result<bool, LineError> {
    match key {
        "mode" => match Mode::parse(value) {
            Some(mode) => queue.mode = Some(mode),
            None => return wrong(format!("{value:?} is not a mode; there are {}", Mode::CHOICES)),
        },
        "drop" => match DropRule::parse(value) {
            Some(drop) => queue.drop = Some(drop),
            None => return wrong(format!("{value:?} is not a rule; there are {}", DropRule::CHOICES)),
        },
        "debounce" => queue.debounce = Some(duration(key, value, Millis(0))?),
        "max_wait" => queue.max_wait = Some(duration(key, value, Millis(0))?),
        "cap" => queue.cap = Some(number(key, value)?),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Changes how messages are queued, everywhere or in one channel.
pub(crate) fn change_settings(
    settings: &mut MessageSettings,
    channel: Option<&str>,
    words: &[(String, String)],
) -> Result<(), LineError> {
    for (key, value) in words {
        let queue = match channel {
            None => &mut settings.global,
            Some(channel) => settings.by_channel.entry(channel.into()).or_default(),
        };
        if queue_word(queue, key, value)? {
            continue;
        }
        match key.as_str() {
            "cap_max" => settings.policy.cap_max = number(key, value)?,
            "wait_max" => settings.policy.wait_max = duration(key, value, Millis(0))?,
            "attempts" => settings.attempts = number(key, value)?,
            "redeliver" => settings.redeliver = value == "yes",
            _ => return wrong(format!("{key:?} is no setting of messages")),
        }
    }
    if let Some(channel) = channel.filter(|_| words.is_empty()) {
        settings.by_channel.remove(channel);
    } else if words.is_empty() {
        settings.global = QueueOverrides::default();
    }
    Ok(())
}

/// Reads `messages key=value…` and `channel NAME key=value…`; without values they are removed.
pub(crate) fn messages(command: &str, words: &mut Tokens) -> Result<Action, LineError> {
    let channel = if command == "channel" { Some(words.need("the channel")?) } else { None };
    Ok(Action::Messages { channel, settings: words.pairs()? })
}

pub(crate) fn session_command(command: &str, words: &mut Tokens) -> Result<Action, LineError> {
    let session: Arc<str> = words.need("the session")?.into();
    match command {
        "clear-session" => one(SessionCommand::Clear { session }),
        "interrupt" => one(SessionCommand::Interrupt { session }),
        "stop-session" => one(SessionCommand::Stop { session }),
        _ => {
            let mut queue = QueueOverrides::default();
            for (key, value) in words.pairs()? {
                if !queue_word(&mut queue, &key, &value)? {
                    return wrong(format!("{key:?} is no setting of a session's queue"));
                }
            }
            one(SessionCommand::Configure { session, queue })
        }
    }
}

pub(crate) fn message_command(
    command: &str,
    words: &mut Tokens,
    names: &mut Names,
) -> Result<Action, LineError> {
    let message_id = message(&words.need("the message")?, names)?;
    match command {
        "withdraw" => one(SessionCommand::Withdraw { message: message_id }),
        "promote" => one(SessionCommand::Promote { message: message_id }),
        "send-now" => one(SessionCommand::SendNow { message: message_id }),
        "resend" => {
            if !words.next_is("as") {
                return wrong("as and the new message are missing");
            }
            let again = message(&words.need("the new message")?, names)?;
            names.is_message(laneway_core::TaskId(again.0));
            one(SessionCommand::Resend { message: message_id, again })
        }
        _ => {
            let before = if words.next_is("before") {
                Some(message(&words.need("the message to move before")?, names)?)
            } else {
                None
            };
            one(SessionCommand::Move { message: message_id, before })
        }
    }
}
