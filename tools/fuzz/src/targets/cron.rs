//! Schedules: when, and in which time zone. An input is the one, and on the next line the other.

use laneway_config::{Profile, parse};
use laneway_server::check_schedules;
use serde_json::json;

use super::words;
use crate::{Chance, Target};

pub(super) struct Schedules;

const FIELDS: [&str; 24] = [
    "*", "0", "1", "9", "59", "60", "*/5", "*/0", "1-5", "5-1", "1,2,3", "L", "W", "15W", "LW", "5#3", "5L",
    "MON-FRI", "JAN", "?", "31", "29", "2", "0-59/7",
];

impl Target for Schedules {
    fn name(&self) -> &'static str {
        "cron"
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(&FIELDS);
        all.extend(words(&[
            " ",
            "@daily",
            "@hourly",
            "@reboot",
            "@every 5m",
            "\nUTC",
            "\nEurope/Berlin",
            "\nAfrica/Casablanca",
            "\nAmerica/St_Johns",
            "\nAntarctica/Troll",
            "\n+02:00",
            "../..",
            "/etc/localtime",
            "4294967296",
            "#",
            "+",
        ]));
        all
    }

    /// Fields that may each stand somewhere.
    fn make(&self, chance: &mut Chance) -> Option<Vec<u8>> {
        let count = 5 + chance.below(3);
        let fields: Vec<&str> = (0..count).filter_map(|_| chance.one(&FIELDS).copied()).collect();
        let zone = chance.one(&["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Mars/One"])?;
        Some(format!("{}\n{zone}", fields.join(" ")).into_bytes())
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(input);
        let (cron, timezone) = text.split_once('\n').unwrap_or((&text, "UTC"));
        let config = json!({
            "agent": { "coder": { "command": ["true"] } },
            "schedule": { "standup": { "cron": cron, "timezone": timezone, "agent": "coder", "message": "now" } },
        });
        let nothing: [(&str, &str); 0] = [];
        let config = match parse("a.json5", &config.to_string(), Profile::SERVER, nothing) {
            Ok(config) => config,
            Err(errors) => return Ok(errors.to_string()),
        };
        match check_schedules(&config) {
            Ok(()) => Ok(format!("due, with {} fields", cron.split_whitespace().count())),
            Err(error) if error.contains("standup") && !error.chars().any(char::is_control) => Ok(error),
            Err(error) => {
                Err(format!("a refusal that does not say which schedule, or cannot be shown: {error:?}"))
            }
        }
    }
}
