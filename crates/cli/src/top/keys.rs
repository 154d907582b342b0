//! What a key does. The screen asks for confirmation before it changes anything.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::view::{Mode, View};

/// How many digits a limit has at most.
const DIGITS_MAX: usize = 6;
/// How many rows a page key moves.
const PAGE: isize = 8;

/// What to do after a key. A `String` names the lane or the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Quit,
    Pause(String),
    Resume(String),
    /// Cancels the waiting tasks of a lane.
    Clear(String),
    Cancel(String),
    /// Sets the limit of a lane.
    Limit(String, u32),
}

impl View {
    /// Handles one key.
    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Action::Quit;
        }
        match std::mem::replace(&mut self.mode, Mode::Looking) {
            Mode::Looking => self.look(key.code),
            Mode::Asking { action, .. } => match key.code {
                KeyCode::Char('y' | 'Y') => action,
                _ => {
                    self.say("nothing has changed");
                    Action::Nothing
                }
            },
            Mode::Typing { lane, digits } => self.type_limit(key.code, lane, digits),
        }
    }

    fn look(&mut self, key: KeyCode) -> Action {
        self.message.clear();
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Action::Quit,
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
                Some(task) => self.ask(format!("Cancel task {task}?"), Action::Cancel(task)),
                None => self.say("no task waits"),
            },
            _ => {}
        }
        Action::Nothing
    }

    fn begin(&mut self, word: char, lane: String) {
        match word {
            'p' => self.ask(format!("Pause lane {lane}? No task starts in it then."), Action::Pause(lane)),
            'r' => self.ask(format!("Resume lane {lane}?"), Action::Resume(lane)),
            'c' => self.ask(format!("Cancel all waiting tasks of lane {lane}?"), Action::Clear(lane)),
            _ => self.mode = Mode::Typing { lane, digits: String::new() },
        }
    }

    fn ask(&mut self, question: String, action: Action) {
        self.mode = Mode::Asking { question, action };
    }

    fn type_limit(&mut self, key: KeyCode, lane: String, mut digits: String) -> Action {
        match key {
            KeyCode::Char(digit) if digit.is_ascii_digit() && digits.len() < DIGITS_MAX => digits.push(digit),
            KeyCode::Backspace => drop(digits.pop()),
            KeyCode::Esc => return Action::Nothing,
            KeyCode::Enter => match digits.parse() {
                Ok(limit) if limit > 0 => {
                    self.ask(format!("Set the limit of lane {lane} to {limit}?"), Action::Limit(lane, limit));
                    return Action::Nothing;
                }
                _ => {
                    self.say("a limit must be at least 1; to stop a lane, pause it");
                    return Action::Nothing;
                }
            },
            _ => {}
        }
        self.mode = Mode::Typing { lane, digits };
        Action::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(view: &mut View, keys: &str) -> Vec<Action> {
        let code = |sign| match sign {
            '\n' => KeyCode::Enter,
            '<' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            sign => KeyCode::Char(sign),
        };
        let press = |sign| view.press(KeyEvent::new(code(sign), KeyModifiers::NONE));
        keys.chars().map(press).filter(|action| *action != Action::Nothing).collect()
    }

    fn chosen() -> View {
        View { chosen: Some("main".to_owned()), ..View::new("http://host") }
    }

    #[test]
    fn a_change_needs_a_confirmation() {
        let lane = || "main".to_owned();
        let samples = [
            ("p", vec![]),
            ("pn", vec![]),
            ("p\n", vec![]),
            ("py", vec![Action::Pause(lane())]),
            ("rY", vec![Action::Resume(lane())]),
            ("cy", vec![Action::Clear(lane())]),
            ("l12\ny", vec![Action::Limit(lane(), 12)]),
            ("l12<\ny", vec![Action::Limit(lane(), 1)]),
            ("l0\ny", vec![]),
            ("l\ny", vec![]),
            ("lx7\nn", vec![]),
            ("l1234567\ny", vec![Action::Limit(lane(), 123_456)]),
            ("l5\u{1b}y", vec![]),
            ("xy", vec![]),
            ("q", vec![Action::Quit]),
        ];
        for (keys, actions) in samples {
            assert_eq!(typed(&mut chosen(), keys), actions, "{keys:?}");
        }
        assert_eq!(typed(&mut View::new("http://host"), "pycyl1\ny"), vec![]);
    }
}
