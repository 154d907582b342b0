//! Replaces names by numbers, so that a trace can be published.
//!
//! Numbers instead of hashes, because a guessed name could be checked against a hash. Lanes that the settings name keep
//! their names, because a configuration needs them; sessions, kinds and fair keys never do.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::{LaneName, Name};

use crate::trace::Trace;

/// Lanes that every configuration has.
const BUILT_IN: [&str; 4] = ["cron", "global", "main", "subagent"];
/// The tool lanes of a session, whose names are no secret.
const TOOL_LANES: [&str; 4] = ["control", "query", "execute", "generate"];

/// Replaces the names in a trace, but for those of the lanes in `known`.
pub(crate) fn anonymous(trace: &mut Trace, known: &BTreeSet<LaneName>) {
    let mut names = Names { known, given: BTreeMap::new() };
    for arrival in &mut trace.arrivals {
        arrival.lanes.iter_mut().for_each(|lane| names.lane(lane));
        arrival.fair_key.iter_mut().for_each(|key| names.fair_key(key));
        arrival.session = arrival.session.take().map(|key| names.number("session", &key));
        names.kind(&mut arrival.kind);
    }
    let limits = std::mem::take(&mut trace.header.limits).into_iter();
    trace.header.limits = limits
        .map(|(mut lane, slots)| {
            names.lane(&mut lane);
            (lane, slots)
        })
        .collect();
    (trace.header.store, trace.header.anonymous) = (None, true);
}

struct Names<'a> {
    known: &'a BTreeSet<LaneName>,
    /// The numbers that were given out, by sort.
    given: BTreeMap<&'static str, BTreeMap<String, usize>>,
}

impl Names<'_> {
    /// The same name has the same number each time.
    fn number(&mut self, sort: &'static str, name: &str) -> String {
        let given = self.given.entry(sort).or_default();
        let next = given.len() + 1;
        let number = *given.entry(name.to_owned()).or_insert(next);
        format!("{sort}-{number}")
    }

    fn is_kept(&self, lane: &LaneName) -> bool {
        let is_session = lane.as_str().starts_with("session:");
        !is_session && (BUILT_IN.contains(&lane.as_str()) || self.known.contains(lane))
    }

    fn lane(&mut self, lane: &mut LaneName) {
        if self.is_kept(lane) {
            return;
        }
        let text = lane.as_str().to_owned();
        let replaced = match text.strip_prefix("session:") {
            Some(key) => {
                let (key, part) = key.split_once('/').map_or((key, None), |(key, part)| (key, Some(part)));
                let session = format!("session:{}", self.number("session", key));
                match part {
                    None => session,
                    Some(part) if TOOL_LANES.contains(&part) => format!("{session}/{part}"),
                    Some(part) => format!("{session}/{}", self.number("part", part)),
                }
            }
            // What stands before a colon is what patterns are about.
            None => match text.split_once(':') {
                Some((sort, name)) => format!("{sort}:{}", self.number("lane", name)),
                None => self.number("lane", &text),
            },
        };
        // A sort and a number make a name.
        if let Ok(replaced) = LaneName::new(replaced) {
            *lane = replaced;
        }
    }

    fn fair_key(&mut self, key: &mut LaneName) {
        if self.is_kept(key) {
            return;
        }
        if let Ok(replaced) = LaneName::new(self.number("fair", key.as_str())) {
            *key = replaced;
        }
    }

    fn kind(&mut self, kind: &mut Name) {
        if let Ok(replaced) = Name::new(self.number("kind", kind.as_str())) {
            *kind = replaced;
        }
    }
}
