//! HCL wants a line for each attribute. People write `lane "a" { max_concurrency = 8  weight = 2 }` all the
//! same, and there is only one way to understand it: so missing line breaks are put in before parsing.
//!
//! Where two operands stand side by side, a new attribute begins: no expression has two operands without an
//! operator between them (outside `for`, which is left alone).

/// A text with line breaks put in, which remembers where each piece came from.
pub(crate) struct Unfolded {
    pub(crate) text: String,
    /// Where line breaks were put in, as places in `text`, ascending.
    breaks: Vec<usize>,
}

impl Unfolded {
    pub(crate) fn of(text: &str) -> Unfolded {
        let mut unfolder = Unfolder {
            source: text,
            at: 0,
            out: Unfolded { text: String::with_capacity(text.len() + 64), breaks: Vec::new() },
            open: vec![Frame::BODY],
            operand: false,
        };
        while unfolder.token().is_some() {}
        unfolder.out
    }

    /// Where the byte at `offset` of the unfolded text stands in the original.
    pub(crate) fn original(&self, offset: usize) -> usize {
        offset - self.breaks.partition_point(|at| *at < offset)
    }

    fn break_line(&mut self) {
        self.breaks.push(self.text.len());
        self.text.push('\n');
    }
}

/// What the text is inside of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// The file or a block: attributes and blocks.
    Body,
    /// `{ key = value }` as a value.
    Object,
    /// Brackets and parentheses, where line breaks mean nothing, and `for`.
    Expression,
}

struct Frame {
    inside: Inside,
    /// The `=` of the current attribute has been seen.
    assigned: bool,
}

impl Frame {
    const BODY: Frame = Frame { inside: Inside::Body, assigned: false };
}

struct Unfolder<'a> {
    source: &'a str,
    at: usize,
    out: Unfolded,
    open: Vec<Frame>,
    /// The last token on this line ends an operand or a block.
    operand: bool,
}

impl Unfolder<'_> {
    /// Copies one token, with a line break before or after it where one is missing.
    fn token(&mut self) -> Option<()> {
        let rest = &self.source[self.at..];
        let first = rest.chars().next()?;
        match first {
            '\n' => {
                self.operand = false;
                self.end_attribute();
                self.copy(1);
            }
            _ if first.is_whitespace() => self.copy(first.len_utf8()),
            '#' => self.copy(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("//") => self.copy(rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => self.copy(rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '"' => self.operand(quoted(rest)),
            '<' if rest.starts_with("<<") => self.heredoc(rest),
            '{' | '[' | '(' => self.opening(first),
            '}' | ']' | ')' => self.closing(first),
            _ if first.is_alphanumeric() || first == '_' => {
                let word = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.');
                self.operand(rest.find(|char| !word(char)).unwrap_or(rest.len()));
            }
            _ => {
                if let (Some(frame), '=' | ':') = (self.open.last_mut(), first) {
                    frame.assigned = true;
                }
                self.operand = false;
                self.copy(first.len_utf8());
            }
        }
        Some(())
    }

    fn copy(&mut self, length: usize) {
        self.out.text.push_str(&self.source[self.at..self.at + length]);
        self.at += length;
    }

    fn inside(&self) -> Inside {
        self.open.last().map_or(Inside::Body, |frame| frame.inside)
    }

    fn assigned(&self) -> bool {
        self.open.last().is_some_and(|frame| frame.assigned)
    }

    fn end_attribute(&mut self) {
        if let Some(frame) = self.open.last_mut() {
            frame.assigned = false;
        }
    }

    /// A word, a number or a string: the value of an attribute, or the beginning of the next one.
    fn operand(&mut self, length: usize) {
        if self.operand && self.assigned() && self.inside() != Inside::Expression {
            self.out.break_line();
            self.end_attribute();
        }
        self.operand = true;
        self.copy(length);
    }

    fn opening(&mut self, bracket: char) {
        let block = bracket == '{' && self.inside() == Inside::Body && !self.assigned();
        let inside_braces = self.source[self.at + 1..].trim_start();
        let inside = match bracket {
            '{' if block => Inside::Body,
            '{' if !inside_braces.starts_with("for ") => Inside::Object,
            _ => Inside::Expression,
        };
        self.copy(1);
        if block {
            self.out.break_line();
        }
        self.open.push(Frame { inside, assigned: false });
        self.operand = false;
    }

    fn closing(&mut self, bracket: char) {
        let block = bracket == '}' && self.inside() == Inside::Body && self.open.len() > 1;
        if block {
            self.out.break_line();
        }
        if self.open.len() > 1 {
            self.open.pop();
        }
        self.copy(1);
        self.operand = true;
        if block && let Some(frame) = self.open.last_mut() {
            // What follows a block is something new, as if the block had been a value.
            frame.assigned = true;
        }
    }

    /// Copies a heredoc whole: its last line holds nothing but the word that it was opened with.
    fn heredoc(&mut self, rest: &str) {
        let opened = rest.lines().next().unwrap_or_default();
        let word = opened.trim_start_matches('<').trim_start_matches('-').trim();
        let mut length = 0;
        for (number, line) in rest.split_inclusive('\n').enumerate() {
            if number > 0 && line.trim() == word {
                length += line.trim_end_matches(['\n', '\r']).len();
                break;
            }
            length += line.len();
        }
        self.operand = true;
        self.copy(length);
    }
}

/// The length of the string that `text` begins with. A template in it may hold strings of its own.
fn quoted(text: &str) -> usize {
    let mut templates: Vec<usize> = Vec::new();
    let mut in_string = true;
    let mut strings = 1_usize;
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' if in_string => {
                chars.next();
            }
            '"' if in_string => {
                strings -= 1;
                if strings == 0 {
                    return at + 1;
                }
                in_string = false;
            }
            '"' => {
                strings += 1;
                in_string = true;
            }
            '$' | '%' if in_string => match chars.peek() {
                // `$${` is a literal `${`.
                Some((_, next)) if *next == char => {
                    chars.next();
                    chars.next_if(|(_, next)| *next == '{');
                }
                Some((_, '{')) => {
                    chars.next();
                    templates.push(0);
                    in_string = false;
                }
                _ => {}
            },
            '{' if !in_string => {
                if let Some(depth) = templates.last_mut() {
                    *depth += 1;
                }
            }
            '}' if !in_string => match templates.last_mut() {
                Some(0) => {
                    templates.pop();
                    in_string = true;
                }
                Some(depth) => *depth -= 1,
                None => {}
            },
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let unfolded = Unfolded::of(text);
        assert_eq!(unfolded.text, expected);
        let mut original = vec![0; text.len()];
        for at in 0..unfolded.text.len() {
            if !unfolded.breaks.contains(&at) {
                original[unfolded.original(at)] = unfolded.text.as_bytes()[at];
            }
        }
        assert_eq!(original, text.as_bytes(), "every byte is traced back to its place");
    }

    #[test]
    fn attributes_on_one_line_get_lines_of_their_own() {
        check("l \"m\" { a = 8  b = 2 }", "l \"m\" {\n a = 8  \nb = 2 \n}");
        check("l { a = 8  r { p = \"m\" x = 6 } }", "l {\n a = 8  \nr {\n p = \"m\" \nx = 6 \n} \n}");
        check("a { } b { }", "a {\n \n} \nb {\n \n}");
        check("o = { m = \"e\"  t = 6 }", "o = { m = \"e\"  \nt = 6 }");
        check("o = { m : \"e\"  t : 6 }", "o = { m : \"e\"  \nt : 6 }");
        check("a { c = [\"x\", \"-p\"]  l = [\"m\"] }", "a {\n c = [\"x\", \"-p\"]  \nl = [\"m\"] \n}");
    }

    #[test]
    fn what_is_on_lines_of_its_own_stays() {
        for text in [
            "a = 1\nb = 2 # c = 3 d = 4\n",
            "a = 1 + 2 * x.y[0]\n",
            "a = true ? \"x\" : \"y\"\n",
            "a = \"${ f(\"b c\") } d\" // e f\n",
            "a = \"$${b c\" /* d = 1 e = 2 */\n",
            "a = [for x in [1, 2] : x if x > 1]\n",
            "a = { for k, v in b : k => v if v }\n",
            "a = <<-END\n  b = 1 c = 2\n  END\nd = 1\n",
            "a = {\n  b = 1\n  c = 2\n}\n",
            "a = { b = 1, c = 2 }\n",
        ] {
            check(text, text);
        }
    }
}
