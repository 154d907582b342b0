//! Fills the fields of a task into the arguments of a command. A value never splits an argument.

use laneway_client::AttemptFailure;
use laneway_client::protocol::ClaimedTask;
use laneway_config::{Template, TemplateField, TemplatePart};
use serde_json::Value;

/// The arguments of a command for one task.
///
/// It refuses values that would change the meaning of the command: a value that looks like an option, or holds a NUL.
pub(crate) fn words(command: &[Template], task: &ClaimedTask) -> Result<Vec<String>, AttemptFailure> {
    let mut words: Vec<String> = Vec::with_capacity(command.len());
    let mut options_are_over = false;
    for template in command {
        let word = word(template, task)?;
        if template.begins_with_place() && word.starts_with('-') && !options_are_over {
            let place = place_of(template);
            let why = format!(
                "{place} begins with '-', and the program would read it as an option; nothing was run"
            );
            return Err(AttemptFailure::fatal(why));
        }
        options_are_over |= template.fixed() == Some("--");
        words.push(word);
    }
    Ok(words)
}

fn word(template: &Template, task: &ClaimedTask) -> Result<String, AttemptFailure> {
    let mut word = String::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(text) => word.push_str(text),
            TemplatePart::Field(place) => word.push_str(&value(place, task)?),
            _ => return Err(AttemptFailure::fatal("this worker is too old for a part of the command")),
        }
    }
    Ok(word)
}

fn place_of(template: &Template) -> String {
    let place = template.parts.iter().find_map(|part| match part {
        TemplatePart::Field(place) => Some(place.to_string()),
        _ => None,
    });
    place.unwrap_or_default()
}

fn value(place: &TemplateField, task: &ClaimedTask) -> Result<String, AttemptFailure> {
    let text = match place {
        TemplateField::Payload(keys) => text_in(&task.payload, keys),
        TemplateField::Id => Some(task.id.clone()),
        TemplateField::Kind => Some(task.kind.clone()),
        TemplateField::Lane => Some(task.lane.clone()),
        TemplateField::Session => task.session.clone(),
        TemplateField::Attempt => Some(task.attempt.to_string()),
        _ => None,
    };
    match text {
        None => Err(AttemptFailure::fatal(format!(
            "the task has no {place}, which the command needs; nothing was run"
        ))),
        Some(text) if text.contains('\0') => {
            Err(AttemptFailure::fatal(format!("{place} must not hold a NUL; nothing was run")))
        }
        Some(text) => Ok(text),
    }
}

/// The value at a path of keys: a text as it is, other values as JSON, `None` if it is missing.
fn text_in(payload: &Value, keys: &[String]) -> Option<String> {
    let mut value = payload;
    for key in keys {
        value = match value {
            Value::Object(object) => object.get(key)?,
            Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use laneway_client::protocol::At;
    use serde_json::json;

    use super::*;

    fn task(payload: Value) -> ClaimedTask {
        ClaimedTask {
            id: "t1".to_owned(),
            session: None,
            lane: "external".to_owned(),
            kind: "k".to_owned(),
            payload,
            attempt: 2,
            fence: 7,
            lease_until: "2026-11-15T12:03:15.042Z".parse::<At>().unwrap(),
            timeout_ms: None,
            remaining_ms: None,
            traceparent: None,
        }
    }

    fn filled(command: &[&str], payload: Value) -> Result<Vec<String>, String> {
        let command: Vec<Template> = command.iter().map(|word| Template::read(word).unwrap()).collect();
        words(&command, &task(payload)).map_err(|failure| {
            assert!(!failure.retryable, "a retry would fail again");
            failure.error
        })
    }

    #[test]
    fn values_become_arguments_unchanged() {
        let got = filled(
            &["run", "--n={{payload.n}}", "{{payload.list.1}}", "{{payload.o}}", "{{id}}#{{attempt}}"],
            json!({ "n": -3, "list": ["a", "b c"], "o": { "x": [1, null] } }),
        );
        assert_eq!(got.unwrap(), ["run", "--n=-3", "b c", "{\"x\":[1,null]}", "t1#2"]);
        assert_eq!(
            filled(&["run", "{{payload}}"], json!("{{id}} {{payload}}")).unwrap()[1],
            "{{id}} {{payload}}"
        );
        assert_eq!(filled(&["run", "--", "{{payload}}"], json!("--all")).unwrap()[2], "--all");
        assert_eq!(filled(&["run", "{{payload}}"], json!("")).unwrap(), ["run", ""]);
    }

    #[test]
    fn values_that_would_change_the_command_are_refused() {
        for (payload, why) in [
            (json!({ "x": "-rf" }), "read it as an option"),
            (json!({ "x": "--" }), "read it as an option"),
            (json!({ "x": -1 }), "read it as an option"),
            (json!({ "x": "a\u{0}b" }), "must not hold a NUL"),
            (json!({}), "no payload.x"),
            (json!({ "x": null }), "no payload.x"),
            (json!("x"), "no payload.x"),
        ] {
            let error = filled(&["run", "{{payload.x}}"], payload.clone()).unwrap_err();
            assert!(error.contains(why), "{payload}: {error}");
        }
        // A value cannot become the `--` that ends the options.
        assert!(filled(&["run", "{{payload.0}}", "{{payload.1}}"], json!(["a", "--"])).is_err());
    }
}
