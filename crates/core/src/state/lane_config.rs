//! The book of settings: which block speaks for a lane, and what the lanes of each block have seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::lane_settings::{Block, Family, LaneSettings, Settings};
use crate::api::name::{LaneName, Pattern};
use crate::state::stats::LaneStats;
use crate::state::table::{Idx, Table};

pub(crate) type ClassIdx = Idx<LaneClass>;

/// The lanes that one block of settings (or one family of defaults) speaks for.
pub(crate) struct LaneClass {
    /// The block's name or pattern, else the family's pattern: never the name of a passing lane.
    pub(crate) label: Arc<str>,
    pub(super) family: Family,
    pub(crate) settings: Settings,
    pub(crate) stats: LaneStats,
    /// How many dead letters are kept for these lanes.
    pub(crate) dead_letters: u32,
}

#[derive(Default)]
pub(crate) struct LaneConfig {
    blocks: BTreeMap<Pattern, LaneSettings>,
    classes: Table<LaneClass>,
    by_label: BTreeMap<(Arc<str>, Family), ClassIdx>,
}

impl LaneConfig {
    pub(crate) fn class(&self, class: ClassIdx) -> &LaneClass {
        &self.classes[class]
    }

    pub(crate) fn class_mut(&mut self, class: ClassIdx) -> &mut LaneClass {
        &mut self.classes[class]
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = &LaneClass> {
        self.by_label.values().map(|class| &self.classes[*class])
    }

    /// What holds for the lanes of each class.
    pub(crate) fn class_settings(&self) -> BTreeMap<ClassIdx, Settings> {
        self.classes.iter().map(|(index, class)| (index, class.settings.clone())).collect()
    }

    /// Which classes have dead letters, and how many each may have.
    pub(crate) fn dead_letter_limits(&self) -> Vec<(ClassIdx, u32)> {
        let classes = self.by_label.values().map(|index| (*index, self.class(*index)));
        let with_dead_letters = classes.filter(|(_, class)| class.dead_letters > 0);
        with_dead_letters.map(|(index, class)| (index, class.settings.dead_letters_max)).collect()
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = (&Pattern, &LaneSettings)> {
        self.blocks.iter()
    }

    /// Takes over changed blocks. The caller then asks again which class each lane belongs to, and ends with
    /// [`sweep`](LaneConfig::sweep).
    pub(crate) fn configure(&mut self, blocks: &[Block]) {
        for block in blocks {
            match &block.settings {
                Some(settings) => self.blocks.insert(block.lanes.clone(), settings.clone()),
                None => self.blocks.remove(&block.lanes),
            };
        }
        for (_, class) in self.classes.iter_mut() {
            let asked = Pattern::new(&*class.label).ok().and_then(|label| self.blocks.get(&label));
            class.settings = Settings::resolve(asked.unwrap_or(&LaneSettings::default()), class.family);
        }
        // A lane that has a block of its own is visible before any task is in it.
        let declared: Vec<LaneName> = self.blocks.keys().filter_map(Pattern::exact).collect();
        for name in declared {
            self.class_of(&name);
        }
    }

    /// The lanes that have a block of their own, whether they exist or not.
    pub(crate) fn declared(&self) -> impl Iterator<Item = (LaneName, &LaneClass)> {
        self.blocks.keys().filter_map(Pattern::exact).filter_map(|name| {
            let label = (Arc::from(name.as_str()), Family::of(&name));
            let class = self.by_label.get(&label).map(|class| self.class(*class))?;
            Some((name, class))
        })
    }

    /// The block that applies to `name`: the one of that name, else the longest pattern that matches. Of equally long
    /// ones, the first in the alphabet applies.
    fn block(&self, name: &LaneName) -> Option<(&Pattern, &LaneSettings)> {
        self.block_over(&Pattern::from(name))
    }

    /// The block that applies to all lanes of a pattern, chosen like that of a single lane.
    fn block_over(&self, lanes: &Pattern) -> Option<(&Pattern, &LaneSettings)> {
        if let Some(exact) = self.blocks.get_key_value(lanes) {
            return Some(exact);
        }
        let fitting = self.blocks.iter().filter(|(pattern, _)| !pattern.is_exact() && pattern.covers(lanes));
        fitting.min_by_key(|(pattern, _)| std::cmp::Reverse(pattern.as_str().len()))
    }

    /// What was asked for the lanes of a pattern, by their own block or by the one that applies instead.
    pub(crate) fn asked_for(&self, lanes: &Pattern) -> LaneSettings {
        self.block_over(lanes).map(|(_, asked)| asked.clone()).unwrap_or_default()
    }

    /// What holds for the lane `name`, whether it exists or not.
    pub(crate) fn settings(&self, name: &LaneName) -> Settings {
        let nothing = LaneSettings::default();
        Settings::resolve(self.block(name).map_or(&nothing, |(_, asked)| asked), Family::of(name))
    }

    pub(crate) fn weight(&self, name: &LaneName) -> u32 {
        if self.blocks.is_empty() { 1 } else { self.settings(name).weight }
    }

    /// Whether a block speaks for `name` alone.
    pub(crate) fn is_declared(&self, name: &LaneName) -> bool {
        self.blocks.contains_key(&Pattern::from(name))
    }

    /// Whether any block speaks for `name`.
    pub(crate) fn has_block(&self, name: &LaneName) -> bool {
        self.block(name).is_some()
    }

    /// Under which label, and with which defaults, the lane `name` is counted.
    fn label_of(&self, name: &LaneName) -> (Arc<str>, Family) {
        let family = Family::of(name);
        match self.block(name) {
            Some((pattern, _)) => (Arc::from(pattern.clone()), family),
            None => (Arc::from(family.label()), family),
        }
    }

    /// The class of the lane `name`, if there is one.
    pub(crate) fn class_for(&self, name: &LaneName) -> Option<&LaneClass> {
        self.by_label.get(&self.label_of(name)).map(|class| self.class(*class))
    }

    /// The class of the lane `name`, made if need be.
    pub(crate) fn class_of(&mut self, name: &LaneName) -> ClassIdx {
        let (label, family) = self.label_of(name);
        if let Some(class) = self.by_label.get(&(Arc::clone(&label), family)) {
            return *class;
        }
        let settings = self.settings(name);
        let class = LaneClass {
            label: Arc::clone(&label),
            family,
            settings,
            stats: LaneStats::default(),
            dead_letters: 0,
        };
        let index = self.classes.insert(class);
        self.by_label.insert((label, family), index);
        index
    }

    /// Restores the statistics of a class from a snapshot.
    pub(crate) fn restore(&mut self, label: Arc<str>, family: Family, stats: LaneStats) {
        let asked = Pattern::new(&*label).ok().and_then(|label| self.blocks.get(&label));
        let settings = Settings::resolve(asked.unwrap_or(&LaneSettings::default()), family);
        let class = LaneClass { label: Arc::clone(&label), family, settings, stats, dead_letters: 0 };
        let index = self.classes.insert(class);
        self.by_label.insert((label, family), index);
    }

    /// Counts the dead letters of each class again, given the class of each.
    pub(crate) fn recount_dead_letters(&mut self, dead_letters: impl Iterator<Item = ClassIdx>) {
        for (_, class) in self.classes.iter_mut() {
            class.dead_letters = 0;
        }
        for class in dead_letters {
            self.classes[class].dead_letters += 1;
        }
    }

    /// Forgets classes of removed blocks, which no lane and no dead letter uses.
    pub(crate) fn sweep(&mut self) {
        let (blocks, classes) = (&self.blocks, &mut self.classes);
        self.by_label.retain(|(label, family), class| {
            let has_block = Pattern::new(label).is_ok_and(|label| blocks.contains_key(&label));
            let keep = has_block || **label == *family.label();
            if !keep {
                classes.remove(*class);
            }
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_block_speaks_first_then_the_longest_pattern_then_the_defaults() {
        let mut lane_config = LaneConfig::default();
        let block = |lanes: &str, slots: &str| {
            let mut settings = LaneSettings::default();
            settings.set("max_concurrency", slots).unwrap();
            Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(settings) }
        };
        lane_config.configure(&[block("a*", "2"), block("ab*", "3"), block("abc", "4")]);
        let slots = |lane_config: &LaneConfig, name: &str| {
            lane_config.settings(&LaneName::new(name).unwrap()).max_concurrency
        };
        assert_eq!(slots(&lane_config, "abc"), Some(4));
        assert_eq!(slots(&lane_config, "abd"), Some(3));
        assert_eq!(slots(&lane_config, "axd"), Some(2));
        assert_eq!(slots(&lane_config, "main"), Some(4));
        assert_eq!(slots(&lane_config, "cron"), Some(1));
        assert_eq!(slots(&lane_config, "subagent"), Some(8));
        assert_eq!(slots(&lane_config, "task:x"), Some(10));
        assert_eq!(slots(&lane_config, "global"), None);
        let removed = Block { lanes: Pattern::new("abc").unwrap(), settings: None };
        lane_config.configure(&[removed]);
        assert_eq!(slots(&lane_config, "abc"), Some(3));
    }
}
