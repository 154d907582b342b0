//! The blocks `agent`, `handler` and `schedule`.

use laneway_core::{LANES_PER_TASK_MAX, LaneName, Name, Pattern};

use crate::blocks::lanes::{Lanes, take_settings};
use crate::config::{
    AgentConfig, AgentUrls, CatchUp, KindHandler, Profile, ProgramConfig, Protocol, Runner, Schedule,
};
use crate::fields::Fields;
use crate::formats::Entry;
use crate::report::{Report, nearest};

/// Reads all agents, and puts the settings of their lanes into `lanes`. Also returns the names of all blocks, even of
/// blocks with errors.
pub(crate) fn agents(
    report: &mut Report,
    top: &mut Fields<'_>,
    lanes: &mut Lanes,
) -> (Vec<AgentConfig>, Vec<String>) {
    let entries = top.named(report, "agent");
    let names = entries.iter().map(|entry| entry.key.clone()).collect();
    let mut agents: Vec<AgentConfig> =
        entries.into_iter().filter_map(|entry| agent(report, entry, lanes)).collect();
    agents.sort_by(|a, b| a.name.cmp(&b.name));
    (agents, names)
}

/// The lanes that `agents.defaults` limits, as chat gateways write it.
const LIMITED: [(&str, &str); 2] = [("", "main"), ("subagents", "subagent")];

/// Reads `agents { defaults { max_concurrent = 4 } }`, which limits the lane `main`, and its block `subagents`.
pub(crate) fn defaults(report: &mut Report, top: &mut Fields<'_>, lanes: &mut Lanes) {
    let Some(mut outer) = top.block(report, "agents") else { return };
    if let Some(mut fields) = outer.block(report, "defaults") {
        for (inner, lane) in LIMITED {
            let Ok(lane) = LaneName::new(lane) else { continue };
            if inner.is_empty() {
                default_limit(report, &mut fields, lanes, &lane);
            } else if let Some(mut fields) = fields.block(report, inner) {
                default_limit(report, &mut fields, lanes, &lane);
                fields.finish(report);
            }
        }
        fields.finish(report);
    }
    outer.finish(report);
}

fn default_limit(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes, lane: &LaneName) {
    let line = fields.peek("max_concurrent").and_then(|field| field.line);
    let Some(limit) = fields.count(report, "max_concurrent", 1) else { return };
    let limit = limit.to_string();
    if let Some(first) = lanes.lane(&Pattern::from(lane)).given("max_concurrency").cloned() {
        let sentence = format!("the lane {lane} has a limit already, at {first}; give one of them");
        return report.contradiction(line, "agents.defaults", sentence);
    }
    if let Err(error) =
        lanes.declared(&Pattern::from(lane)).assign("max_concurrency", &limit, report.at(line))
    {
        report.wrong(line, "agents.defaults", "max_concurrent", &error.expected);
    }
}

pub(crate) fn agent(report: &mut Report, entry: &Entry, lanes: &mut Lanes) -> Option<AgentConfig> {
    let block = format!("agent \"{}\"", entry.key);
    let name = agent_name(report, &block, entry);
    let mut fields = Fields::of(report, &block, "", &entry.node)?;
    let runner = runner(report, &mut fields, true);
    let urls = urls(report, &mut fields, runner.as_ref());
    let further = further_lanes(report, &mut fields);
    // A wrong name must not hide errors in the rest of the block.
    let lane = name.as_ref().map_or_else(|| "agent:unnamed".to_owned(), |name| format!("agent:{name}"));
    if let Ok(lane) = Pattern::new(lane) {
        take_settings(report, &mut fields, lanes.lane(&lane));
    }
    fields.finish(report);
    Some(AgentConfig { name: name?, runner: runner?, lanes: further, urls })
}

/// Reads the further addresses of an HTTP service.
fn urls(report: &mut Report, fields: &mut Fields<'_>, runner: Option<&Runner>) -> AgentUrls {
    let mut read = |key: &str| {
        let url = fields.text(report, key)?;
        check_url(report, fields, key, &url);
        if !matches!(runner, Some(Runner::Url(_)) | None) {
            let line = report.line_of(&fields.block, key);
            report.contradiction(line, &fields.block, format!("{key} needs a url"));
        }
        Some(url)
    };
    AgentUrls { task: read("task_url"), steer: read("steer_url"), cancel: read("cancel_url") }
}

/// Reads the name of an agent, which must be the name of a lane after `agent:`.
fn agent_name(report: &mut Report, block: &str, entry: &Entry) -> Option<Name> {
    if entry.key.contains('/') {
        report.wrong(entry.line, block, "the name", "must not contain a '/'");
        return None;
    }
    if matches!(entry.key.as_str(), "." | "..") {
        report.wrong(
            entry.line,
            block,
            "the name",
            "must not be '.' or '..', which have a meaning in addresses",
        );
        return None;
    }
    if entry.key.trim() != entry.key {
        report.wrong(entry.line, block, "the name", "must not begin or end with a space");
        return None;
    }
    // An agent has the lanes `agent:` and `task:`, and the longer prefix leaves less room for the name.
    let name = LaneName::new(format!("agent:{}", entry.key)).and_then(|_| Name::new(entry.key.as_str()));
    name.map_err(|error| report.contradiction(entry.line, block, error.to_string())).ok()
}

fn further_lanes(report: &mut Report, fields: &mut Fields<'_>) -> Option<Vec<LaneName>> {
    let texts = fields.texts(report, "lanes", "[\"main\"]")?;
    let line = report.line_of(&fields.block, "lanes");
    let mut lanes: Vec<LaneName> = Vec::new();
    for text in texts {
        match LaneName::new(&text) {
            Ok(lane) if lane.as_str().starts_with("token:") => {
                let sentence = "lanes that begin with token: are the server's own; name another lane";
                report.contradiction(line, &fields.block, sentence.to_owned());
            }
            Ok(lane) if lanes.contains(&lane) => {
                report.contradiction(line, &fields.block, format!("lanes names {lane} twice"));
            }
            Ok(lane) => lanes.push(lane),
            Err(error) => report.contradiction(line, &fields.block, format!("lanes: {error}")),
        }
    }
    // A turn also names the lanes of its agent and its session.
    let most = LANES_PER_TASK_MAX - 2;
    if lanes.len() > most {
        report.wrong(line, &fields.block, "lanes", &format!("must name at most {most} lanes"));
    }
    Some(lanes)
}

/// Reads the runner: exactly one of `command`, `url` and, for agents, `external` and `echo`.
pub(crate) fn runner(report: &mut Report, fields: &mut Fields<'_>, agent: bool) -> Option<Runner> {
    let errors = report.errors.len();
    let command = fields.texts(report, "command", "[\"claude\", \"-p\"]");
    let url = fields.text(report, "url");
    let external = agent && fields.truth(report, "external") == Some(true);
    let echo = agent && fields.truth(report, "echo") == Some(true);
    let protocol = fields.word(report, "protocol", PROTOCOLS, "text, jsonl");
    let env = fields.texts(report, "env", "[\"PATH\", \"HOME\"]");
    let cwd = fields.text(report, "cwd");
    let broken = report.errors.len() > errors;

    let program_only = [("protocol", protocol.is_some()), ("env", env.is_some()), ("cwd", cwd.is_some())];
    if command.is_none() && !broken {
        for (key, _) in program_only.iter().filter(|(_, given)| *given) {
            let sentence = format!("{key} needs a command");
            report.contradiction(report.line_of(&fields.block, key), &fields.block, sentence);
        }
    }
    let mut given: Vec<Runner> = Vec::new();
    if let Some(command) = command {
        check_program(report, fields, &command, env.as_deref());
        let protocol = protocol.unwrap_or(Protocol::Text);
        given.push(Runner::Program(ProgramConfig { command, protocol, env, cwd: cwd.map(Into::into) }));
    }
    if let Some(url) = url {
        check_url(report, fields, "url", &url);
        given.push(Runner::Url(url));
    }
    given.extend(external.then_some(Runner::External));
    given.extend(echo.then_some(Runner::Echo));
    let choices = if agent { "command, url, external = true or echo = true" } else { "command or url" };
    match given.len() {
        1 => given.pop(),
        // A wrong value such as `command = 3` is already reported.
        0 if broken => None,
        0 => {
            report.missing(fields.line, &fields.block, &format!("one of {choices}"));
            None
        }
        _ => {
            report.missing(fields.line, &fields.block, &format!("only one of {choices}"));
            None
        }
    }
}

const PROTOCOLS: &[(&str, Protocol)] = &[("text", Protocol::Text), ("jsonl", Protocol::Jsonl)];

fn check_program(report: &mut Report, fields: &Fields<'_>, command: &[String], env: Option<&[String]>) {
    if command.is_empty() {
        let line = report.line_of(&fields.block, "command");
        report.wrong(line, &fields.block, "command", "must name a program");
    }
    if env.is_some_and(|names| names.iter().any(|name| name.contains('='))) {
        let expected = "must be a list of names; values come from the server's own environment";
        report.wrong(report.line_of(&fields.block, "env"), &fields.block, "env", expected);
    }
}

pub(crate) fn check_url(report: &mut Report, fields: &Fields<'_>, key: &str, url: &str) {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if host.is_none_or(str::is_empty) || url.contains(char::is_whitespace) {
        let line = report.line_of(&fields.block, key);
        report.wrong(line, &fields.block, key, "must be an http:// or https:// URL");
    }
}

pub(crate) fn handlers(report: &mut Report, top: &mut Fields<'_>) -> Vec<KindHandler> {
    let mut handlers = Vec::new();
    for entry in top.named(report, "handler") {
        let block = format!("handler \"{}\"", entry.key);
        let kind = name(report, &block, entry);
        let Some(mut fields) = Fields::of(report, &block, "", &entry.node) else { continue };
        let runner = runner(report, &mut fields, false);
        fields.finish(report);
        if let (Some(kind), Some(runner)) = (kind, runner) {
            handlers.push(KindHandler { kind, runner });
        }
    }
    handlers.sort_by(|a, b| a.kind.cmp(&b.kind));
    handlers
}

pub(crate) fn name(report: &mut Report, block: &str, entry: &Entry) -> Option<Name> {
    let name = Name::new(entry.key.as_str());
    name.map_err(|error| report.contradiction(entry.line, block, error.to_string())).ok()
}

pub(crate) fn schedules(
    report: &mut Report,
    top: &mut Fields<'_>,
    agents: &[String],
    profile: Profile,
) -> Vec<Schedule> {
    let entries = top.named(report, "schedule");
    let mut schedules: Vec<Schedule> =
        entries.into_iter().filter_map(|entry| schedule(report, entry)).collect();
    schedules.sort_by(|a, b| a.name.cmp(&b.name));
    if profile.agents_are_in_the_file {
        for schedule in &schedules {
            check_agent(report, schedule, agents);
        }
    }
    schedules
}

fn check_agent(report: &mut Report, schedule: &Schedule, agents: &[String]) {
    let name = schedule.agent.as_str();
    if agents.iter().any(|agent| agent == name) {
        return;
    }
    let hint = match nearest(name, agents) {
        Some(nearest) => format!("; did you mean {nearest}?"),
        None if agents.is_empty() => "; there is none".to_owned(),
        None => format!("; there are {}", agents.join(", ")),
    };
    let block = format!("schedule \"{}\"", schedule.name);
    let line = report.line_of(&block, "agent");
    report.contradiction(line, &block, format!("agent \"{}\" is not defined{hint}", schedule.agent));
}

const CATCH_UPS: &[(&str, CatchUp)] = &[("skip", CatchUp::Skip), ("one", CatchUp::One)];

fn schedule(report: &mut Report, entry: &Entry) -> Option<Schedule> {
    let block = format!("schedule \"{}\"", entry.key);
    let name = name(report, &block, entry);
    let mut fields = Fields::of(report, &block, "", &entry.node)?;
    let errors = report.errors.len();
    let cron = fields.text(report, "cron");
    let timezone = fields.text(report, "timezone").unwrap_or_else(|| "UTC".to_owned());
    let agent = fields.text(report, "agent");
    let message = fields.text(report, "message");
    let session = fields.text(report, "session");
    let user = fields.text(report, "user");
    let user_email = fields.text(report, "user_email");
    if user.is_none() && user_email.is_some() {
        let line = report.line_of(&block, "user_email");
        report.contradiction(line, &block, "user_email needs a user".to_owned());
    }
    let enabled = fields.truth(report, "enabled").unwrap_or(true);
    let catch_up = fields.word(report, "catch_up", CATCH_UPS, "skip, one").unwrap_or(CatchUp::Skip);
    if report.errors.len() == errors {
        let given = [("cron", cron.is_some()), ("agent", agent.is_some()), ("message", message.is_some())];
        for (key, _) in given.iter().filter(|(_, given)| !given) {
            report.missing(fields.line, &block, key);
        }
    }
    fields.finish(report);
    let cron = cron?;
    if !cron.starts_with('@') && !(5..=6).contains(&cron.split_whitespace().count()) {
        report.wrong(
            report.line_of(&block, "cron"),
            &block,
            "cron",
            "must have five or six fields, such as \"0 9 * * 1-5\"",
        );
    }
    let line = report.line_of(&block, "agent");
    let agent =
        Name::new(agent?).map_err(|error| report.contradiction(line, &block, format!("agent: {error}")));
    Some(Schedule {
        name: name?,
        cron,
        timezone,
        agent: agent.ok()?,
        message: message?,
        session,
        user,
        user_email,
        enabled,
        catch_up,
    })
}
