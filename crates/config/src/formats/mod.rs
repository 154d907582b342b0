//! One tree for three formats: values and their lines, before the reader checks their meaning.

pub(crate) mod arithmetic;
pub(crate) mod hcl;
pub(crate) mod json5;
pub(crate) mod toml;

/// The deepest nesting of blocks, objects and lists. The deepest setting has five levels.
pub(crate) const DEPTH_MAX: usize = 32;

/// A value and the line on which it starts, counted from one.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: Option<u32>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Decimal text. A whole number has no decimal point, also if the file has `4.0`.
    Number(String),
    Text(String),
    /// A date of TOML, which no setting accepts.
    Date,
    List(Vec<Node>),
    /// Entries with keys as in the file, in its order. A key may occur twice.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: Option<u32>,
    pub(crate) node: Node,
}

impl Node {
    /// The same value without lines, for a text that no person sees.
    pub(crate) fn without_lines(self) -> Node {
        let value = match self.value {
            Value::List(nodes) => Value::List(nodes.into_iter().map(Node::without_lines).collect()),
            Value::Table(entries) => Value::Table(entries.into_iter().map(Entry::without_line).collect()),
            value => value,
        };
        Node { line: None, value }
    }
}

impl Entry {
    fn without_line(self) -> Entry {
        Entry { key: self.key, line: None, node: self.node.without_lines() }
    }
}

impl Value {
    /// The type of the value, for error texts.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::Date => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a block",
        }
    }

    /// Turns `4.0` into the whole number 4 in every format, because JSON does not distinguish them.
    pub(crate) fn float(number: f64) -> Value {
        // Beyond 2^53 a float does not identify one whole number.
        let exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        Value::Number(if exact { (number as i64).to_string() } else { format!("{number:?}") })
    }
}

/// Why a text cannot be parsed.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) line: Option<u32>,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Hcl,
    Json5,
    Toml,
}

impl Format {
    /// The format of a file, by the ending of its name.
    pub(crate) fn of(file: &str) -> Option<Format> {
        match file.rsplit_once('.')?.1 {
            "hcl" => Some(Format::Hcl),
            "json5" | "json" => Some(Format::Json5),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }

    /// Parses a whole file.
    pub(crate) fn read(self, text: &str) -> Result<Node, SyntaxError> {
        match self {
            Format::Hcl => hcl::read(text),
            Format::Json5 => json5::read(text),
            Format::Toml => toml::read(text),
        }
    }
}

/// Finds the line of an offset in a text.
pub(crate) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(text: &str) -> Lines {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// The line of the byte at `offset`, counted from one.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        u32::try_from(self.starts.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}
