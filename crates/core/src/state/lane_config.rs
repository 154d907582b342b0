//! The book of settings: which block speaks for a lane, and what the lanes of each block have seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::lane_settings::{Block, Family, LaneSettings, Settings};
use crate::api::name::{LaneName, Pattern};
use crate::state::stats::{Count, Counted, LaneStats};
use crate::state::table::{Idx, Table};

pub(crate) type ClassIdx = Idx<LaneClass>;

/// The lanes that one block of settings (or one family of defaults) speaks for.
pub(crate) struct LaneClass {
    /// The block's name or pattern, else the family's pattern.
    pub(crate) block: Arc<str>,
    /// The label under which metrics count its lanes: the name or pattern of a block, never the id of a session.
    pub(crate) label: Arc<str>,
    pub(super) family: Family,
    pub(crate) settings: Settings,
    pub(crate) stats: LaneStats,
    /// How many dead letters are kept for these lanes.
    pub(crate) dead_letters: u32,
}

impl LaneClass {
    #[inline]
    pub(crate) fn count(&mut self, counted: &mut Counted, count: Count) {
        self.stats.count(count);
        counted.note(&self.label, count);
    }
}

#[derive(Default)]
pub(crate) struct LaneConfig {
    blocks: BTreeMap<Pattern, LaneSettings>,
    /// The patterns that have a block, the longest first, of equally long ones the first in the alphabet.
    patterns: Vec<Pattern>,
    classes: Table<LaneClass>,
    by_block: BTreeMap<(Arc<str>, Family), ClassIdx>,
}

impl LaneConfig {
    pub(crate) fn class(&self, class: ClassIdx) -> &LaneClass {
        &self.classes[class]
    }

    pub(crate) fn class_mut(&mut self, class: ClassIdx) -> &mut LaneClass {
        &mut self.classes[class]
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = &LaneClass> {
        self.by_block.values().map(|class| &self.classes[*class])
    }

    /// What holds for the lanes of each class.
    pub(crate) fn class_settings(&self) -> BTreeMap<ClassIdx, Settings> {
        self.classes.iter().map(|(index, class)| (index, class.settings.clone())).collect()
    }

    /// What holds for the lanes that count under the label of a class.
    pub(crate) fn label_settings<'a>(&'a self, class: &'a LaneClass) -> &'a Settings {
        let of_label = self.by_block.get(&(Arc::clone(&class.label), class.family));
        &of_label.map_or(class, |index| self.class(*index)).settings
    }

    /// Which classes have dead letters, and how many each may have.
    pub(crate) fn dead_letter_limits(&self) -> Vec<(ClassIdx, u32)> {
        let classes = self.by_block.values().map(|index| (*index, self.class(*index)));
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
        self.patterns = self.blocks.keys().filter(|lanes| !lanes.is_exact()).cloned().collect();
        self.patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.as_str().len()));
        let (blocks, patterns) = (&self.blocks, &self.patterns);
        for (_, class) in self.classes.iter_mut() {
            class.settings = settings_of(blocks, patterns, &class.block, class.family);
            class.label = label(patterns, &class.block, class.family);
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
            let block = (Arc::from(name.as_str()), Family::of(&name));
            let class = self.by_block.get(&block).map(|class| self.class(*class))?;
            Some((name, class))
        })
    }

    /// The most special block of `name`: the one of that name, else the longest pattern that matches. Of equally long ones, the
    /// first in the alphabet.
    fn block(&self, name: &LaneName) -> Option<(&Pattern, &LaneSettings)> {
        let lanes = Pattern::from(name);
        let pattern = || self.blocks.get_key_value(pattern_over(&self.patterns, &lanes)?);
        self.blocks.get_key_value(&lanes).or_else(pattern)
    }

    /// What the block of exactly these lanes says.
    pub(crate) fn own(&self, lanes: &Pattern) -> LaneSettings {
        self.blocks.get(lanes).cloned().unwrap_or_default()
    }

    /// What was asked for the lanes of a pattern, by their own block and by those of more general patterns.
    pub(crate) fn asked_for(&self, lanes: &Pattern) -> LaneSettings {
        asked_for(&self.blocks, &self.patterns, lanes)
    }

    /// What holds for the lane `name`, whether it exists or not.
    pub(crate) fn settings(&self, name: &LaneName) -> Settings {
        let (block, family) = self.block_and_family(name);
        settings_of(&self.blocks, &self.patterns, &block, family)
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

    /// Which block applies to the lane `name`, and which defaults.
    fn block_and_family(&self, name: &LaneName) -> (Arc<str>, Family) {
        let family = Family::of(name);
        match self.block(name) {
            Some((pattern, _)) => (Arc::from(pattern.clone()), family),
            None => (Arc::from(family.label()), family),
        }
    }

    /// The class of the lane `name`, if there is one.
    pub(crate) fn class_for(&self, name: &LaneName) -> Option<&LaneClass> {
        self.by_block.get(&self.block_and_family(name)).map(|class| self.class(*class))
    }

    /// The class of the lane `name`, made if need be.
    pub(crate) fn class_of(&mut self, name: &LaneName) -> ClassIdx {
        let (block, family) = self.block_and_family(name);
        if let Some(class) = self.by_block.get(&(Arc::clone(&block), family)) {
            return *class;
        }
        self.insert(block, family, LaneStats::default())
    }

    /// Restores the statistics of a class from a snapshot.
    pub(crate) fn restore(&mut self, block: Arc<str>, family: Family, stats: LaneStats) {
        self.insert(block, family, stats);
    }

    fn insert(&mut self, block: Arc<str>, family: Family, stats: LaneStats) -> ClassIdx {
        let settings = settings_of(&self.blocks, &self.patterns, &block, family);
        let label = label(&self.patterns, &block, family);
        let class = LaneClass { block: Arc::clone(&block), label, family, settings, stats, dead_letters: 0 };
        let index = self.classes.insert(class);
        self.by_block.insert((block, family), index);
        index
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
        self.by_block.retain(|(block, family), class| {
            let has_block = Pattern::new(block).is_ok_and(|block| blocks.contains_key(&block));
            let keep = has_block || **block == *family.label();
            if !keep {
                classes.remove(*class);
            }
            keep
        });
    }
}

/// What the block of these lanes asks for. What it leaves open comes from the patterns that cover it, the longest first.
fn asked_for(
    blocks: &BTreeMap<Pattern, LaneSettings>,
    patterns: &[Pattern],
    lanes: &Pattern,
) -> LaneSettings {
    let mut asked = blocks.get(lanes).cloned().unwrap_or_default();
    for general in patterns.iter().filter(|pattern| *pattern != lanes && pattern.covers(lanes)) {
        if let Some(general) = blocks.get(general) {
            asked.fill_from(general);
        }
    }
    asked
}

/// What holds for the lanes of a block, or of a family without one.
fn settings_of(
    blocks: &BTreeMap<Pattern, LaneSettings>,
    patterns: &[Pattern],
    block: &Arc<str>,
    family: Family,
) -> Settings {
    let block = Pattern::new(&**block).ok().filter(|block| blocks.contains_key(block));
    let asked = block.map(|block| asked_for(blocks, patterns, &block)).unwrap_or_default();
    Settings::resolve(&asked, family)
}

/// The longest pattern that covers these lanes.
fn pattern_over<'a>(patterns: &'a [Pattern], lanes: &Pattern) -> Option<&'a Pattern> {
    patterns.iter().find(|pattern| pattern.covers(lanes))
}

/// The label of the lanes of a block. The lanes of one session or token count under their pattern, also with a block of their own.
fn label(patterns: &[Pattern], block: &Arc<str>, family: Family) -> Arc<str> {
    let is_id = |name: &LaneName| name.is_session_family() || family == Family::Token;
    let own = Pattern::new(&**block).ok().and_then(|block| block.exact()).filter(is_id);
    match own.map(|name| pattern_over(patterns, &Pattern::from(&name))) {
        None => Arc::clone(block),
        Some(Some(pattern)) => Arc::from(pattern.clone()),
        Some(None) => Arc::from(family.label()),
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

    #[test]
    fn what_a_block_leaves_open_comes_from_the_next_more_general_one() {
        let mut lane_config = LaneConfig::default();
        let block = |lanes: &str, settings: &[(&str, &str)]| {
            let mut asked = LaneSettings::default();
            settings.iter().for_each(|(key, text)| asked.set(key, text).unwrap());
            Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(asked) }
        };
        lane_config.configure(&[
            block("a*", &[("max_concurrency", "2"), ("weight", "5"), ("retry.max_retries", "7")]),
            block("ab*", &[("weight", "3"), ("retry.strategy", "fixed")]),
            block("*c", &[("weight", "9"), ("lease", "9s")]),
            block("abc", &[("max_queued", "4")]),
        ]);
        let settings = |name: &str| lane_config.settings(&LaneName::new(name).unwrap());
        let abc = settings("abc");
        assert_eq!((abc.max_queued, abc.weight, abc.max_concurrency), (4, 3, Some(2)));
        // A group is one setting. A pattern that covers only some lanes of the most special one gives its lanes nothing.
        assert_eq!((abc.retry.max_retries, settings("abx").retry.max_retries), (3, 3));
        assert_eq!((abc.lease.0, settings("abxc").lease.0), (9_000, 10_000));
        assert_eq!((settings("ax").weight, settings("xc").weight), (5, 9));
    }
}
