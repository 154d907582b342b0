//! Variables of the environment, options of the command line, and profiles.

use laneway_config::{Config, Errors, Profile, parse, with_options, without_file};
use laneway_core::Switch;

fn read(text: &str, profile: Profile, environment: &[(&str, &str)]) -> Result<Config, Errors> {
    parse("a.hcl", text, profile, environment.iter().copied())
}

fn global(config: &Config) -> Option<(Option<Switch<u32>>, String)> {
    let lane = config.lanes.iter().find(|lane| lane.lanes.as_str() == "global")?;
    Some((lane.settings.max_concurrency, lane.source("max_concurrency").to_string()))
}

#[test]
fn the_lane_global_is_limited_by_the_environment_or_the_file_and_else_not_at_all() {
    let file = "lane \"global\" { max_concurrency = 20 }";
    let variable = [("LANEWAY_MAX_CONCURRENT_TASKS", "30")];
    let limit = |text, profile, environment: &[_]| global(&read(text, profile, environment).unwrap());
    let is = |number, place: &str| Some((Some(Switch::On(number)), place.to_owned()));
    assert_eq!(limit(file, Profile::SERVER, &variable), is(30, "LANEWAY_MAX_CONCURRENT_TASKS"));
    assert_eq!(limit(file, Profile::SERVER, &[]), is(20, "a.hcl:1"));
    assert_eq!(limit("", Profile::SERVER, &[]), Some((None, "default".to_owned())));
    assert_eq!(limit("", Profile::LIBRARY, &[]), None);
    // The pattern of all lanes also matches `global`.
    let all = read("lane \"*\" { max_concurrency = 5 }", Profile::SERVER, &[]).unwrap();
    assert_eq!(all.source("lane \"global\"", "max_concurrency").to_string(), "a.hcl:1");
    assert_eq!(limit("", Profile::LIBRARY, &variable), is(30, "LANEWAY_MAX_CONCURRENT_TASKS"));
}

#[test]
fn other_settings_of_the_lane_global_stay() {
    let text = "lane \"global\" { max_queued = 7 }";
    let config = read(text, Profile::SERVER, &[("LANEWAY_MAX_CONCURRENT_TASKS", "30")]).unwrap();
    let lane = config.lanes.iter().find(|lane| lane.lanes.as_str() == "global").unwrap();
    assert_eq!((lane.settings.max_queued, lane.settings.max_concurrency), (Some(7), Some(Switch::On(30))));
}

#[test]
fn variables_set_listen_and_store() {
    let environment =
        [("LANEWAY_LISTEN", "[::1]:9"), ("LANEWAY_STORE", "redis://me:secret@host/1?x=y"), ("HOME", "/")];
    let config = read("listen = \"127.0.0.1:1\"\nstore = \"memory\"", Profile::SERVER, &environment).unwrap();
    assert_eq!(config.listen.to_string(), "[::1]:9");
    assert_eq!(config.source("", "listen").to_string(), "LANEWAY_LISTEN");
    assert_eq!(config.store.to_string(), "redis://me:***@host/1?***");
    assert_eq!(config.source("", "store").to_string(), "LANEWAY_STORE");
    assert!(!format!("{config:?}{}", config.effective()).contains("secret"));
}

#[test]
fn options_of_the_command_line_override_variables_and_errors_name_them() {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let environment =
        [("LANEWAY_STORE", "mysql://x"), ("LANEWAY_LISTEN", "[::1]:9"), ("HOME", "/")].map(owned);
    let with = |store| with_options(environment.clone(), [("--store", store)]);
    let config = without_file(Profile::SERVER, with("memory")).unwrap();
    let source = |key| config.source("", key).to_string();
    assert_eq!((source("store"), source("listen")), ("--store".to_owned(), "LANEWAY_LISTEN".to_owned()));
    assert_eq!(
        without_file(Profile::SERVER, with("mysql://x")).unwrap_err().to_string(),
        "--store: the value must be \"memory\", a directory, or a redis://, redis+sentinel:// or postgres:// URL"
    );
}

#[test]
fn a_wrong_value_is_an_error_that_names_the_variable() {
    let environment =
        [("LANEWAY_MAX_CONCURRENT_TASKS", "0"), ("LANEWAY_LISTEN", "7717"), ("LANEWAY_STORE", "mysql://x")];
    assert_eq!(
        read("", Profile::SERVER, &environment).unwrap_err().to_string(),
        "LANEWAY_MAX_CONCURRENT_TASKS: the value must be a whole number from 1 to 1000000000\n\
         LANEWAY_LISTEN: the value must be a host and a port, such as \"127.0.0.1:7717\"\n\
         LANEWAY_STORE: the value must be \"memory\", a directory, or a redis://, redis+sentinel:// or postgres:// URL"
    );
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let environment = [
        ("LANEWAY_MAX_CONCURENT_TASKS", "3"),
        ("LANEWAY_COLOUR", "red"),
        ("LANEWAY_TASK_ID", "x"),
        ("LANG", "C"),
    ];
    let config = without_file(Profile::SERVER, environment).unwrap();
    assert_eq!(
        config.warnings,
        [
            "LANEWAY_MAX_CONCURENT_TASKS is not a variable of Laneway; did you mean LANEWAY_MAX_CONCURRENT_TASKS?",
            "LANEWAY_COLOUR is not a variable of Laneway; there are LANEWAY_LISTEN, \
             LANEWAY_MAX_CONCURRENT_TASKS, LANEWAY_STORE",
        ]
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let empty = [("LANEWAY_LISTEN", ""), ("LANEWAY_STORE", " "), ("LANEWAY_MAX_CONCURRENT_TASKS", "")];
    let file = "store = \"memory\"\nlane \"global\" { max_concurrency = 3 }";
    let config = read(file, Profile::SERVER, &empty).unwrap();
    assert_eq!((config.store.to_string(), config.warnings.len()), ("memory".to_owned(), 0));
    assert_eq!(global(&config), Some((Some(Switch::On(3)), "a.hcl:2".to_owned())));
}
