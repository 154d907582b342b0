//! Variables of the environment and options of the command line. Both take precedence over the file.

use laneway_core::{LaneName, Pattern};

use crate::blocks::lanes::Lanes;
use crate::blocks::places::{Listen, StoreLocation};
use crate::error::{ConfigProblem, Error, Expected};
use crate::report::Report;
use crate::source::ValueSource;

/// The variables that set something.
pub const VARIABLES: &[&str] = &["LANEWAY_LISTEN", "LANEWAY_MAX_CONCURRENT_TASKS", "LANEWAY_STORE"];

/// Variables with another use: programs of agents read their task from them, and clients read the server's address and
/// the token.
const ELSEWHERE: &[&str] =
    &["LANEWAY_AGENT", "LANEWAY_FENCE", "LANEWAY_TASK_ID", "LANEWAY_TOKEN", "LANEWAY_TURN", "LANEWAY_URL"];

/// The `LANEWAY_` variables of an environment. An option of the command line, such as `--store`, replaces its variable.
pub fn with_options<'a>(
    environment: impl IntoIterator<Item = (String, String)>,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        environment.into_iter().filter(|(name, _)| name.starts_with("LANEWAY_")).collect();
    for (option, value) in options {
        let variable = format!("LANEWAY_{}", option.trim_start_matches('-').to_uppercase());
        all.retain(|(name, _)| *name != variable);
        all.push((option.to_owned(), value.to_owned()));
    }
    all
}

/// Applies the variables, and ignores those of other programs.
pub(crate) fn apply<K: AsRef<str>, V: AsRef<str>>(
    report: &mut Report,
    environment: impl IntoIterator<Item = (K, V)>,
    (listen, store): (&mut Listen, &mut StoreLocation),
    lanes: &mut Lanes,
) {
    for (variable, value) in environment {
        let (variable, value) = (variable.as_ref(), value.as_ref());
        // Compose files and charts set a variable to nothing where they mean to leave it out.
        if value.trim().is_empty() && variable.starts_with("LANEWAY_") {
            continue;
        }
        let source = ValueSource::Environment(variable.into());
        let result = match variable {
            "LANEWAY_LISTEN" | "--listen" => match Listen::read(value) {
                Some(value) => {
                    *listen = value;
                    remember(report, "listen", &source)
                }
                None => Err(Expected(crate::load::LISTEN.into())),
            },
            "LANEWAY_STORE" | "--store" => StoreLocation::read(value).and_then(|value| {
                *store = value;
                remember(report, "store", &source)
            }),
            "LANEWAY_MAX_CONCURRENT_TASKS" => lanes
                .declared(&Pattern::from(&LaneName::global()))
                .assign("max_concurrency", value, source.clone())
                .map_err(Expected::from),
            _ => {
                warn(report, variable);
                Ok(())
            }
        };
        if let Err(expected) = result {
            let (key, expected) = ("the value".to_owned(), expected.to_string());
            let problem = ConfigProblem::WrongValue { key, expected };
            report.errors.push(Error { at: source, block: String::new(), problem });
        }
    }
}

fn remember(report: &mut Report, key: &str, source: &ValueSource) -> Result<(), Expected> {
    report.sources.insert((String::new(), key.to_owned()), source.clone());
    Ok(())
}

fn warn(report: &mut Report, variable: &str) {
    if variable.starts_with("LANEWAY_") && !ELSEWHERE.contains(&variable) {
        let known: Vec<String> = VARIABLES.iter().map(|known| (*known).to_owned()).collect();
        let hint = match crate::report::nearest(variable, &known) {
            Some(nearest) => format!("did you mean {nearest}?"),
            None => format!("there are {}", VARIABLES.join(", ")),
        };
        report.warnings.push(format!("{variable} is not a variable of Laneway; {hint}"));
    }
}
