//! Configuration files. The first line of an input says in which format the rest is.

use laneway_config::{Profile, parse, parse_worker};

use super::words;
use crate::Target;

pub(super) struct Configuration;

const FORMATS: [&str; 3] = ["hcl", "json5", "toml"];
const NOTHING: [(&str, &str); 0] = [];

impl Target for Configuration {
    fn name(&self) -> &'static str {
        "configuration"
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(&[
            "lane",
            "agent",
            "schedule",
            "server",
            "queue",
            "messages",
            "worker",
            "handler",
            "token",
            "listen",
            "store",
            "cron",
            "timezone",
            "command",
            "url",
            "lanes",
            "protocol",
            "env",
            "retry",
            "rate_limit",
            "ageing",
            "boost",
            "max_concurrency",
            "maxConcurrency",
            "max_queued",
            "timeout",
            "lease",
            "off",
            "unlimited",
            "2s",
            "20m",
            "${env.HOME}",
            "${",
            "}",
            "<<E\n",
            "\nE\n",
            "//",
            "/*",
            "*/",
            "#",
            "[[",
            "]]",
            "\"\"\"",
            "'''",
            " = ",
            " { ",
            "session:*",
            "\u{feff}",
            "\\x41",
            "+.5",
            ".inf",
            "1979-05-27T07:32:00Z",
        ]);
        all.extend(laneway_core::SETTING_KEYS.iter().map(|name| (*name).to_owned()));
        all
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(input);
        let (first, text) = text.split_once('\n').unwrap_or((&text, ""));
        let format = FORMATS.into_iter().find(|format| *format == first.trim()).unwrap_or("hcl");
        let file = format!("a.{format}");
        let worker = match parse_worker(&file, text) {
            Ok(_) => "a worker's".to_owned(),
            Err(errors) => told(&file, errors.iter().count(), &errors.to_string())?,
        };
        let server = match parse(&file, text, Profile::SERVER, NOTHING) {
            Ok(config) => {
                if config
                    .lane_blocks()
                    .iter()
                    .any(|block| block.settings.as_ref().is_none_or(|s| s.check().is_err()))
                {
                    return Err("accepted with settings that the scheduler refuses".to_owned());
                }
                format!("a server's with {} lines", config.effective().to_string().lines().count() / 4)
            }
            Err(errors) => told(&file, errors.iter().count(), &errors.to_string())?,
        };
        Ok(format!("{format} {server} {worker}"))
    }
}

/// Every line of a refusal says where, and in words that can be printed.
fn told(file: &str, count: usize, errors: &str) -> Result<String, String> {
    if count == 0 || errors.lines().any(|line| !line.starts_with(file)) {
        return Err(format!("refused without saying where: {errors:?}"));
    }
    if let Some(char) = errors.chars().find(|char| char.is_control() && *char != '\n') {
        return Err(format!("the refusal has {char:?} in it: {errors:?}"));
    }
    Ok(errors.lines().next().unwrap_or_default().to_owned())
}
