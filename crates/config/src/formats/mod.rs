//! One tree for three formats: what the file says and on which line, before its meaning is checked.

pub(crate) mod arithmetic;
pub(crate) mod hcl;
pub(crate) mod json5;
pub(crate) mod toml;

/// How deep blocks, objects and lists may be nested. The deepest setting has five levels.
pub(crate) const DEPTH_MAX: usize = 32;

/// A value and the line on which it begins, counted from one.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) line: Option<u32>,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As decimal text; a whole number has no point, however it was written.
    Number(String),
    Text(String),
    /// TOML has dates; no setting takes one.
    Date,
    List(Vec<Node>),
    /// In the order of the file, with keys as they were written; a key may occur twice.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: Option<u32>,
    pub(crate) node: Node,
}

impl Value {
    /// What it is, for error texts.
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

    /// `4.0` is the whole number 4 in every format: JSON knows no difference.
    pub(crate) fn float(number: f64) -> Value {
        // Beyond 2^53 a float no longer says which whole number was meant.
        let exact = number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        Value::Number(if exact { (number as i64).to_string() } else { format!("{number:?}") })
    }
}

/// Why a text is not of its format.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) line: Option<u32>,
    pub(crate) message: String,
}

/// The three formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Hcl,
    Json5,
    Toml,
}

impl Format {
    /// By the ending of the file's name.
    pub(crate) fn of(file: &str) -> Option<Format> {
        match file.rsplit_once('.')?.1 {
            "hcl" => Some(Format::Hcl),
            "json5" | "json" => Some(Format::Json5),
            "toml" => Some(Format::Toml),
            _ => None,
        }
    }

    /// The entries of the whole file.
    pub(crate) fn read(self, text: &str) -> Result<Node, SyntaxError> {
        match self {
            Format::Hcl => hcl::read(text),
            Format::Json5 => json5::read(text),
            Format::Toml => toml::read(text),
        }
    }
}

/// Finds the line of a place in a text.
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
