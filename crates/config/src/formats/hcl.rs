//! Parses HCL into the tree. `lane "main" { … }` becomes the entry `main` of the table `lane`, as in the other formats.

use hcl::edit::Span;
use hcl::edit::expr::{Expression, ObjectKey};
use hcl::edit::structure::{Block, Body, Structure};
use hcl::eval::{Context, Evaluate};

use crate::formats::{Entry, Lines, Node, SyntaxError, Value, arithmetic};

const ONE_PER_LINE: &str = "several attributes or blocks share this line; write each on its own line, or write an \
                            object with commas, such as retry = { strategy = \"fixed\", max_retries = 2 }";

pub(crate) fn read(text: &str) -> Result<Node, SyntaxError> {
    let reader = Reader { lines: Lines::of(text) };
    match hcl::edit::parser::parse_body(text) {
        Ok(body) => Ok(Node { line: None, value: reader.body(&body)? }),
        Err(error) => {
            let shared = shares_line(error.line());
            let message = if shared { ONE_PER_LINE } else { error.message() }.to_owned();
            Err(SyntaxError { line: reader.line(Some(error.location().offset()..0)), message })
        }
    }
}

/// Whether a line has more than one attribute, a block in a block, or an attribute on the first or last line of a longer
/// block. HCL allows none of these.
fn shares_line(line: &str) -> bool {
    let (mut attributes, mut blocks, mut objects, mut ends) = (0, 0, 0, 0);
    let (mut in_text, mut last) = (false, ' ');
    for char in line.chars().filter(|char| !char.is_whitespace()) {
        match char {
            '"' if last != '\\' => in_text = !in_text,
            _ if in_text => {}
            '=' if !"=!<>".contains(last) => attributes += 1,
            '{' if "=:".contains(last) => objects += 1,
            '{' => blocks += 1,
            '}' => ends += 1,
            _ => {}
        }
        last = char;
    }
    let is_open = blocks + ends > 0 && blocks + objects != ends;
    attributes > 1 || blocks > 1 || attributes == 1 && is_open
}

struct Reader {
    lines: Lines,
}

impl Reader {
    fn line(&self, span: Option<std::ops::Range<usize>>) -> Option<u32> {
        span.map(|span| self.lines.line(span.start))
    }

    fn body(&self, body: &Body) -> Result<Value, SyntaxError> {
        let mut entries: Vec<Entry> = Vec::new();
        for structure in body {
            match structure {
                Structure::Attribute(attribute) => entries.push(Entry {
                    key: attribute.key.to_string(),
                    line: self.line(attribute.key.span()),
                    node: self.node(&attribute.value)?,
                }),
                Structure::Block(block) => self.block(block, &mut entries)?,
            }
        }
        Ok(Value::Table(entries))
    }

    /// Adds a block. Labelled blocks of one type share a table.
    fn block(&self, block: &Block, entries: &mut Vec<Entry>) -> Result<(), SyntaxError> {
        let line = self.line(block.ident.span());
        if block.labels.len() > 1 {
            let message =
                format!("a block has one name, but {} has {}", block.ident.as_str(), block.labels.len());
            return Err(SyntaxError { line, message });
        }
        let body = Node { line, value: self.body(&block.body)? };
        let labelled = block.labels.iter().rev().fold(body, |node, label| {
            let entry = Entry { key: label.as_str().to_owned(), line, node };
            Node { line, value: Value::Table(vec![entry]) }
        });
        let kind = block.ident.to_string();
        let earlier = entries.iter_mut().find(|entry| entry.key == kind);
        match (earlier, labelled.value) {
            (Some(Entry { node: Node { value: Value::Table(earlier), .. }, .. }), Value::Table(new))
                if !block.labels.is_empty() =>
            {
                earlier.extend(new);
            }
            (_, value) => entries.push(Entry { key: kind, line, node: Node { line, value } }),
        }
        Ok(())
    }

    fn node(&self, expression: &Expression) -> Result<Node, SyntaxError> {
        let line = self.line(expression.span());
        let value = match expression {
            Expression::Array(items) => {
                Value::List(items.iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            Expression::Object(object) => {
                let mut entries = Vec::new();
                for (key, value) in object {
                    let line = self.line(key.span());
                    entries.push(Entry { key: self.key(key)?, line, node: self.node(value.expr())? });
                }
                Value::Table(entries)
            }
            other => value(self.evaluate(other)?),
        };
        Ok(Node { line, value })
    }

    fn key(&self, key: &ObjectKey) -> Result<String, SyntaxError> {
        match key {
            ObjectKey::Ident(word) => Ok(word.to_string()),
            ObjectKey::Expression(Expression::Variable(word)) => Ok(word.to_string()),
            ObjectKey::Expression(expression) => match self.evaluate(expression)? {
                hcl::Value::String(text) => Ok(text),
                other => Ok(other.to_string()),
            },
        }
    }

    fn evaluate(&self, expression: &Expression) -> Result<hcl::Value, SyntaxError> {
        if let Some(message) = arithmetic::problem(expression) {
            return Err(SyntaxError { line: self.line(expression.span()), message });
        }
        let result = hcl::Expression::from(expression.clone()).evaluate(&Context::new());
        result.map_err(|error| SyntaxError {
            line: self.line(expression.span()),
            message: error.to_string().lines().collect::<Vec<_>>().join(", "),
        })
    }
}

/// The value of an evaluated expression. Its parts have no lines.
fn value(value: hcl::Value) -> Value {
    let node = |inner| Node { line: None, value: self::value(inner) };
    match value {
        hcl::Value::Null => Value::Null,
        hcl::Value::Bool(truth) => Value::Bool(truth),
        hcl::Value::Number(number) => match (number.is_f64(), number.as_f64()) {
            (true, Some(float)) => Value::float(float),
            _ => Value::Number(number.to_string()),
        },
        hcl::Value::String(text) => Value::Text(text),
        hcl::Value::Array(items) => Value::List(items.into_iter().map(node).collect()),
        hcl::Value::Object(entries) => Value::Table(
            entries.into_iter().map(|(key, inner)| Entry { key, line: None, node: node(inner) }).collect(),
        ),
    }
}
