//! Takes the prose out of a file: the comments of code, the paragraphs of a page.

/// A paragraph and the line that it begins on, from 1.
pub(super) type Paragraph = (usize, String);

pub(super) fn paragraphs(path: &str, text: &str) -> Vec<Paragraph> {
    let mut collected = Collected::default();
    let is_page = path.ends_with(".md");
    let is_any = |kinds: &[&str]| kinds.iter().any(|kind| path.ends_with(kind));
    let marks: &[&str] = if is_any(&[".py", ".toml", ".hcl", ".scenario", ".sh", ".txt"]) {
        &["#"]
    } else if is_any(&[".sql", ".lua"]) {
        &["--"]
    } else {
        &["///", "//!", "//", "/*", "* "]
    };
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let prose = if is_page {
            Some(line)
        } else {
            marks.iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
        };
        collected.add(index + 1, prose);
    }
    collected.end();
    collected.paragraphs
}

#[derive(Default)]
struct Collected {
    paragraphs: Vec<Paragraph>,
    open: Option<Paragraph>,
    is_sample: bool,
}

impl Collected {
    fn add(&mut self, number: usize, prose: Option<&str>) {
        let Some(prose) = prose else {
            self.is_sample = false;
            return self.end();
        };
        if prose.starts_with("```") {
            self.is_sample = !self.is_sample;
            return self.end();
        }
        let is_layout = ["|", "#", "!["].iter().any(|mark| prose.starts_with(mark));
        if prose.is_empty() || is_layout || self.is_sample {
            return self.end();
        }
        let (digits, rest) = prose.split_at(prose.find(|char: char| !char.is_ascii_digit()).unwrap_or(0));
        let is_item = ["- ", "* ", "> "].iter().any(|mark| prose.starts_with(mark))
            || (!digits.is_empty() && rest.starts_with(". "));
        if is_item {
            self.end();
        }
        match &mut self.open {
            Some((_, text)) => {
                text.push(' ');
                text.push_str(prose);
            }
            None => self.open = Some((number, prose.to_owned())),
        }
    }

    fn end(&mut self) {
        self.paragraphs.extend(self.open.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_joined_and_samples_and_tables_are_left_out() {
        let code = "/// One\n/// two.\n///\n/// ```\n/// sample\n/// ```\nfn a() {}\n// | a | b |\n// Three.";
        let expected = [(1, "One two.".to_owned()), (9, "Three.".to_owned())];
        assert_eq!(paragraphs("a.rs", code), expected);
        let page = "# Title\n\nOne\n- two\n- three\n  more\n1. four";
        let texts: Vec<String> = paragraphs("a.md", page).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["One", "- two", "- three more", "1. four"]);
    }
}
