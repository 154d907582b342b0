//! Holds the server to its own OpenAPI document: schemathesis makes requests of it, sensible and not, and no answer may be
//! one that the document does not describe. A 500 is not described.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::{build_program, root, run};

/// The version that is known to work.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// How many requests are made up for each operation.
const EXAMPLES: &str = "25";

/// Streams do not end and claims wait, so that a client that reads to the end would wait with them. A removed or an added
/// token changes who may ask.
const LEFT_OUT: [&str; 8] = [
    "--exclude-path-regex",
    "/events$",
    "--exclude-path",
    "/api/ws",
    "--exclude-path",
    "/api/claim",
    "--exclude-path",
    "/api/slots",
];

fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A server of its own, ended with this value.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended already is as good.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts a server, asks it everything, and fails with what it should not have answered.
pub(crate) fn fuzz() -> Result<(), String> {
    let schemathesis = install()?;
    build_program()?;
    let dir = target().join("api-check");
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let laneway = target().join("debug/laneway");
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
    arguments.extend(LEFT_OUT);
    let status = Command::new(schemathesis)
        .args(arguments)
        .current_dir(&dir)
        .status()
        .map_err(|error| format!("schemathesis did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("the server does not keep to its document".to_owned()) }
}

/// The program, in a virtual environment of its own.
fn install() -> Result<String, String> {
    let venv = target().join("schemathesis");
    let program = venv.join("bin/schemathesis");
    if !program.exists() {
        crate::ensure("python3", "python3-venv")?;
        run("python3", &["-m", "venv", &text(&venv)], &[])?;
        run(&text(&venv.join("bin/pip")), &["install", "--quiet", SCHEMATHESIS], &[])?;
    }
    Ok(text(&program))
}
