//! Kills real processes and checks what is left of their store.

mod power;
mod serve;
mod served;

use crate::chore::run;
use served::some_seed;

/// `serve`, `power` or neither, then `--name VALUE` pairs in any order.
pub(crate) fn crash(words: &[&str]) -> Result<(), String> {
    let (what, options) = match words {
        ["serve", options @ ..] => ("serve", options),
        ["power", options @ ..] => ("power", options),
        options => ("", options),
    };
    let allowed: &[&str] = match what {
        "serve" => &["--rounds", "--points", "--seed"],
        "power" => &["--points", "--seed"],
        _ => &["--rounds"],
    };
    let (mut rounds, mut points, mut seed) = (None, None, some_seed());
    for option in options.chunks(2) {
        let [name, value] = option else { return Err(format!("{} needs a number", option.join(" "))) };
        if !allowed.contains(name) {
            return Err(format!("crash {what} knows {}; {name:?} is none of them", allowed.join(", ")));
        }
        let value =
            value.parse::<u64>().map_err(|_| format!("{name} is a whole number; {value:?} is not"))?;
        match *name {
            "--rounds" => rounds = Some(value),
            "--points" => points = Some(value),
            _ => seed = value,
        }
    }
    match (what, rounds, points) {
        ("serve", rounds, points) if rounds.or(points).is_some() => {
            serve::run_all(rounds.unwrap_or_default(), points.unwrap_or_default(), seed)
        }
        ("power", _, Some(points)) if points > 0 => power::cut(points, seed),
        ("", Some(rounds), _) if rounds > 0 => {
            let test = ["test", "--package", "laneway", "--test", "crash"];
            run("cargo", &test, &[("LANEWAY_CRASH_ROUNDS", &rounds.to_string())])
        }
        _ => Err(format!("crash {what} needs a number of at least 1: {}", allowed.join(", "))),
    }
}
