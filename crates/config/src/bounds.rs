//! Limits that no work reaches, because a lane that the same work needs has a lower limit.

use laneway_core::{LaneName, LaneSettings, Pattern, Settings, Switch};

use crate::blocks::lanes::Lane;
use crate::config::AgentConfig;
use crate::source::ValueSource;

/// A sentence for each configured limit that is never reached, with its place.
pub(crate) fn unreached_limits(lanes: &[Lane], agents: &[AgentConfig]) -> Vec<String> {
    let global = LaneName::global();
    let main = LaneName::new("main").ok();
    let mut seen: Vec<ValueSource> = Vec::new();
    let mut sentences = Vec::new();
    for lane in lanes {
        let (Some(Switch::On(limit)), Some(source)) =
            (lane.settings.max_concurrency, lane.given("max_concurrency"))
        else {
            continue;
        };
        let agent = agents.iter().find(|agent| lane.lanes.as_str() == format!("agent:{}", agent.name));
        let further = agent.map_or(&[][..], |agent| agent.lanes.as_deref().unwrap_or(main.as_slice()));
        let bounds = std::iter::once(&global).chain(further);
        let bounds = bounds.filter_map(|bound| Some((limit_of(lanes, bound)?, bound)));
        let Some((lowest, bound)) =
            bounds.min_by_key(|(lowest, _)| *lowest).filter(|(lowest, _)| *lowest < limit)
        else {
            continue;
        };
        // The lanes of agents repeat what a pattern says.
        if !seen.contains(source) {
            seen.push(source.clone());
            sentences.push(format!("{source}: {} {limit} is never reached: {bound} is {lowest}", lane.lanes));
        }
    }
    sentences
}

/// The limit of a lane, from its own block, the longest pattern or the defaults.
fn limit_of(lanes: &[Lane], name: &LaneName) -> Option<u32> {
    let exact = Pattern::from(name);
    let own = lanes.iter().find(|lane| lane.lanes == exact);
    let fitting = lanes.iter().filter(|lane| !lane.lanes.is_exact() && lane.lanes.matches(name));
    let asked = own.or_else(|| fitting.max_by_key(|lane| lane.lanes.as_str().len()));
    let asked = asked.map_or_else(LaneSettings::default, |lane| lane.settings.clone());
    Settings::for_lane(&asked, name).max_concurrency
}
