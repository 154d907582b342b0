//! What a disk may lose, and what not.

use std::path::{Path, PathBuf};

use super::disk::after_power_cut;
use super::files::Files;
use super::trace::{Call, Event, read};
use laneway_seeded::Random;

/// Calls one after another, each a line of its own.
fn events(calls: Vec<Call>) -> Vec<Event> {
    let event = |(line, call)| Event { call, start: line, end: Some(line) };
    calls.into_iter().enumerate().map(event).collect()
}

/// The file as each of many cuts behind the last call leaves it; `None` where it is gone.
fn outcomes(calls: Vec<Call>) -> Vec<Option<Vec<u8>>> {
    let place = Path::new("/store");
    let before = Files::of([(place.join("old"), b"old".to_vec())]);
    let events = events(calls);
    let cut = |seed| after_power_cut(&before, &events, events.len(), &mut Random::new(seed));
    (1..200).map(|seed| cut(seed).contents(&place.join("file")).map(<[u8]>::to_vec)).collect()
}

fn file() -> PathBuf {
    PathBuf::from("/store/file")
}

fn made_and_written() -> Vec<Call> {
    vec![Call::Create(file()), Call::Write(file(), Some(0), vec![7; 1024])]
}

#[test]
fn what_was_flushed_is_there_and_what_was_not_is_there_gone_or_torn() {
    let torn = |contents: &Option<Vec<u8>>| {
        contents.as_ref().is_some_and(|bytes| bytes.contains(&7) && *bytes != vec![7; 1024])
    };
    let loose = outcomes(made_and_written());
    assert!(loose.contains(&None), "a name that was not flushed may be gone");
    assert!(loose.contains(&Some(Vec::new())), "its contents may be gone");
    assert!(loose.contains(&Some(vec![7; 1024])), "all may be there");
    assert!(loose.iter().any(torn), "half of it may be there");

    let mut calls = made_and_written();
    calls.extend([Call::Flush(file()), Call::Flush(PathBuf::from("/store"))]);
    assert!(outcomes(calls).iter().all(|left| *left == Some(vec![7; 1024])));
}

#[test]
fn a_flush_keeps_what_came_before_it_and_not_what_came_after() {
    let mut calls = made_and_written();
    calls.extend([Call::Flush(PathBuf::from("/store")), Call::Flush(file())]);
    calls.push(Call::Write(file(), Some(0), vec![8; 512]));
    let left = outcomes(calls);
    let second_half = |contents: &Option<Vec<u8>>| contents.as_ref().map(|bytes| bytes[512..].to_vec());
    assert!(left.iter().all(|contents| second_half(contents) == Some(vec![7; 512])));
    let first =
        |byte: u8| left.iter().any(|contents| contents.as_ref().is_some_and(|bytes| bytes[0] == byte));
    assert!(first(7) && first(8));
}

#[test]
fn a_trace_is_read_with_calls_that_others_cut_in_two() {
    let text = "\
        10 openat(AT_FDCWD<\\x2f>, \"\\x2f\\x73\\x2f\\x61\", O_RDWR|O_CREAT, 0644) = 3<\\x2f\\x73\\x2f\\x61>\n\
        10 pwrite64(3<\\x2f\\x73\\x2f\\x61>, \"\\x41\\x42\", 2, 4096 <unfinished ...>\n\
        11 writev(9<\\x73\\x6f\\x63\\x6b\\x65\\x74\\x3a\\x5b\\x31\\x5d>, [{iov_base=\"\\x68\\x69\", iov_len=2}], 1) = 2\n\
        10 <... pwrite64 resumed>) = 2\n\
        10 fsync(3<\\x2f\\x73\\x2f\\x61>) = -1 EIO (Input/output error)\n\
        10 fsync(3<\\x2f\\x73\\x2f\\x61> <unfinished ...>\n";
    let told: Vec<String> = read(text, Path::new("/s"))
        .unwrap_or_default()
        .into_iter()
        .map(|event| format!("{:?} {} {:?}", event.call, event.start, event.end))
        .collect();
    assert_eq!(
        told,
        [
            "Create(\"/s/a\") 0 Some(0)",
            "Write(\"/s/a\", Some(4096), [65, 66]) 1 Some(3)",
            "Answer(\"hi\") 2 Some(2)",
            "Flush(\"/s/a\") 5 None",
        ]
    );
}
