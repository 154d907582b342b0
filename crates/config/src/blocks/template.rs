//! Arguments of a command with fields of a task: `{{payload.path}}`.

use std::fmt;

/// One argument of a command. The value of a field never splits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// Its parts, in order.
    pub parts: Vec<TemplatePart>,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplatePart {
    /// Literal text.
    Text(String),
    /// The value of a field of the task.
    Field(TemplateField),
}

/// A field of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateField {
    /// The payload, or the part of it at a path of keys.
    Payload(Vec<String>),
    /// Its id.
    Id,
    /// Its kind.
    Kind,
    /// Its home lane.
    Lane,
    /// Its session.
    Session,
    /// The number of the attempt.
    Attempt,
}

/// Why an argument of a command is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A field has no end.
    #[error("{word:?} has {{{{ without }}}}")]
    Unclosed {
        /// The whole argument.
        word: String,
    },
    /// A task has no such field.
    #[error("{{{{{field}}}}} is not a field of a task; there are {FIELDS}")]
    UnknownField {
        /// The text between the braces.
        field: String,
    },
}

const FIELDS: &str = "payload, payload.<key>, id, kind, lane, session, attempt";

impl Template {
    /// Parses an argument.
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

    /// Whether the argument is the same for every task.
    pub fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, TemplatePart::Text(_)))
    }

    /// The argument, if it is the same for every task.
    pub fn fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether the argument starts with a field, so that a task decides its first character.
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
        place.ok_or_else(|| TemplateError::UnknownField { field: inside.to_owned() })
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

/// Programs that run an argument as code after an option such as `-c`.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "python", "perl",
    "ruby", "node", "lua", "php",
];

/// The position of an argument that an interpreter would run as code and that a task could change.
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
    fn arguments_are_parsed_into_texts_and_fields() {
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
    fn code_that_a_task_could_change_is_found_for_every_interpreter() {
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
