//! Checks the server against its OpenAPI document: schemathesis makes valid and invalid requests of it. The document
//! describes no 500.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::chore::{build_program, program, python, run, target};

/// The version that is known to work.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// How many requests are generated for each operation.
const EXAMPLES: &str = "25";

/// Streams do not end and claims wait, so a client that reads to the end would hang. A change of tokens would lock it out.
const EXCLUDED: [&str; 8] = [
    "--exclude-path-regex",
    "/events$",
    "--exclude-path",
    "/api/ws",
    "--exclude-path",
    "/api/claim",
    "--exclude-path",
    "/api/slots",
];

/// A running server, killed on drop.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // A server that has ended already needs nothing.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a server and fails on every answer that its document does not describe.
pub(crate) fn check() -> Result<(), String> {
    let schemathesis = install()?;
    build_program()?;
    let dir = target().join("api-check");
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let laneway = program("debug");
    let create = ["token", "create", "--subject", "api-check", "--scope", "admin"];
    let token = Command::new(&laneway).args(create).current_dir(&dir).output();
    let token = token.map_err(|error| error.to_string())?.stdout;
    let token = String::from_utf8_lossy(&token).trim().to_owned();
    let mut served = Command::new(&laneway)
        .args(["serve", "--listen", "127.0.0.1:0", "--log", "error"])
        .current_dir(&dir)
        .stdout(Stdio::piped())
        .spawn()
        .map(Served)
        .map_err(|error| format!("the server did not start: {error}"))?;
    let mut first = String::new();
    let stdout = served.0.stdout.take().ok_or("the server says nothing")?;
    BufReader::new(stdout).read_line(&mut first).map_err(|error| error.to_string())?;
    let address = first.trim().rsplit_once("http://").ok_or("the server did not start")?.1;
    let document = format!("http://{address}/openapi.json");
    let bearer = format!("Authorization: Bearer {token}");
    let checks = "status_code_conformance,content_type_conformance,response_schema_conformance";
    let mut arguments = vec!["run", &document, "--header", &bearer, "--checks", checks];
    arguments.extend([
        "--phases",
        "coverage,fuzzing",
        "--max-examples",
        EXAMPLES,
        "--request-timeout",
        "120",
    ]);
    arguments.extend(["--exclude-path", "/api/tokens", "--warnings", "off"]);
    arguments.extend(EXCLUDED);
    let status = Command::new(schemathesis)
        .args(arguments)
        .current_dir(&dir)
        .status()
        .map_err(|error| format!("schemathesis did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("the server does not keep to its document".to_owned()) }
}

fn install() -> Result<String, String> {
    let python = python("schemathesis")?;
    let program = target().join("schemathesis/bin/schemathesis");
    if !program.exists() {
        run(&python, &["-m", "pip", "install", "--quiet", SCHEMATHESIS], &[])?;
    }
    Ok(program.to_string_lossy().into_owned())
}
