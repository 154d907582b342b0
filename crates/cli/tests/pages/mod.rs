//! Pages with commands and their outputs.

mod masks;

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use crate::served::serve;
use masks::{Masks, same};

/// Runs the commands of a page and compares their outputs. With `UPDATE=1` it writes the outputs.
pub(crate) fn check(file: &str) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("laneway.hcl"), block(&text, "hcl")).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    let commands: Vec<&str> = steps(&text).into_iter().map(|step| step.command).collect();
    assert!(!commands.is_empty(), "{file} has no commands");
    let outputs = run(dir.path(), &served.url, &commands);
    let mut masks = Masks::new(&served.url, dir.path());
    let outputs: Vec<String> = outputs.iter().map(|output| masks.mask(output)).collect();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(file, rewritten(&text, &outputs)).unwrap();
        return;
    }
    for (step, output) in steps(&text).iter().zip(&outputs) {
        let expected = step.output.join("\n");
        assert!(
            same(&expected, output),
            "{file}: $ {}\nexpected:\n{expected}\n\nactual:\n{output}",
            step.command
        );
    }
}

struct Step<'a> {
    command: &'a str,
    output: Vec<&'a str>,
}

/// The first block of a language.
fn block<'a>(text: &'a str, sort: &str) -> &'a str {
    let after = text.split_once(&format!("```{sort}\n")).map(|(_, rest)| rest);
    after.and_then(|rest| rest.split_once("```")).map(|(block, _)| block).unwrap_or_default()
}

fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line.strip_prefix("$ ").filter(|_| is_inside) {
            Some(command) => steps.push(Step { command, output: Vec::new() }),
            None if line == "```console" => is_inside = true,
            None if line == "```" => is_inside = false,
            None if is_inside => steps.last_mut().expect("a block begins with a command").output.push(line),
            None => {}
        }
    }
    steps
}

/// The page with new outputs. An output that is the same stays unchanged.
fn rewritten(text: &str, outputs: &[String]) -> String {
    let (steps, mut number) = (steps(text), 0);
    let mut page = String::new();
    let (mut is_inside, mut is_output) = (false, false);
    for line in text.lines() {
        let is_command = is_inside && line.starts_with("$ ");
        is_inside = if is_inside { line != "```" } else { line == "```console" };
        is_output = is_output && is_inside && !is_command && line != "```console";
        if !is_output {
            writeln!(page, "{line}").unwrap();
        }
        if is_command {
            let before = steps[number].output.join("\n");
            let output = if same(&before, &outputs[number]) { &before } else { &outputs[number] };
            if !output.is_empty() {
                writeln!(page, "{output}").unwrap();
            }
            number += 1;
            is_output = true;
        }
    }
    page
}

/// The output of each command. One shell runs them all, so that variables last.
fn run(dir: &Path, url: &str, commands: &[&str]) -> Vec<String> {
    let outside = tempfile::tempdir().unwrap();
    let place = |name: &str, number: usize| outside.path().join(format!("{name}.{number}"));
    let mut script = String::new();
    for (number, command) in commands.iter().enumerate() {
        let [out, err, code] = ["out", "err", "code"].map(|name| place(name, number).display().to_string());
        writeln!(script, "{{ {command}\n}} >{out} 2>{err} </dev/null; echo $? >{code}").unwrap();
    }
    let bin = Path::new(env!("CARGO_BIN_EXE_laneway")).parent().unwrap().display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(dir).env_clear().env("PATH", path).env("LANEWAY_URL", url);
    assert!(shell.status().unwrap().success());
    let read = |name: &str, number: usize| std::fs::read_to_string(place(name, number)).unwrap();
    (0..commands.len())
        .map(|number| {
            let mut text = read("out", number);
            read("err", number).lines().for_each(|line| writeln!(text, "2> {line}").unwrap());
            match read("code", number).trim() {
                "0" => {}
                code => writeln!(text, "[exit {code}]").unwrap(),
            }
            text.trim_end().to_owned()
        })
        .collect()
}
