//! Words of a command with places for what a task brings: `{{payload.path}}`.

use std::fmt;

/// One word of a command. Whatever is put in its places, it stays one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its parts, in order.
    pub parts: Vec<TemplatePart>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplatePart {
    /// As it is.
    Text(String),
    /// Something of the task.
    Field(TemplateField),
}

/// Something of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateField {
    /// The payload, or what lies in it under these keys.
    Payload(Vec<String>),
    /// Its id.
    Id,
    /// Its kind.
    Kind,
    /// Its home lane.
    Lane,
    /// Its conversation.
    Session,
    /// Which attempt it is.
    Attempt,
}

/// Why a word of a command cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A place begins and does not end.
    #[error("{word:?} has a {{{{ without its }}}}")]
    Unclosed {
        /// The whole word.
        word: String,
    },
    /// A task has nothing of this name.
    #[error("{{{{{place}}}}} is nothing of a task; there are {PLACES}")]
    UnknownPlace {
        /// What stands between the braces.
        place: String,
    },
}

const PLACES: &str = "payload, payload.<key>, id, kind, lane, session, attempt";

impl Template {
    /// Reads a word.
    pub fn read(word: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.to_owned()));
            }
            let Some((inside, after)) = after.split_once("}}") else {
                return Err(TemplateError::Unclosed { word: word.to_owned() });
            };
            parts.push(TemplatePart::Field(TemplateField::read(inside.trim())?));
            rest = after;
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(TemplatePart::Text(rest.to_owned()));
        }
        Ok(Template { parts })
    }

    /// Whether it is the same word for every task.
    pub fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, TemplatePart::Text(_)))
    }

    /// The word, if it is the same for every task.
    pub fn fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether a task decides with which sign it begins.
    pub fn begins_with_place(&self) -> bool {
        matches!(self.parts.first(), Some(TemplatePart::Field(_)))
    }
}

impl TemplateField {
    fn read(inside: &str) -> Result<TemplateField, TemplateError> {
        let mut keys = inside.split('.').map(str::to_owned);
        let place = match (keys.next().as_deref(), inside) {
            (Some("payload"), _) => {
                let keys: Vec<String> = keys.collect();
                if keys.iter().any(String::is_empty) { None } else { Some(TemplateField::Payload(keys)) }
            }
            (_, "id") => Some(TemplateField::Id),
            (_, "kind") => Some(TemplateField::Kind),
            (_, "lane") => Some(TemplateField::Lane),
            (_, "session") => Some(TemplateField::Session),
            (_, "attempt") => Some(TemplateField::Attempt),
            _ => None,
        };
        place.ok_or_else(|| TemplateError::UnknownPlace { place: inside.to_owned() })
    }
}

impl fmt::Display for TemplateField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateField::Payload(keys) => {
                f.write_str("payload")?;
                keys.iter().try_for_each(|key| write!(f, ".{key}"))
            }
            TemplateField::Id => f.write_str("id"),
            TemplateField::Kind => f.write_str("kind"),
            TemplateField::Lane => f.write_str("lane"),
            TemplateField::Session => f.write_str("session"),
            TemplateField::Attempt => f.write_str("attempt"),
        }
    }
}

/// Programs that take a word for code when an option says so.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "python", "perl",
    "ruby", "node", "lua", "php",
];

/// The first word that an interpreter would read as code and that a task could change; `None`: there is none.
pub(crate) fn code_from_tasks(command: &[Template]) -> Option<usize> {
    let interpreter = command.iter().position(|word| word.fixed().is_some_and(is_interpreter))?;
    let is_option = |word: &Template| {
        let text = word.fixed().unwrap_or_default();
        let is_short = text.starts_with('-') && !text.starts_with("--");
        (is_short && text.contains(['c', 'e'])) || text == "--eval" || text == "--command"
    };
    let option = command.iter().skip(interpreter + 1).position(is_option)?;
    let code = interpreter + 1 + option + 1;
    command.get(code).filter(|word| !word.is_fixed()).map(|_| code)
}

fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.');
    INTERPRETERS.contains(&name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use super::*;

    #[test]
    fn words_are_cut_into_texts_and_places() {
        let word = Template::read("--in={{ payload.a.0 }}{{id}}").unwrap();
        let payload = TemplateField::Payload(vec!["a".to_owned(), "0".to_owned()]);
        let parts = vec![
            TemplatePart::Text("--in=".to_owned()),
            TemplatePart::Field(payload),
            TemplatePart::Field(TemplateField::Id),
        ];
        assert_eq!(word.parts, parts);
        assert_eq!(Template::read("a}}b").unwrap().fixed(), Some("a}}b"));
        assert_eq!(Template::read("").unwrap().fixed(), Some(""));
        for wrong in ["{{payload", "{{}}", "{{pay}}", "{{payload.}}", "{{payload..a}}", "{{id.x}}", "{{{id}}"]
        {
            assert!(Template::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn code_that_a_task_could_change_is_found_behind_every_interpreter() {
        let samples = [
            (&["sh", "-c", "echo {{payload.x}}"][..], Some(2)),
            (&["/usr/bin/env", "bash", "-lc", "{{payload}}"], Some(3)),
            (&["nice", "/bin/dash", "-x", "-c", "a{{id}}"], Some(4)),
            (&["python3.12", "-c", "print({{payload.n}})"], Some(2)),
            (&["node", "--eval", "{{payload}}"], Some(2)),
            (&["sh", "-c", "echo \"$1\"", "_", "{{payload.x}}"], None),
            (&["tar", "-c", "{{payload.path}}"], None),
            (&["python3", "run.py", "{{payload.x}}"], None),
        ];
        for (words, expected) in samples {
            let command: Vec<Template> = words.iter().map(|word| Template::read(word).unwrap()).collect();
            assert_eq!(code_from_tasks(&command), expected, "{words:?}");
        }
    }
}
