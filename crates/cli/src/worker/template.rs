//! Puts what a task brings into the words of a command. A word stays one word, whatever it holds.

use laneway_client::AttemptFailure;
use laneway_client::protocol::ClaimedTask;
use laneway_config::{Template, TemplateField, TemplatePart};
use serde_json::Value;

/// The words of a command for one task.
///
/// What would change the meaning of the command is refused, and not repaired: a value that the program would take for
/// an option, and one that no word can hold.
pub(crate) fn words(command: &[Template], task: &ClaimedTask) -> Result<Vec<String>, AttemptFailure> {
    let mut words: Vec<String> = Vec::with_capacity(command.len());
    let mut options_are_over = false;
    for template in command {
        let word = word(template, task)?;
        if template.begins_with_place() && word.starts_with('-') && !options_are_over {
            let place = place_of(template);
            let why = format!("{place} begins with '-' and would be taken for an option; nothing was run");
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
            _ => return Err(AttemptFailure::fatal("the command has a part that this worker does not know")),
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
            Err(AttemptFailure::fatal(format!("{place} holds a NUL, which no argument can; nothing was run")))
        }
        Some(text) => Ok(text),
    }
}

/// A text as it is, anything else as JSON; nothing for what is not there.
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
            assert!(!failure.retryable, "it would go wrong again");
            failure.error
        })
    }

    #[test]
    fn values_become_words_as_they_are() {
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
    fn what_would_change_the_command_is_refused() {
        for (payload, why) in [
            (json!({ "x": "-rf" }), "taken for an option"),
            (json!({ "x": "--" }), "taken for an option"),
            (json!({ "x": -1 }), "taken for an option"),
            (json!({ "x": "a\u{0}b" }), "holds a NUL"),
            (json!({}), "no payload.x"),
            (json!({ "x": null }), "no payload.x"),
            (json!("x"), "no payload.x"),
        ] {
            let error = filled(&["run", "{{payload.x}}"], payload.clone()).unwrap_err();
            assert!(error.contains(why), "{payload}: {error}");
        }
        // A value cannot make itself the word that ends the options.
        assert!(filled(&["run", "{{payload.0}}", "{{payload.1}}"], json!(["a", "--"])).is_err());
    }
}
