//! What the screen shows, and the user's selection.

use std::collections::BTreeMap;

use laneway_protocol::{LaneNumbers, StatusView};

use super::feed::{Longest, Look, Seen};
use super::keys::Action;

/// Everything that the screen draws.
pub(super) struct View {
    pub(super) url: String,
    pub(super) status: Option<StatusView>,
    pub(super) lanes: Vec<LaneNumbers>,
    /// There are more lanes than these.
    pub(super) has_more: bool,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) longest: Option<Longest>,
    /// Why the server cannot be reached.
    pub(super) away: Option<String>,
    /// The selected lane, by name, because rows come and go.
    pub(super) chosen: Option<String>,
    pub(super) mode: Mode,
    /// The outcome of the last action.
    pub(super) message: String,
}

/// What the keys do at the moment.
pub(super) enum Mode {
    /// Keys move, or begin an action.
    Looking,
    /// A key confirms or declines an action.
    Asking {
        question: String,
        /// What `y` does.
        action: Action,
    },
    /// Keys type a limit for a lane.
    Typing {
        lane: String,
        /// The digits so far.
        digits: String,
    },
}

impl View {
    /// A view before the first look.
    pub(super) fn new(url: &str) -> View {
        View {
            url: url.to_owned(),
            status: None,
            lanes: Vec::new(),
            has_more: false,
            refused: BTreeMap::new(),
            longest: None,
            away: None,
            chosen: None,
            mode: Mode::Looking,
            message: String::new(),
        }
    }

    /// Takes the result of a look. While the server is away, the old numbers stay, marked as old.
    pub(super) fn take(&mut self, look: Look) {
        match look {
            Look::Away(why) => self.away = Some(why),
            Look::Seen(seen) => {
                let Seen { status, mut lanes, has_more, refused, longest } = *seen;
                // Shared lanes come first, because lanes of sessions come and go.
                let rank = |lane: &LaneNumbers| (lane.lane != "global", lane.lane.starts_with("session:"));
                lanes.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.lane.cmp(&b.lane)));
                if self.chosen.as_ref().is_none_or(|chosen| lanes.iter().all(|lane| lane.lane != *chosen)) {
                    self.chosen = lanes.first().map(|lane| lane.lane.clone());
                }
                (self.status, self.lanes, self.refused, self.longest) =
                    (Some(status), lanes, refused, longest);
                self.has_more = has_more;
                self.away = None;
            }
        }
    }

    /// Shows a message above the help line.
    pub(super) fn say(&mut self, message: &str) {
        self.message = crate::output::format::plain(message);
    }

    /// The row of the selected lane.
    pub(super) fn chosen_row(&self) -> usize {
        let chosen = self.chosen.as_deref();
        self.lanes.iter().position(|lane| Some(lane.lane.as_str()) == chosen).unwrap_or_default()
    }

    /// Moves the selection by `rows`, at most to the first or the last lane.
    pub(super) fn go(&mut self, rows: isize) {
        let last = self.lanes.len().saturating_sub(1);
        let row = self.chosen_row().saturating_add_signed(rows).min(last);
        self.chosen = self.lanes.get(row).map(|lane| lane.lane.clone());
    }
}
