//! JSON Schemas of the arguments and answers of tools, from the types of the protocol.

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::ToSchema;

/// A schema with all schemas that it refers to.
pub(super) struct Described {
    root: Value,
    definitions: Map<String, Value>,
}

/// The schema of a type.
pub(super) fn of<T: ToSchema + PartialSchema>() -> Described {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let parts = parts.into_iter().map(|(name, schema)| (name, plain(json!(schema))));
    Described { root: plain(json!(T::schema())), definitions: parts.collect() }
}

impl Described {
    /// A list does not bring the schema of what is in it.
    pub(super) fn with<T: ToSchema + PartialSchema>(mut self) -> Described {
        let Described { root, definitions } = of::<T>();
        self.definitions.insert(T::name().into_owned(), root);
        self.definitions.extend(definitions);
        self
    }

    /// As it is.
    pub(super) fn alone(self) -> JsonObject {
        let Described { root, definitions } = self;
        let mut root = match root {
            Value::Object(root) => root,
            _ => Map::new(),
        };
        root.insert("type".to_owned(), "object".into());
        if !definitions.is_empty() {
            root.insert("$defs".to_owned(), definitions.into());
        }
        root
    }
}

/// An object that is one of these.
pub(super) fn any_of(choices: impl IntoIterator<Item = Described>) -> JsonObject {
    let mut roots = Vec::new();
    let mut definitions = Map::new();
    for choice in choices {
        roots.push(choice.root);
        definitions.extend(choice.definitions);
    }
    Described { root: json!({ "type": "object", "anyOf": roots }), definitions }.alone()
}

/// OpenAPI's own words are taken out: where shared parts lie, and sizes of numbers that JSON does not know.
fn plain(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter_map(|(key, value)| match (key.as_str(), &value) {
                ("format", Value::String(format)) if format.starts_with("int") => None,
                ("$ref", Value::String(place)) => {
                    let place = place.replace("#/components/schemas/", "#/$defs/");
                    Some((key, Value::String(place)))
                }
                _ => Some((key, plain(value))),
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}
