//! Parses TOML into the tree. The parser gives the span of every key and value, and refuses duplicate keys.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::formats::{Entry, Lines, Node, SyntaxError, Value};

pub(crate) fn read(text: &str) -> Result<Node, SyntaxError> {
    let lines = Lines::of(text);
    match DeTable::parse(text) {
        Ok(table) => Ok(Node { line: None, value: table_value(table.get_ref(), &lines) }),
        Err(error) => Err(SyntaxError {
            line: error.span().map(|span| lines.line(span.start)),
            message: error.message().lines().collect::<Vec<_>>().join(", "),
        }),
    }
}

fn table_value(table: &DeTable<'_>, lines: &Lines) -> Value {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| {
            let line = Some(lines.line(key.span().start));
            Entry { key: key.get_ref().to_string(), line, node: Node { line, ..node(value, lines) } }
        })
        .collect();
    entries.sort_by_key(|entry| entry.line);
    Value::Table(entries)
}

fn node(spanned: &Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => match i128::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Number(number.to_string()),
            Err(_) => Value::Number(number.to_string()),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::float(number),
            Err(_) => Value::Number(number.to_string()),
        },
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, lines)).collect()),
        DeValue::Table(table) => table_value(table, lines),
    };
    Node { line: Some(lines.line(spanned.span().start)), value }
}
