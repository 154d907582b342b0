//! The printed table: a row for each figure, with its bound and whether it holds.

/// How many rounds the subject and its references take turns for.
pub const ROUNDS: usize = 9;

/// A bound on a ratio.
#[derive(Clone, Copy)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// The figure is printed for orientation.
    None,
}

/// The rows, each printed when it is added.
pub struct Table {
    word: String,
    broken: Vec<String>,
    rows: usize,
}

impl Table {
    pub fn new(word: &str) -> Table {
        println!(
            "{:<52} {:>14} {:>14} {:>7} {:>15} {:>9}  ",
            "what", "ours", "reference", "ratio", "spread", "bound"
        );
        Table { word: word.to_owned(), broken: Vec::new(), rows: 0 }
    }

    /// Whether this run measures rows of this name.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.word)
    }

    /// Adds a row. Each round has a figure of ours and one of the reference; the ratio is ours over the reference's.
    pub fn add(&mut self, name: &str, unit: &str, rounds: &[(f64, f64)], bound: Bound) {
        let ratios = sorted(rounds.iter().map(|(ours, reference)| ours / reference));
        let (ours, references) =
            (sorted(rounds.iter().map(|round| round.0)), sorted(rounds.iter().map(|round| round.1)));
        let ratio = median(&ratios);
        let (words, holds) = match bound {
            Bound::AtLeast(least) => (format!(">= {least}"), Some(ratio >= least)),
            Bound::AtMost(most) => (format!("<= {most}"), Some(ratio <= most)),
            Bound::None => (String::new(), None),
        };
        let verdict = holds.map_or("", |holds| if holds { "holds" } else { "BROKEN" });
        let spread = format!("{:.2}..{:.2}", ratios[0], ratios[ratios.len() - 1]);
        let told = |figure: f64| format!("{figure:.prec$} {unit}", prec = if figure < 100.0 { 2 } else { 0 });
        println!(
            "{name:<52} {:>14} {:>14} {ratio:>7.2} {spread:>15} {words:>9}  {verdict}",
            told(median(&ours)),
            told(median(&references))
        );
        if references[references.len() - 1] > 2.0 * references[0] {
            println!("    the reference itself varied by more than 2 x: measure again on a quieter machine");
        }
        self.rows += 1;
        if holds == Some(false) {
            self.broken.push(name.to_owned());
        }
    }

    /// Says whether every bound holds.
    pub fn conclude(self) -> bool {
        match self.broken.as_slice() {
            _ if self.rows == 0 => println!("no row has {:?} in its name", self.word),
            [] => println!("all bounds hold"),
            broken => println!("BROKEN: {}", broken.join(", ")),
        }
        self.broken.is_empty() && self.rows > 0
    }
}

pub fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// The middle one of sorted figures.
pub fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
