//! HTTP: any body, query and path to any route of a real server; and MCP, which is one of them.
//!
//! An input is a request without what belongs to the connection: a line `METHOD PATH`, headers, an empty line, a body.

use serde_json::{Map, Value};

use super::served::{Answer, Served, ask};
use super::words;
use crate::mutate::any;
use crate::{Chance, Target};

pub(super) struct Http {
    served: Served,
    name: &'static str,
    words: Vec<String>,
    /// Method, path, names of the query, and the schema of the body.
    routes: Vec<(String, String, Vec<String>, Value)>,
    schemas: Value,
}

impl Http {
    pub(super) fn of_the_api() -> Result<Http, String> {
        let document: Value =
            serde_json::from_str(&laneway_server::openapi_json()).map_err(|error| error.to_string())?;
        let mut routes = Vec::new();
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                let query = operation["parameters"].as_array().into_iter().flatten();
                let query = query.filter(|parameter| parameter["in"] == "query");
                let query =
                    query.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned)).collect();
                let body = operation["requestBody"]["content"]["application/json"]["schema"].clone();
                routes.push((method.to_uppercase(), path.clone(), query, body));
            }
        }
        let schemas = document["components"]["schemas"].clone();
        let mut all = words(&[
            "echo",
            "main",
            "external",
            "session:a",
            "collect",
            "steer",
            "interrupt",
            "idempotency-key: k\n",
            "GET ",
            "POST ",
            "PATCH ",
            "DELETE ",
            "/api/tasks",
            "?",
            "&",
            "=",
            "%ff",
            "..",
            "2s",
            "10ms",
            "accept: text/event-stream\n",
            "content-type: text/plain\n",
            "last-event-id: 1-1\n",
            "x-laneway-source: user\n",
            "traceparent: 00-1-1-1\n",
        ]);
        for schema in schemas.as_object().into_iter().flatten().map(|(_, schema)| schema) {
            all.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        }
        Ok(Http { served: Served::new()?, name: "http", words: all, routes, schemas })
    }

    pub(super) fn of_mcp() -> Result<Http, String> {
        let words = words(&[
            "jsonrpc",
            "2.0",
            "id",
            "method",
            "params",
            "initialize",
            "tools/list",
            "tools/call",
            "name",
            "arguments",
            "_meta",
            "progressToken",
            "task",
            "ttl",
            "tasks/get",
            "tasks/list",
            "tasks/cancel",
            "tasks/result",
            "ping",
            "cursor",
            "notifications/initialized",
            "notifications/cancelled",
            "requestId",
            "protocolVersion",
            "2025-06-18",
            "2025-11-25",
            "2024-11-05",
            "capabilities",
            "clientInfo",
            "submit_task",
            "mcp-session-id: 1\n",
            "mcp-protocol-version: 1\n",
        ]);
        Ok(Http { served: Served::new()?, name: "mcp", words, routes: Vec::new(), schemas: Value::Null })
    }

    /// A value as the schema has it, mostly.
    fn value(&self, schema: &Value, chance: &mut Chance, depth: usize) -> Value {
        if chance.once_in(12) || depth > 6 {
            return any(&self.words, chance, depth);
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
            return self.value(&self.schemas[name], chance, depth + 1);
        }
        for choice in ["oneOf", "anyOf", "allOf", "enum"] {
            if let Some(one) = schema[choice].as_array().and_then(|choices| chance.one(choices)) {
                return if choice == "enum" { one.clone() } else { self.value(one, chance, depth + 1) };
            }
        }
        let sort = schema["type"].as_str().or_else(|| chance.one(schema["type"].as_array()?)?.as_str());
        match sort {
            Some("object") => {
                let mut fields = Map::new();
                for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
                    let is_required =
                        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
                    if is_required || chance.once_in(3) {
                        fields.insert(name.clone(), self.value(inner, chance, depth + 1));
                    }
                }
                Value::Object(fields)
            }
            Some("array") => {
                (0..chance.below(4)).map(|_| self.value(&schema["items"], chance, depth + 1)).collect()
            }
            Some("integer" | "number") => chance.below(100).into(),
            Some("boolean") => chance.once_in(2).into(),
            Some("string") => chance.one(&self.words).map_or(Value::Null, |word| word.as_str().into()),
            _ => any(&self.words, chance, depth),
        }
    }
}

impl Target for Http {
    fn name(&self) -> &'static str {
        self.name
    }

    fn words(&self) -> Vec<String> {
        self.words.clone()
    }

    /// A request that its route understands, mostly.
    fn make(&self, chance: &mut Chance) -> Option<Vec<u8>> {
        let (method, path, query, body) = chance.one(&self.routes)?;
        let mut line = format!("{method} ");
        for (at, part) in path.split('/').enumerate() {
            line.push_str(if at > 0 { "/" } else { "" });
            match part.strip_prefix('{') {
                None => line.push_str(part),
                Some("agent}") => line.push_str("echo"),
                Some("lane}") => line.push_str(chance.one(&["main", "external", "session:a", "global"])?),
                Some(_) => {
                    line.push_str(chance.one(&["a", "0198c0de-0000-7000-8000-000000000000", "b%2Fc"])?)
                }
            }
        }
        for name in query {
            if chance.once_in(3) {
                let value = any(&self.words, chance, 9);
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                line.push_str(&format!("{}{name}={value}", if line.contains('?') { '&' } else { '?' }));
            }
        }
        let body = if body.is_null() { String::new() } else { self.value(body, chance, 0).to_string() };
        Some(format!("{}\n\n{body}", line.replace('\n', " ")).into_bytes())
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let (route, request) = request(input);
        let address = self.served.address()?;
        let answer = match self.served.block_on(ask(address, &request)) {
            Ok(Some(answer)) => answer,
            Ok(None) => return Ok(format!("{route}: waits")),
            Err(problem) => {
                self.served.close();
                return Err(problem);
            }
        };
        if answer.status == 401 || answer.status == 403 {
            // An input made a token, and nobody here has it.
            self.served.close();
        }
        check(&answer).map(|outcome| format!("{route}: {outcome}"))
    }
}

/// No bug is answered, and a refusal is a problem with a code and words.
fn check(answer: &Answer) -> Result<String, String> {
    let body = String::from_utf8_lossy(&answer.body);
    if answer.status == 500 || answer.status < 200 {
        return Err(format!("answered {} {body:.400}", answer.status));
    }
    if !answer.head.to_lowercase().contains("application/problem+json") {
        return Ok(answer.status.to_string());
    }
    let problem: Value =
        serde_json::from_str(&body).map_err(|error| format!("a problem that is not JSON: {error}"))?;
    match (problem["code"].as_str(), problem["detail"].as_str()) {
        (Some(code), Some(detail)) if !code.is_empty() && !detail.is_empty() => {
            Ok(format!("{} {code} {:.80}", answer.status, detail))
        }
        _ => Err(format!("a problem without code or words: {body:.400}")),
    }
}

/// The request in its bytes, and in a word which it is. What belongs to the connection is this function's business.
fn request(input: &[u8]) -> (String, Vec<u8>) {
    let end = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let body = input.get(end + 2..).unwrap_or_default();
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    let mut lines = head.lines();
    let (method, path) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or(("POST", "/api/tasks"));
    let method: String = method.chars().filter(char::is_ascii_uppercase).take(10).collect();
    let method = if method.is_empty() || method == "CONNECT" { "POST".to_owned() } else { method };
    let mut target = String::from("/");
    for byte in path.trim_start_matches('/').bytes().take(4000) {
        match byte {
            b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                target.push_str(&format!("%{byte:02X}"));
            }
            0x21..=0x7e => target.push(byte.into()),
            _ => target.push_str(&format!("%{byte:02X}")),
        }
    }
    let mut request = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    let mut has_type = false;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")).take(20) {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        let is_ours = ["host", "connection", "content-length", "transfer-encoding", "expect", "upgrade"]
            .contains(&name);
        if is_name && !is_ours && value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.len() < 1000
        {
            has_type |= name == "content-type";
            request.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if !has_type {
        request.push_str("content-type: application/json\r\n");
    }
    request.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let route: Vec<&str> = target.split(['/', '?']).take(3).collect();
    (format!("{method} {}", route.join("/")), [request.as_bytes(), body].concat())
}
