//! Each kind of change is written as it should be, and a whole run on a small package comes to the right verdicts.

use std::collections::BTreeSet;
use std::fs;

use crate::apart;
use crate::change::Change;
use crate::reasons;
use crate::sites;
use crate::trial::Verdict;
use crate::written::Written;

/// A change of `what` (the first place where that stands in the text) as cargo-mutants would list it.
fn change(text: &str, genre: &str, what: &str, replacement: &str) -> Change {
    let at = text.find(what).expect("the text has it");
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = at - before.rfind('\n').map_or(0, |end| end + 1) + 1;
    let listed = serde_json::json!({
        "name": format!("src/lib.rs:{line}:{column}: {what} -> {replacement}"), "file": "src/lib.rs", "genre": genre,
        "replacement": replacement, "span": {"start": {"line": line, "column": column}}, "function": null,
    });
    serde_json::from_value(listed).expect("a change")
}

/// The text with these changes, and which of them no program can have.
fn written(text: &str, changes: &[Change]) -> (String, Vec<u32>) {
    let sites = sites::find(text, (1..).zip(changes)).expect("a program");
    let written = Written::new(text, sites.edits.iter().collect(), &|_| false);
    (written.text.replace("crate::switches::", ""), sites.impossible)
}

fn check(text: &str, changes: &[(&str, &str, &str)], expected: &str) {
    let changes: Vec<Change> =
        changes.iter().map(|(genre, what, replacement)| change(text, genre, what, replacement)).collect();
    let (text, impossible) = written(text, &changes);
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert_eq!((squeezed(&text), impossible), (squeezed(expected), Vec::new()));
}

#[test]
fn a_body_returns_another_value_first() {
    check(
        "fn a() -> u8 { b() }",
        &[("FnValue", "b()", "0"), ("FnValue", "b()", "1")],
        "fn a() -> u8 { if is(1) { return 0; } if is(2) { return 1; } b() }",
    );
}

#[test]
fn another_operator_binds_as_it_does_in_the_text_and_only_the_old_one_has_others_within() {
    check(
        "fn a() -> bool { b && c && !d }",
        &[("BinaryOperator", "&& c", "||"), ("BinaryOperator", "&& !", "||"), ("UnaryOperator", "!", "")],
        "fn a() -> bool { (if is(2) { b && c || !d } else if is(1) { b || c && !d } else { b && c && (if is(3) { d } else { !d }) }) }",
    );
    check(
        "fn a() { b.c += 1; }",
        &[("BinaryOperator", "+=", "-=")],
        "fn a() { (if is(1) { b.c -= 1 } else { b.c += 1 }); }",
    );
}

#[test]
fn arms_conditions_and_fields_are_left_out() {
    check(
        "fn a() { match b { 1 => c, 2 if d => e, _ => f } }",
        &[("MatchArm", "1 =>", ""), ("MatchArmGuard", "d =>", "true"), ("MatchArmGuard", "d =>", "false")],
        "fn a() { match b { 1 if !is(1) => c, 2 if (if is(2) { true } else if is(3) { false } else { d }) => e, _ => f } }",
    );
    check(
        "fn a() -> B { B { c: 1, ..d } }",
        &[("StructField", "c: 1", "")],
        "fn a() -> B { (if is(1) { B { ..d } } else { B { c: 1, ..d } }) }",
    );
}

#[test]
fn what_no_program_can_be_is_not_written() {
    let text = "fn a() { if let Some(b) = c && d == e {} }";
    let changes = [change(text, "BinaryOperator", "&&", "||"), change(text, "BinaryOperator", "==", "!=")];
    let (text, impossible) = written(text, &changes);
    assert!(text.contains("c && (if is(2) {"), "{text}");
    assert_eq!(impossible, [1]);
    let text = "fn a() -> bool { (b == c) == d < e }".replace("== d < e", "& d");
    let broken = change(&text, "BinaryOperator", "& d", "not");
    assert_eq!(written(&text, &[broken]).1, [1]);
}

#[test]
fn an_arm_stays_when_only_arms_with_conditions_are_left() {
    let text = "fn a() { match b { _ if c => d, None => e, Some(_) => f } }";
    let (written, _) = written(text, &[change(text, "MatchArm", "None =>", "")]);
    assert_eq!(written, text);
}

const SMALL: &str = "
const TWO: u8 = 1 + 1;
pub fn doubled(number: u8) -> u8 { number * TWO }
pub fn is_small(number: u8) -> bool { number < 10 }
pub fn counted() -> u8 { let mut count = 0; while count < 3 { count += 1; } count }
pub fn forgotten(number: u8) -> u8 { number + 1 }
pub struct Plain;
pub fn plain() -> Plain { Plain }
#[test]
fn doubles() { assert_eq!(doubled(4), 8); }
#[test]
fn small_is_less_than_ten() { assert!(is_small(3) && !is_small(11)); }
#[test]
fn counts() { assert_eq!(counted(), 3); }
";

#[test]
fn a_whole_run_tells_caught_endless_missed_and_what_does_not_compile_or_fit() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("tree");
    fs::create_dir_all(copy.join("src")).expect("a folder");
    fs::write(copy.join("src/lib.rs"), SMALL).expect("a file");
    let manifest = "[package]\nname = \"small\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(copy.join("Cargo.toml"), manifest).expect("a file");
    let changes = [
        change(SMALL, "BinaryOperator", "* TWO", "+"),
        change(SMALL, "BinaryOperator", "< 10", "<="),
        change(SMALL, "BinaryOperator", "+= 1", "-="),
        change(SMALL, "BinaryOperator", "+= 1", "*="),
        change(SMALL, "BinaryOperator", "+ 1 }", "-"),
        change(SMALL, "FnValue", "number + 1", "0"),
        change(SMALL, "FnValue", "Plain }", "Default::default()"),
        change(SMALL, "BinaryOperator", "+ 1;\n", "*"),
    ];
    let tally = crate::switched(&copy, "small", "", &changes, 2).expect("verdicts");
    let verdicts: Vec<(u32, Verdict)> = tally.verdicts.into_iter().collect();
    assert_eq!(
        verdicts,
        [
            (1, Verdict::Caught("doubles".to_owned())),
            (2, Verdict::Missed(1)),
            (3, Verdict::Caught("counts".to_owned())),
            (4, Verdict::Endless("counts".to_owned())),
            (5, Verdict::Missed(0)),
            (6, Verdict::Missed(0)),
        ]
    );
    assert_eq!((tally.apart, tally.unviable), (vec![8], 1));
}

#[test]
fn the_list_explains_each_survivor_once_and_nothing_else() {
    let text = "fn a() { b == c; d == e; f == g }";
    let [first, second, third] = ["== c", "== e", "== g"].map(|what| {
        let mut change = change(text, "BinaryOperator", what, "!=");
        change.name =
            format!("{}: replace == with != in a", change.name.split(": ").next().unwrap_or_default());
        change
    });
    let all = [first.clone(), second.clone(), third];
    let one = "# equal either way\nsrc/lib.rs: replace == with != in a\n";
    let compared = reasons::compare(one, &all, false, &[&first, &second]).expect("a list");
    assert_eq!((compared.unexplained, compared.needless), (vec![second.name], Vec::new()));
    let compared = reasons::compare(one, &all, false, &[]).expect("a list");
    assert_eq!(compared.needless, ["src/lib.rs: replace == with != in a"]);
    assert_eq!(reasons::compare(one, &all, false, &[&first]).expect("a list").outcome(), Ok(()));
    assert!(reasons::compare("a.rs: x\n", &all, false, &[]).is_err());
    assert!(reasons::compare("# one\na.rs: x\n\nb.rs: y\n", &all, false, &[]).is_err());
}

#[test]
fn a_reason_for_a_change_that_is_gone_is_told_when_all_changes_are_looked_at() {
    let gone = "# equal either way\nsrc/lib.rs: replace == with != in gone\n";
    let compared = reasons::compare(gone, &[], true, &[]).expect("a list");
    assert_eq!(compared.needless, ["src/lib.rs: replace == with != in gone"]);
    // Among some changes only, it may be one of the others.
    assert_eq!(reasons::compare(gone, &[], false, &[]).expect("a list").outcome(), Ok(()));
}

#[test]
fn a_change_of_which_cargo_mutants_tells_nothing_is_named() {
    let asked = BTreeSet::from(["a.rs:1:1: x", "a.rs:2:1: y", "a.rs:3:1: z"]);
    assert_eq!(apart::all_made(&asked, &asked), Ok(()));
    let problem = apart::all_made(&asked, &BTreeSet::from(["a.rs:2:1: y"])).expect_err("two are not made");
    assert_eq!(problem, "cargo-mutants did not make:\n  a.rs:1:1: x\n  a.rs:3:1: z");
}

#[test]
fn a_word_that_no_name_has_chooses_nothing_and_is_refused() {
    let text = "fn a() { b == c }";
    let all = vec![change(text, "BinaryOperator", "== c", "!=")];
    assert_eq!(crate::chosen(all.clone(), "== c").map(|chosen| chosen.len()), Ok(1));
    assert_eq!(
        crate::chosen(all, "nowhere").map(|chosen| chosen.len()),
        Err("no change has \"nowhere\" in its name".to_owned())
    );
}

#[test]
fn what_is_still_to_be_made_is_not_said_to_be_no_program() {
    let text = "fn a() { b == c }";
    let one = change(text, "BinaryOperator", "== c", "!=");
    let name = one.name.clone();
    let mut tally = crate::Tally { apart: vec![1], ..crate::Tally::default() };
    let all = [one];
    assert_eq!(crate::outcomes(&all, &tally), format!("not made yet\t{name}\n"));
    tally.apart.clear();
    assert_eq!(crate::outcomes(&all, &tally), format!("does not compile\t{name}\n"));
    tally.verdicts.insert(1, Verdict::Missed(0));
    assert_eq!(crate::outcomes(&all, &tally), format!("Missed(0)\t{name}\n"));
}
