//! Schedules: an input is a cron expression, and on the next line its time zone.

use laneway_config::{Profile, parse};
use laneway_server::check_schedules;
use serde_json::json;

use crate::FuzzOutcome;

const ENVIRONMENT: [(&str, &str); 0] = [];

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let text = String::from_utf8_lossy(input);
    let (cron, timezone) = text.split_once('\n').unwrap_or((&text, "UTC"));
    let config = json!({
        "agent": { "coder": { "command": ["true"] } },
        "schedule": { "standup": { "cron": cron, "timezone": timezone, "agent": "coder", "message": "now" } },
    });
    let Ok(config) = parse("a.json5", &config.to_string(), Profile::SERVER, ENVIRONMENT) else {
        return FuzzOutcome::Refused;
    };
    match check_schedules(&config) {
        Ok(()) => FuzzOutcome::Understood,
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("standup"), "a refusal that does not name the schedule: {error:?}");
            assert!(!error.chars().any(char::is_control), "a refusal that cannot be printed: {error:?}");
            FuzzOutcome::Refused
        }
    }
}
