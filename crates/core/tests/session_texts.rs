//! Directives and the texts of turns, on any input. `cargo xtask fuzz texts` runs this for longer.
// The bans of the core do not hold for its tests.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use laneway_core::{
    Directive, DropRule, Millis, Mode, Overflow, Part, QueueOverrides, Reading, SUMMARY_LINE_CHARS_MAX,
    read_directive, summary, summary_line, turn_text,
};
use proptest::prelude::*;

/// Texts that often look like directives.
fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => Just("/queue".to_owned()),
        1 => Just("/QUEUE:".to_owned()),
        1 => Just("/new".to_owned()),
        1 => Just("/stop".to_owned()),
        2 => prop::sample::select(Mode::WORDS).prop_map(|(word, _)| word.to_uppercase()),
        2 => "(cap|debounce|max_wait|max-wait|drop|Cap)[:=][0-9a-z]{0,6}",
        1 => prop::sample::select(&["default", "reset", "hello", "é", "…", "#1", "---"][..]).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
    ];
    let space = prop::sample::select(&[" ", "\n", "\t ", "\u{2003}", ""][..]);
    prop::collection::vec((word, space), 0..8)
        .prop_map(|words| words.into_iter().map(|(word, space)| word + space).collect())
}

fn overrides() -> impl Strategy<Value = QueueOverrides> {
    let modes = prop::sample::select(Mode::WORDS).prop_map(|(_, mode)| mode);
    let drops = prop::sample::select(DropRule::WORDS).prop_map(|(_, rule)| rule);
    let length = || prop::option::of((0u64..1_000_000).prop_map(Millis));
    (prop::option::of(modes), length(), length(), prop::option::of(1u32..), prop::option::of(drops)).prop_map(
        |(mode, debounce, max_wait, cap, drop)| QueueOverrides { mode, debounce, max_wait, cap, drop },
    )
}

/// Writes settings as words of a directive, rotated by some places.
fn in_words(queue: &QueueOverrides, places: usize) -> String {
    let mut words: Vec<String> = [
        queue.mode.map(|mode| mode.as_str().to_owned()),
        queue.debounce.map(|length| format!("debounce:{}", length.0)),
        queue.max_wait.map(|length| format!("max_wait:{}ms", length.0)),
        queue.cap.map(|cap| format!("cap:{cap}")),
        queue.drop.map(|drop| format!("drop:{}", drop.as_str())),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !words.is_empty() {
        let places = places % words.len();
        words.rotate_left(places);
    }
    words.join("  ")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3000)) })]

    #[test]
    fn any_text_is_plain_a_directive_or_wrong(text in text()) {
        match read_directive(&text) {
            Reading::Plain | Reading::Whole(_) => {}
            Reading::Inline { queue, text: rest } => {
                prop_assert!(!queue.is_empty());
                prop_assert!(!rest.trim().is_empty() && rest.len() < text.len());
                // The rest was in the text before, in the same order.
                let mut before = text.chars();
                prop_assert!(rest.chars().filter(|char| !char.is_whitespace()).all(|char| before.any(|other| other == char)));
            }
            Reading::Wrong(error) => {
                prop_assert!(error.chars().count() < 400 && !error.chars().any(char::is_control), "{error}");
                prop_assert!(error.contains('"'), "{error}");
            }
        }
    }

    #[test]
    fn a_directive_sets_the_written_settings(queue in overrides(), places: usize, case: bool) {
        let words = in_words(&queue, places);
        let words = if case { words.to_uppercase() } else { words };
        let expected = if queue.is_empty() { Directive::Show } else { Directive::Set(queue) };
        prop_assert_eq!(read_directive(&format!("/queue {words}")), Reading::Whole(expected));
        if !queue.is_empty() {
            let inline = read_directive(&format!("fix the /queue {words} roof"));
            prop_assert_eq!(inline, Reading::Inline { queue, text: "fix the roof".to_owned() });
        }
    }

    #[test]
    fn a_summary_line_is_one_short_line(text in "\\PC{0,300}|[ \t\na]{0,400}|.{0,50}") {
        let line = summary_line(&text);
        prop_assert!(line.chars().count() <= SUMMARY_LINE_CHARS_MAX);
        let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.strip_suffix('…') {
            Some(cut) if folded != line => {
                prop_assert!(folded.starts_with(cut) && folded.chars().count() > SUMMARY_LINE_CHARS_MAX);
                prop_assert_eq!(line.chars().count(), SUMMARY_LINE_CHARS_MAX);
            }
            _ => prop_assert_eq!(line, folded),
        }
    }

    #[test]
    fn the_text_of_a_turn_holds_all_messages_in_order(
        texts in prop::collection::vec(("\\PC{0,40}|(a|\n|-){0,9}", prop::option::of("\\PC{0,9}")), 1..6),
        dropped in 0u64..5,
    ) {
        let parts: Vec<Part<'_>> = texts
            .iter()
            .map(|(text, name)| Part { sender_name: name.as_deref(), text })
            .collect();
        let lines: Vec<String> = (0..dropped.min(2)).map(|number| format!("line {number}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let overflow = (dropped > 0).then_some(Overflow { dropped, lines: &lines });
        let text = turn_text(&parts, overflow);
        if parts.len() == 1 && overflow.is_none() {
            prop_assert_eq!(&text, parts[0].text);
            return Ok(());
        }
        let mut rest = text.strip_prefix("[Queued messages while agent was busy]").unwrap();
        if let Some(overflow) = overflow {
            rest = rest.strip_prefix("\n\n").unwrap().strip_prefix(summary(overflow).as_str()).unwrap();
        }
        for (index, part) in parts.iter().enumerate() {
            let name = part.sender_name.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "));
            let name = name.filter(|name| !name.is_empty()).map_or(String::new(), |name| format!(" (from {name})"));
            let head = format!("\n\n---\nQueued #{}{name}\n", index + 1);
            rest = rest.strip_prefix(head.as_str()).unwrap().strip_prefix(part.text).unwrap();
        }
        prop_assert_eq!(rest, "");
    }
}

#[test]
fn directives_are_read_in_any_common_form() {
    let mode = |mode| QueueOverrides { mode: Some(mode), ..QueueOverrides::default() };
    for (word, expected) in Mode::WORDS {
        assert_eq!(
            read_directive(&format!(" /Queue: {word}\n")),
            Reading::Whole(Directive::Set(mode(*expected)))
        );
    }
    let lengths =
        [("5", 5), ("5ms", 5), ("2s", 2000), ("3m", 180_000), ("1h", 3_600_000), ("1D", 86_400_000)];
    for (word, expected) in lengths {
        let queue = QueueOverrides { debounce: Some(Millis(expected)), ..QueueOverrides::default() };
        assert_eq!(read_directive(&format!("/queue debounce:{word}")), Reading::Whole(Directive::Set(queue)));
    }
    let same = Reading::Inline { queue: mode(Mode::Steer), text: "hello please".to_owned() };
    assert_eq!(read_directive("hello /queue steer please"), same);
    assert_eq!(read_directive("/queue:steer"), Reading::Whole(Directive::Set(mode(Mode::Steer))));
    let steered = Reading::Inline { queue: mode(Mode::Steer), text: "use the other file".to_owned() };
    for text in ["/steer use the other file", " /TELL: use the other file\n", "/tell use the other file"] {
        assert_eq!(read_directive(text), steered, "{text}");
    }
    for text in ["/steer", "/tell:"] {
        assert!(
            matches!(read_directive(text), Reading::Wrong(error) if error.contains("needs a text")),
            "{text}"
        );
    }
    for text in ["/queue default", "/queue reset", "/queue CLEAR"] {
        assert_eq!(read_directive(text), Reading::Whole(Directive::Reset), "{text}");
    }
    for plain in [
        "/queued up",
        "say /queue",
        "a/queue steer",
        "//queue steer",
        "/queuesteer",
        "/newest",
        "/stop it",
        "/steering on",
        "please /steer left",
    ] {
        assert_eq!(read_directive(plain), Reading::Plain, "{plain}");
    }
}
