//! What the screen knows, and what is chosen on it.

use std::collections::BTreeMap;

use laneway_protocol::{LaneNumbers, StatusView};

use super::feed::{Longest, Look, Seen};
use super::keys::Deed;

/// Everything that is drawn.
pub(super) struct View {
    pub(super) url: String,
    pub(super) status: Option<StatusView>,
    pub(super) lanes: Vec<LaneNumbers>,
    /// There are more lanes than these.
    pub(super) has_more: bool,
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) longest: Option<Longest>,
    /// Why nothing is known now.
    pub(super) away: Option<String>,
    /// The lane that keys are about, by name: rows come and go.
    pub(super) chosen: Option<String>,
    pub(super) mode: Mode,
    /// What came of the last deed.
    pub(super) message: String,
}

/// What keys are for at the moment.
pub(super) enum Mode {
    /// Moving, and beginning a deed.
    Looking,
    /// Saying yes or no to a deed.
    Asking {
        /// In words.
        question: String,
        /// What a yes does.
        deed: Deed,
    },
    /// Typing a limit for a lane.
    Typing {
        /// Which lane.
        lane: String,
        /// What is typed so far.
        digits: String,
    },
}

impl View {
    /// Nothing known yet.
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

    /// Takes over what a look showed. While the server is away, what was known stays, marked as old.
    pub(super) fn take(&mut self, look: Look) {
        match look {
            Look::Away(why) => self.away = Some(why),
            Look::Seen(seen) => {
                let Seen { status, mut lanes, has_more, refused, longest } = *seen;
                // What is shared comes first; conversations come and go.
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

    /// Says something in the last line.
    pub(super) fn say(&mut self, message: &str) {
        self.message = crate::output::format::plain(message);
    }

    /// Where the chosen lane stands in the list.
    pub(super) fn chosen_row(&self) -> usize {
        let chosen = self.chosen.as_deref();
        self.lanes.iter().position(|lane| Some(lane.lane.as_str()) == chosen).unwrap_or_default()
    }

    /// Chooses the lane so many rows further, or the last on the way.
    pub(super) fn go(&mut self, rows: isize) {
        let last = self.lanes.len().saturating_sub(1);
        let row = self.chosen_row().saturating_add_signed(rows).min(last);
        self.chosen = self.lanes.get(row).map(|lane| lane.lane.clone());
    }
}
