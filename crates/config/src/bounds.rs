//! Limits that no work reaches, because a lane that the same work needs has a lower limit.

use laneway_core::{LaneName, Pattern, Settings, Switch};

use crate::blocks::lanes::{Lane, asked, layers};
use crate::config::AgentConfig;
use crate::source::ValueSource;

/// A sentence for each configured limit that is never reached, with its place.
pub(crate) fn unreached_limits(lanes: &[Lane], agents: &[AgentConfig]) -> Vec<String> {
    let global = LaneName::global();
    let main = LaneName::new("main").ok();
    let mut seen: Vec<ValueSource> = Vec::new();
    let mut sentences = Vec::new();
    for lane in lanes {
        let layers = layers(lanes, &lane.lanes);
        let source = layers.iter().find_map(|layer| layer.given("max_concurrency"));
        let (Some(Switch::On(limit)), Some(source)) = (asked(&layers).max_concurrency, source) else {
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
        // Many lanes may have the limit of one pattern.
        if !seen.contains(source) {
            seen.push(source.clone());
            sentences.push(format!("{source}: {} {limit} is never reached: {bound} is {lowest}", lane.lanes));
        }
    }
    sentences
}

/// The limit of a lane, from its blocks or the defaults.
fn limit_of(lanes: &[Lane], name: &LaneName) -> Option<u32> {
    Settings::for_lane(&asked(&layers(lanes, &Pattern::from(name))), name).max_concurrency
}
