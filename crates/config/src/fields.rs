//! Reads a block key by key. The keys that the reader takes are the known keys. It reports each key that is left at the end
//! of a block, with the most similar known key.

use laneway_core::{COUNT_MAX, Millis, duration};

use crate::formats::{Entry, Node, Value};
use crate::report::Report;

/// One key of a block and its value.
#[derive(Clone, Debug)]
pub(crate) struct Field<'a> {
    /// In snake_case, without `_ms`.
    pub(crate) key: String,
    /// The key as in the file, after the names of the blocks around it.
    pub(crate) written: String,
    pub(crate) line: Option<u32>,
    pub(crate) value: &'a Value,
    pub(crate) node: &'a Node,
    /// Whether the key ends in `_ms`, so that only a number is valid.
    pub(crate) millis: bool,
}

/// A block, and the keys that are not yet read.
pub(crate) struct Fields<'a> {
    /// The block's name in errors: `lane "main"`.
    pub(crate) block: String,
    /// The prefix of its keys: `retry.`.
    prefix: String,
    pub(crate) line: Option<u32>,
    rest: Vec<Field<'a>>,
    known: Vec<String>,
}

impl<'a> Fields<'a> {
    /// The keys of `node`, which must be a table. Errors put `prefix` before each key.
    pub(crate) fn of(report: &mut Report, block: &str, prefix: &str, node: &'a Node) -> Option<Fields<'a>> {
        let Value::Table(entries) = &node.value else {
            let key = prefix.trim_end_matches('.');
            report.wrong(node.line, block, key, &format!("must be a block, not {}", node.value.what()));
            return None;
        };
        let mut rest: Vec<Field<'a>> = Vec::new();
        for Entry { key, line, node } in entries {
            let line = line.or(node.line);
            let field = Field {
                key: snake_case(key),
                written: format!("{prefix}{key}"),
                line,
                value: &node.value,
                node,
                millis: false,
            };
            match rest.iter().find(|earlier| earlier.key == field.key) {
                Some(earlier) => report.twice(line, block, &field.written, report.at(earlier.line)),
                None => rest.push(field),
            }
        }
        let (block, prefix) = (block.to_owned(), prefix.to_owned());
        Some(Fields { block, prefix, line: node.line, rest, known: Vec::new() })
    }

    /// Takes the value of `key`, if it is given.
    pub(crate) fn take(&mut self, key: &str) -> Option<Field<'a>> {
        self.known.push(key.to_owned());
        let place = self.rest.iter().position(|field| field.key == key)?;
        Some(self.rest.remove(place))
    }

    /// The value of `key`, without taking it.
    pub(crate) fn peek(&self, key: &str) -> Option<Field<'a>> {
        self.rest.iter().find(|field| field.key == key).cloned()
    }

    /// Takes the value of `key` or of `key_ms`. Both together are an error.
    pub(crate) fn take_duration(&mut self, report: &mut Report, key: &str) -> Option<Field<'a>> {
        let plain = self.take(key);
        let millis = self.take(&format!("{key}_ms"));
        if let (Some(plain), Some(millis)) = (&plain, &millis) {
            report.twice(millis.line, &self.block, &millis.written, report.at(plain.line));
        }
        let millis = millis.map(|field| Field { key: key.to_owned(), millis: true, ..field });
        plain.or(millis)
    }

    /// Remembers the source of a value, and returns the value.
    fn given<T>(&self, report: &mut Report, field: &Field<'_>, value: T) -> Option<T> {
        let key = format!("{}{}", self.prefix, field.key);
        report.remember(&self.block, &key, field.line);
        Some(value)
    }

    fn wrong<T>(&self, report: &mut Report, field: &Field<'_>, expected: &str) -> Option<T> {
        report.wrong(field.line, &self.block, &field.written, expected);
        None
    }

    /// A text that is not blank.
    pub(crate) fn text(&mut self, report: &mut Report, key: &str) -> Option<String> {
        let field = self.take(key)?;
        match field.value {
            Value::Text(text) if text.trim().is_empty() => self.wrong(report, &field, "must not be blank"),
            Value::Text(text) => self.given(report, &field, text.clone()),
            other => self.wrong(report, &field, &format!("must be a text, not {}", other.what())),
        }
    }

    pub(crate) fn truth(&mut self, report: &mut Report, key: &str) -> Option<bool> {
        let field = self.take(key)?;
        match field.value {
            Value::Bool(truth) => self.given(report, &field, *truth),
            other => self.wrong(report, &field, &format!("must be true or false, not {}", other.what())),
        }
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(&mut self, report: &mut Report, key: &str, least: u32) -> Option<u32> {
        let field = self.take(key)?;
        let number = match field.value {
            Value::Number(text) => text.parse::<u32>().ok(),
            _ => None,
        };
        match number {
            Some(number) if (least..=COUNT_MAX).contains(&number) => self.given(report, &field, number),
            _ => self.wrong(report, &field, &format!("must be a whole number from {least} to {COUNT_MAX}")),
        }
    }

    /// A duration, as `key` or `key_ms`.
    pub(crate) fn duration(&mut self, report: &mut Report, key: &str, least: Millis) -> Option<Millis> {
        let field = self.take_duration(report, key)?;
        let text = match duration_text(&field) {
            Ok(text) => text,
            Err(expected) => return self.wrong(report, &field, expected),
        };
        match duration(key, text, least) {
            Ok(length) => self.given(report, &field, length),
            Err(error) => self.wrong(report, &field, &error.expected),
        }
    }

    /// One of a set of words, in any case.
    pub(crate) fn word<T: Copy>(
        &mut self,
        report: &mut Report,
        key: &str,
        words: &[(&str, T)],
        choices: &str,
    ) -> Option<T> {
        let field = self.take(key)?;
        match word(field.value, words) {
            Some(value) => self.given(report, &field, value),
            None => self.wrong(report, &field, &format!("must be one of {choices}")),
        }
    }

    /// A list of texts, none of them empty.
    pub(crate) fn texts(&mut self, report: &mut Report, key: &str, example: &str) -> Option<Vec<String>> {
        let field = self.take(key)?;
        let texts: Option<Vec<String>> = match field.value {
            Value::List(items) => items
                .iter()
                .map(|item| match &item.value {
                    Value::Text(text) if !text.is_empty() => Some(text.clone()),
                    _ => None,
                })
                .collect(),
            _ => None,
        };
        match texts {
            Some(texts) => self.given(report, &field, texts),
            None => self.wrong(report, &field, &format!("must be a list of texts such as {example}")),
        }
    }

    /// The entries of a table whose keys are names that the user chooses, each once.
    pub(crate) fn named(&mut self, report: &mut Report, key: &str) -> Vec<&'a Entry> {
        let Some(field) = self.take(key) else { return Vec::new() };
        let Value::Table(entries) = field.value else {
            let expected = format!("must be a block, not {}", field.value.what());
            report.wrong(field.line, &self.block, &field.written, &expected);
            return Vec::new();
        };
        let mut once: Vec<&Entry> = Vec::new();
        for entry in entries {
            match once.iter().find(|earlier| earlier.key == entry.key) {
                Some(first) => {
                    let what = format!("{} \"{}\"", field.written, entry.key);
                    report.twice(entry.line, &self.block, &what, report.at(first.line));
                }
                None => once.push(entry),
            }
        }
        once
    }

    /// The block under `key`.
    pub(crate) fn block(&mut self, report: &mut Report, key: &str) -> Option<Fields<'a>> {
        let field = self.take(key)?;
        let mut inner = Fields::of(report, &self.block, &format!("{}.", field.written), field.node)?;
        inner.prefix = format!("{}{key}.", self.prefix);
        Some(inner)
    }

    /// Reports keys that are left as unknown.
    pub(crate) fn finish(self, report: &mut Report) {
        for field in self.rest {
            report.unknown(field.line, &self.block, &field.written, &self.prefix, &self.known);
        }
    }

    /// Like `finish`, with another prefix for the known keys.
    pub(crate) fn finish_as(mut self, report: &mut Report, prefix: &str) {
        prefix.clone_into(&mut self.prefix);
        self.finish(report);
    }
}

/// The text of a duration: a number, or a text with a unit unless the key ends in `_ms`.
pub(crate) fn duration_text<'a>(field: &Field<'a>) -> Result<&'a str, &'static str> {
    match field.value {
        Value::Number(text) => Ok(text),
        Value::Text(text) if !field.millis => Ok(text.trim()),
        _ if field.millis => Err("must be a whole number of milliseconds"),
        _ => Err("must be a duration such as \"2s\" or 500 (milliseconds)"),
    }
}

pub(crate) fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Option<T> {
    let Value::Text(text) = value else { return None };
    let text = text.trim();
    words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value)
}

/// The key in snake_case: `maxConcurrency` becomes `max_concurrency`.
pub(crate) fn snake_case(key: &str) -> String {
    let mut snake = String::new();
    for char in key.chars() {
        if char.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(char.to_ascii_lowercase());
    }
    snake
}
