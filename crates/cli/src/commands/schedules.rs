//! `laneway schedules`.

use laneway_protocol::{NewSchedule, ScheduleChange, ScheduleRun, ScheduleView, UserRef};

use crate::arguments::{Schedules, SchedulesCommand};
use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// Runs `laneway schedules`.
pub(crate) async fn run(verb: Schedules) -> Result<(), CliError> {
    let client = verb.asking.client()?;
    let is_json = verb.asking.json;
    let schedules = match verb.command {
        None => client.schedules().await?.items,
        Some(SchedulesCommand::Add(new)) => {
            let new = NewSchedule {
                name: new.name,
                cron: new.cron,
                timezone: new.timezone,
                agent: new.agent,
                message: new.message,
                session: new.session,
                user: new.user.map(|id| UserRef { id, email: None }),
                enabled: None,
                catch_up: new.catch_up,
            };
            vec![client.create_schedule(&new).await?]
        }
        Some(SchedulesCommand::Enable { name }) => vec![client.change_schedule(&name, &enabled(true)).await?],
        Some(SchedulesCommand::Disable { name }) => {
            vec![client.change_schedule(&name, &enabled(false)).await?]
        }
        Some(SchedulesCommand::Show { name }) => vec![client.schedule(&name).await?],
        Some(SchedulesCommand::Run { name }) => {
            let run = client.run_schedule(&name).await?;
            return runs(&[run], is_json);
        }
        Some(SchedulesCommand::Runs { name }) => {
            return runs(&client.schedule_runs(&name).await?.items, is_json);
        }
        Some(SchedulesCommand::Remove { name, sure }) => {
            sure.ask(&format!("Removing schedule {name}"))?;
            client.remove_schedule(&name).await?;
            return if is_json {
                output::json(&serde_json::json!({ "removed": name }))
            } else {
                output::line(&format!("Removed {name}."))
            };
        }
    };
    if is_json { output::json(&schedules) } else { list(&schedules) }
}

fn enabled(enabled: bool) -> ScheduleChange {
    ScheduleChange { enabled: Some(enabled), ..ScheduleChange::default() }
}

fn list(schedules: &[ScheduleView]) -> Result<(), CliError> {
    let mut rows = Rows::under(&["SCHEDULE", "CRON", "ZONE", "AGENT", "NEXT", "LAST", "FROM", "MESSAGE"]);
    for schedule in schedules {
        let next = match (schedule.enabled, schedule.next_runs.first()) {
            (true, Some(at)) => at.to_string(),
            (true, None) => "never".to_owned(),
            (false, _) => "disabled".to_owned(),
        };
        rows.add([
            schedule.name.clone(),
            schedule.cron.clone(),
            schedule.timezone.clone(),
            schedule.agent.clone(),
            next,
            schedule.last_run.as_ref().map_or_else(|| "-".to_owned(), |run| run.status.clone()),
            schedule.origin.clone(),
            format::short(&schedule.message),
        ]);
    }
    rows.print("There are no schedules.")
}

fn runs(runs: &[ScheduleRun], is_json: bool) -> Result<(), CliError> {
    if is_json {
        return output::json(&runs);
    }
    let mut rows = Rows::under(&["DUE", "BY", "STATUS", "TASK", "ERROR"]);
    for run in runs {
        rows.add([
            run.due_at.clone(),
            run.trigger.clone(),
            run.status.clone(),
            run.task_id.clone().unwrap_or_default(),
            run.error.as_deref().map(format::short).unwrap_or_default(),
        ]);
    }
    rows.print("The schedule has not fired yet.")
}
