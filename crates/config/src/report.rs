//! Collects errors, warnings, and the source of each value.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{ConfigProblem, Error};
use crate::source::ValueSource;

/// The source of each value, by block and key.
pub(crate) type Sources = BTreeMap<(String, String), ValueSource>;

pub(crate) struct Report {
    file: Arc<str>,
    pub(crate) errors: Vec<Error>,
    pub(crate) warnings: Vec<String>,
    pub(crate) sources: Sources,
}

impl Report {
    pub(crate) fn new(file: &str) -> Report {
        Report { file: file.into(), errors: Vec::new(), warnings: Vec::new(), sources: Sources::new() }
    }

    /// The source for a line of the file.
    pub(crate) fn at(&self, line: Option<u32>) -> ValueSource {
        ValueSource::File { path: Arc::clone(&self.file), line }
    }

    pub(crate) fn remember(&mut self, block: &str, key: &str, line: Option<u32>) {
        let at = self.at(line);
        self.sources.insert((block.to_owned(), key.to_owned()), at);
    }

    /// The line of a value that has been read.
    pub(crate) fn line_of(&self, block: &str, key: &str) -> Option<u32> {
        match self.sources.get(&(block.to_owned(), key.to_owned()))? {
            ValueSource::File { line, .. } => *line,
            _ => None,
        }
    }

    pub(crate) fn error(&mut self, line: Option<u32>, block: &str, problem: ConfigProblem) {
        let at = self.at(line);
        self.errors.push(Error { at, block: block.to_owned(), problem });
    }

    pub(crate) fn warn(&mut self, line: Option<u32>, block: &str, sentence: &str) {
        self.warnings.push(format!("{}: {block}: {sentence}", self.at(line)));
    }

    pub(crate) fn wrong(&mut self, line: Option<u32>, block: &str, key: &str, expected: &str) {
        let (key, expected) = (key.to_owned(), expected.to_owned());
        // A block at the top of the file has no key, so its name is the key.
        let (block, key) = if key.is_empty() { ("", block.to_owned()) } else { (block, key) };
        self.error(line, block, ConfigProblem::WrongValue { key, expected });
    }

    pub(crate) fn twice(&mut self, line: Option<u32>, block: &str, key: &str, first: ValueSource) {
        self.error(line, block, ConfigProblem::Twice { key: key.to_owned(), first });
    }

    pub(crate) fn missing(&mut self, line: Option<u32>, block: &str, needed: &str) {
        self.error(line, block, ConfigProblem::Missing { needed: needed.to_owned() });
    }

    pub(crate) fn contradiction(&mut self, line: Option<u32>, block: &str, sentence: String) {
        self.error(line, block, ConfigProblem::Contradiction(sentence));
    }

    pub(crate) fn unknown(
        &mut self,
        line: Option<u32>,
        block: &str,
        written: &str,
        prefix: &str,
        known: &[String],
    ) {
        // Suggest a key with `_ms` only for a key with `_ms`.
        let with_millis = written.to_ascii_lowercase().ends_with("ms");
        let offered = known.iter().filter(|key| with_millis || !key.ends_with("_ms"));
        let known: Vec<String> = offered.map(|key| format!("{prefix}{key}")).collect();
        let nearest = nearest(&crate::fields::snake_case(written), &known).map(str::to_owned);
        self.error(line, block, ConfigProblem::UnknownKey { key: written.to_owned(), nearest, known });
    }
}

/// The one of `known` that is most similar to `text`, if any is similar.
pub(crate) fn nearest<'a>(text: &str, known: &'a [String]) -> Option<&'a str> {
    let near =
        |key: &&String| strsim::damerau_levenshtein(text, key) <= text.chars().count().max(key.len()) / 3;
    let nearest = known.iter().filter(near).min_by_key(|key| strsim::damerau_levenshtein(text, key));
    nearest.map(String::as_str)
}
