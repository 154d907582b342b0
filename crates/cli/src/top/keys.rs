//! What a key does. Whatever changes something is asked about first.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::view::{Mode, View};

/// How many digits a limit has at most.
const DIGITS_MAX: usize = 6;
/// How far a page goes.
const PAGE: isize = 8;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Nothing, or nothing yet.
    Nothing,
    /// Leave.
    Quit,
    /// Let nothing start in a lane.
    Pause(String),
    /// Let a lane go on.
    Resume(String),
    /// Cancel what waits in a lane.
    Clear(String),
    /// Cancel a task.
    Cancel(String),
    /// Give a lane another limit.
    Limit(String, u32),
}

impl View {
    /// Takes one key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Deed {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Deed::Quit;
        }
        match std::mem::replace(&mut self.mode, Mode::Looking) {
            Mode::Looking => self.look(key.code),
            Mode::Asking { deed, .. } => match key.code {
                KeyCode::Char('y' | 'Y') => deed,
                _ => {
                    self.say("nothing was done");
                    Deed::Nothing
                }
            },
            Mode::Typing { lane, digits } => self.type_limit(key.code, lane, digits),
        }
    }

    fn look(&mut self, key: KeyCode) -> Deed {
        self.message.clear();
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Deed::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.go(-1),
            KeyCode::Down | KeyCode::Char('j') => self.go(1),
            KeyCode::PageUp => self.go(-PAGE),
            KeyCode::PageDown => self.go(PAGE),
            KeyCode::Home => self.go(isize::MIN),
            KeyCode::End => self.go(isize::MAX),
            KeyCode::Char(word @ ('p' | 'r' | 'c' | 'l')) => match self.chosen.clone() {
                Some(lane) => self.begin(word, lane),
                None => self.say("no lane is chosen"),
            },
            KeyCode::Char('x') => match self.longest.as_ref().map(|longest| longest.task.id.clone()) {
                Some(task) => self.ask(format!("Cancel task {task}?"), Deed::Cancel(task)),
                None => self.say("nothing waits"),
            },
            _ => {}
        }
        Deed::Nothing
    }

    fn begin(&mut self, word: char, lane: String) {
        match word {
            'p' => self.ask(format!("Pause lane {lane}? Nothing starts in it then."), Deed::Pause(lane)),
            'r' => self.ask(format!("Let lane {lane} go on?"), Deed::Resume(lane)),
            'c' => self.ask(format!("Cancel everything that waits in lane {lane}?"), Deed::Clear(lane)),
            _ => self.mode = Mode::Typing { lane, digits: String::new() },
        }
    }

    fn ask(&mut self, question: String, deed: Deed) {
        self.mode = Mode::Asking { question, deed };
    }

    fn type_limit(&mut self, key: KeyCode, lane: String, mut digits: String) -> Deed {
        match key {
            KeyCode::Char(digit) if digit.is_ascii_digit() && digits.len() < DIGITS_MAX => digits.push(digit),
            KeyCode::Backspace => drop(digits.pop()),
            KeyCode::Esc => return Deed::Nothing,
            KeyCode::Enter => match digits.parse() {
                Ok(limit) if limit > 0 => {
                    self.ask(format!("Let {limit} run at once in lane {lane}?"), Deed::Limit(lane, limit));
                    return Deed::Nothing;
                }
                _ => {
                    self.say("a limit is 1 or more; to stop a lane, pause it");
                    return Deed::Nothing;
                }
            },
            _ => {}
        }
        self.mode = Mode::Typing { lane, digits };
        Deed::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(view: &mut View, keys: &str) -> Vec<Deed> {
        let code = |sign| match sign {
            '\n' => KeyCode::Enter,
            '<' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            sign => KeyCode::Char(sign),
        };
        let press = |sign| view.press(KeyEvent::new(code(sign), KeyModifiers::NONE));
        keys.chars().map(press).filter(|deed| *deed != Deed::Nothing).collect()
    }

    fn chosen() -> View {
        View { chosen: Some("main".to_owned()), ..View::new("http://host") }
    }

    #[test]
    fn nothing_is_changed_without_a_yes() {
        let lane = || "main".to_owned();
        let samples = [
            ("p", vec![]),
            ("pn", vec![]),
            ("p\n", vec![]),
            ("py", vec![Deed::Pause(lane())]),
            ("rY", vec![Deed::Resume(lane())]),
            ("cy", vec![Deed::Clear(lane())]),
            ("l12\ny", vec![Deed::Limit(lane(), 12)]),
            ("l12<\ny", vec![Deed::Limit(lane(), 1)]),
            ("l0\ny", vec![]),
            ("l\ny", vec![]),
            ("lx7\nn", vec![]),
            ("l1234567\ny", vec![Deed::Limit(lane(), 123_456)]),
            ("l5\u{1b}y", vec![]),
            ("xy", vec![]),
            ("q", vec![Deed::Quit]),
        ];
        for (keys, deeds) in samples {
            assert_eq!(typed(&mut chosen(), keys), deeds, "{keys:?}");
        }
        assert_eq!(typed(&mut View::new("http://host"), "pycyl1\ny"), vec![]);
    }
}
