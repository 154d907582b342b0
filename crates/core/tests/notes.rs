//! Notes of programs: a change applies as a whole or not at all, and only to notes that are as its author saw them.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::sync::Arc;

use laneway_core::{
    Command, Event, NOTE_BYTES_MAX, NOTE_CHANGES_MAX, NOTES_BYTES_MAX, Note, NoteChange, Rejection,
    Scheduler, Timestamp,
};

fn note(key: &str, text: Option<&str>) -> Note {
    (key.into(), text.map(Arc::from))
}

fn change(lanes: &mut Scheduler, expected: Vec<Note>, changes: Vec<Note>) -> Result<Vec<Event>, Rejection> {
    let mut events = Vec::new();
    let command = Command::Note(Box::new(NoteChange { expected, changes }));
    lanes.step(Timestamp(1), command, &mut events).map(|_| events)
}

fn all(lanes: &Scheduler, prefix: &str) -> Vec<(String, String)> {
    lanes.notes(prefix).map(|(key, text)| (key.to_string(), text.to_string())).collect()
}

fn pair(key: &str, text: &str) -> (String, String) {
    (key.to_owned(), text.to_owned())
}

#[test]
fn notes_are_found_by_the_prefix_of_their_keys() {
    let mut lanes = Scheduler::new(1);
    let changes = vec![
        note("b/2", Some("two")),
        note("b/1", Some("one")),
        note("a", Some("other")),
        note("c", Some("")),
    ];
    let events = change(&mut lanes, vec![], changes.clone()).unwrap();
    assert_eq!(events, [Event::Noted { changes }]);
    assert_eq!(all(&lanes, "b/"), [pair("b/1", "one"), pair("b/2", "two")]);
    assert_eq!(all(&lanes, "").len(), 4);
    assert_eq!(all(&lanes, "d"), []);
    assert_eq!(lanes.note("c").map(|text| &**text), Some(""));

    let saved = lanes.snapshot();
    let restored = Scheduler::restore(2, &saved);
    assert_eq!(all(&restored, ""), all(&lanes, ""));
    let mut reader = Scheduler::new(3);
    events.iter().for_each(|event| reader.apply(Timestamp(1), event));
    assert_eq!(all(&reader, ""), all(&lanes, ""));
}

#[test]
fn a_change_applies_as_a_whole_to_notes_as_its_author_saw_them() {
    let mut lanes = Scheduler::new(1);
    change(&mut lanes, vec![note("k", None)], vec![note("k", Some("1"))]).unwrap();
    let late = change(&mut lanes, vec![note("k", None)], vec![note("k", Some("2")), note("l", Some("2"))]);
    assert_eq!(late, Err(Rejection::NoteChanged { key: "k".into() }));
    assert_eq!(all(&lanes, ""), [pair("k", "1")]);
    // A change to the same text emits no event.
    assert_eq!(change(&mut lanes, vec![note("k", Some("1"))], vec![note("k", Some("1"))]).unwrap(), []);
    let gone =
        change(&mut lanes, vec![note("k", Some("1"))], vec![note("k", None), note("m", None)]).unwrap();
    assert_eq!(gone, [Event::Noted { changes: vec![note("k", None)] }]);
    assert_eq!(all(&lanes, ""), []);
}

#[test]
fn notes_have_size_limits() {
    let mut lanes = Scheduler::new(1);
    let long = "x".repeat(NOTE_BYTES_MAX);
    assert_eq!(change(&mut lanes, vec![], vec![note("k", Some(&long))]), Err(Rejection::NotesFull));
    let many = (0..=NOTE_CHANGES_MAX).map(|number| note(&number.to_string(), Some(""))).collect();
    assert_eq!(change(&mut lanes, vec![], many), Err(Rejection::NotesFull));
    let most = NOTES_BYTES_MAX as usize / NOTE_BYTES_MAX;
    let key = |number: usize| format!("{number:06}");
    let large = &long[6..];
    for number in 0..most {
        change(&mut lanes, vec![], vec![note(&key(number), Some(large))]).unwrap();
    }
    let refused = change(&mut lanes, vec![], vec![note("one more", Some(""))]).unwrap_err();
    assert_eq!((refused.code(), refused.clone()), ("AT_CAPACITY", Rejection::NotesFull));
    // A change that makes notes smaller is accepted, and makes room.
    change(&mut lanes, vec![], vec![note(&key(0), Some("short"))]).unwrap();
    change(&mut lanes, vec![], vec![note("one more", Some(""))]).unwrap();
    change(&mut lanes, vec![], (0..most).map(|number| note(&key(number), None)).collect()).unwrap();
    assert_eq!(all(&lanes, ""), [pair("one more", "")]);
    change(&mut lanes, vec![], vec![note("again", Some(large))]).unwrap();
}
