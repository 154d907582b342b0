//! Broken files: a mutated sample is either valid or refused with an error. The reader never panics.

use laneway_config::{Profile, parse};
use laneway_seeded::Random;

const SAMPLES: [(&str, &str); 3] = [
    ("a.hcl", include_str!("samples/laneway.hcl")),
    ("a.json5", include_str!("samples/laneway.json5")),
    ("a.toml", include_str!("samples/laneway.toml")),
];
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "=",
    ":",
    ",",
    "\n",
    "#",
    "//",
    "/*",
    "${",
    "<<E\n",
    "-1",
    "0",
    "1e999",
    "null",
    "é\u{301}",
    "\u{0}",
    "true",
    "lane",
    "max_concurrency",
];

/// Removes, inserts or moves a piece of the text.
fn mutate(text: &str, random: &mut Random) -> String {
    let chars: Vec<char> = text.chars().collect();
    let from = random.index(chars.len() + 1);
    let to = (from + random.index(12)).min(chars.len());
    let piece: Vec<char> = match random.index(3) {
        0 => Vec::new(),
        1 => PIECES[random.index(PIECES.len())].chars().collect(),
        _ => {
            let start = random.index(chars.len());
            chars[start..(start + random.index(40)).min(chars.len())].to_vec()
        }
    };
    chars[..from].iter().chain(&piece).chain(&chars[to..]).collect()
}

#[test]
fn a_broken_file_is_refused_with_an_error() {
    let nothing: [(&str, &str); 0] = [];
    let mut random = Random::new(7);
    let (mut accepted, mut refused, mut understood) = (0, 0, 0);
    for round in 0..3000 {
        let (file, sample) = SAMPLES[round % SAMPLES.len()];
        let mut text = sample.to_owned();
        for _ in 0..=random.index(3) {
            text = mutate(&text, &mut random);
        }
        match parse(file, &text, Profile::SERVER, nothing) {
            Ok(config) => {
                accepted += 1;
                assert!(config.effective().to_string().contains("listen"));
                assert!(config.lane_blocks().iter().all(|block| {
                    block.settings.as_ref().is_some_and(|settings| settings.check().is_ok())
                }));
            }
            Err(errors) => {
                refused += 1;
                assert!(errors.iter().count() > 0);
                assert!(errors.to_string().lines().all(|line| line.starts_with(file)), "{errors}");
                understood += usize::from(errors.iter().all(|error| error.problem.code() != "SYNTAX"));
            }
        }
    }
    // The mutations reach all three outcomes.
    assert!(accepted > 100 && refused > 1000 && understood > 100, "{accepted} {refused} {understood}");
}

#[test]
fn a_deeply_nested_file_is_refused_without_a_stack_overflow() {
    let nothing: [(&str, &str); 0] = [];
    for (file, start, piece, end) in [
        ("a.hcl", "a = ", "[", ""),
        ("a.hcl", "a = ", "{ b = ", ""),
        ("a.hcl", "", "a {\n", ""),
        ("a.hcl", "a = \"", "${\"", ""),
        ("a.json5", "", "[", ""),
        ("a.json5", "", "{ a: ", ""),
        ("a.toml", "a = ", "[", ""),
        ("a.toml", "a = ", "{ b = ", ""),
        ("a.toml", "[a", ".a", "]\n"),
        ("a.toml", "a", ".a", " = 1\n"),
        ("a.hcl", "a", " \"b\"", " {}\n"),
    ] {
        let text = format!("{start}{}{end}", piece.repeat(100_000));
        let errors = parse(file, &text, Profile::SERVER, nothing).map(|_| ()).unwrap_err();
        assert_eq!(
            errors.iter().map(|error| error.problem.code()).collect::<Vec<_>>(),
            ["SYNTAX"],
            "{piece}"
        );
    }
}

#[test]
fn an_error_is_one_line_whatever_the_names_in_the_file_are() {
    let nothing: [(&str, &str); 0] = [];
    let text = "lane \"a\\n\\u001b[2J\" {}\n";
    let errors = parse("a.hcl", text, Profile::SERVER, nothing).map(|_| ()).unwrap_err().to_string();
    assert!(!errors.chars().any(char::is_control), "{errors:?}");
    assert!(errors.starts_with("a.hcl:1: lane \"a\\n\\u{1b}[2J\": "), "{errors}");
}

#[test]
fn an_expression_without_a_result_is_refused() {
    let nothing: [(&str, &str); 0] = [];
    for (calculation, word) in [
        ("0 % 0", "no result"),
        ("1 / (2 - 2)", "no result"),
        ("9000000000000000000 * 9", "too large"),
        ("0 - 9000000000000000001 - 1000000000000000000", "too large"),
        ("\"${1 % 0}\"", "no result"),
        ("[for x in [0] : 1 % x][0]", "needs a number"),
        ("1 + true", "needs a number"),
    ] {
        let text = format!("\nlane \"main\" {{ max_concurrency = {calculation} }}");
        let errors = parse("a.hcl", &text, Profile::SERVER, nothing).map(|_| ()).unwrap_err().to_string();
        assert!(errors.starts_with("a.hcl:2: ") && errors.contains(word), "{calculation}: {errors}");
    }
    assert!(
        parse("a.hcl", "lane \"main\" { max_concurrency = 7 % 4 + 6 / 2 }", Profile::SERVER, nothing).is_ok()
    );
}
