//! Masks the parts of an output that differ each time, or leaves them out of the comparison.

use std::collections::HashMap;
use std::path::Path;

/// Replaces parts that differ each time with fixed text of the same length.
pub(crate) struct Masks {
    host: String,
    dir: String,
    ids: HashMap<String, usize>,
}

impl Masks {
    pub(crate) fn new(url: &str, dir: &Path) -> Masks {
        let host = url.trim_start_matches("http://").to_owned();
        Masks { host, dir: dir.display().to_string(), ids: HashMap::new() }
    }

    pub(crate) fn mask(&mut self, text: &str) -> String {
        let text = text.replace(&self.host, "127.0.0.1:7717").replace(&self.dir, "/srv");
        let mut masked = String::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let ends_word = masked.ends_with(|sign: char| sign.is_ascii_alphanumeric());
            let found = if ends_word { None } else { self.word(rest) };
            match found {
                Some((length, word)) => {
                    masked.push_str(&word);
                    rest = &rest[length..];
                }
                None => {
                    masked.push(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        masked
    }

    /// The length and the replacement of an id, a moment, a hash or a token at the start of the text.
    fn word(&mut self, text: &str) -> Option<(usize, String)> {
        if fits(text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
            let next = self.ids.len() + 1;
            let number = *self.ids.entry(text[..36].to_owned()).or_insert(next);
            return Some((36, format!("019a8c7e-0000-7000-8000-{number:012}")));
        }
        if fits(text, "dddd-dd-ddTdd:dd:dd.dddZ") {
            return Some((24, "2026-11-15T12:00:00.000Z".to_owned()));
        }
        if text.starts_with("lw_") && fits(&text[3..], &"x".repeat(16)) {
            return Some((19, "lw_0123456789abcdef".to_owned()));
        }
        fits(text, &"x".repeat(64)).then(|| (64, "f".repeat(64)))
    }
}

/// Whether a text begins with a pattern: `x` is a hex digit, `d` a digit, any other character itself.
fn fits(text: &str, sort: &str) -> bool {
    text.len() >= sort.len()
        && text.bytes().zip(sort.bytes()).all(|(sign, sort)| match sort {
            b'x' => sign.is_ascii_hexdigit() && !sign.is_ascii_uppercase(),
            b'd' => sign.is_ascii_digit(),
            sort => sign == sort,
        })
}

/// Whether two outputs are the same, apart from durations and column widths. A short attempt may end before the program
/// sees it run, so the line `running` is optional.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let lines =
        |text: &str| -> Vec<String> { text.lines().map(plain).filter(|line| line != "2> running").collect() };
    lines(one) == lines(other)
}

fn plain(line: &str) -> String {
    if let Some((name, value)) = line.split_once("\": ")
        && (name.ends_with("_ms") || name.ends_with("retry_after"))
        && value.starts_with(|sign: char| sign.is_ascii_digit())
    {
        return format!("{} ~", name.trim());
    }
    let mut words: Vec<String> = line.split_whitespace().map(without_duration).collect();
    if let Some(pid) = words.iter().position(|word| word == "process").and_then(|at| words.get_mut(at + 1)) {
        *pid = "~".to_owned();
    }
    if let Some(length) =
        words.windows(2).position(|pair| pair == ["Retry", "in"]).and_then(|at| words.get_mut(at + 2))
    {
        *length = "~".to_owned();
    }
    words.join(" ")
}

/// Replaces a duration such as `12s,` with `~,`.
fn without_duration(word: &str) -> String {
    let bare = word.trim_end_matches([',', '.', ';', ')']);
    let is_duration = bare.starts_with(|sign: char| sign.is_ascii_digit())
        && bare.ends_with(['s', 'm', 'h'])
        && bare.chars().all(|sign| sign.is_ascii_digit() || ".msdh".contains(sign));
    if is_duration { format!("~{}", &word[bare.len()..]) } else { word.to_owned() }
}
