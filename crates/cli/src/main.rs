//! The program `laneway`.

mod scenario;

use std::process::ExitCode;

const USAGE: &str = "\
usage: laneway [scenario [FILE]]

  scenario        plays a built-in tour of what the scheduler does
  scenario FILE   plays the script in FILE; - reads it from standard input
";

/// The exit code of a command line, file or script that makes no sense.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] | ["scenario"] => scenario::tour(),
        ["scenario", file] => scenario::file(file),
        ["-h" | "--help" | "help"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["-V" | "--version"] => {
            println!("laneway {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        _ => Err(format!("this makes no sense: {}\n\n{USAGE}", words.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("laneway: {}", why.trim_end());
            ExitCode::from(BAD_INPUT)
        }
    }
}
