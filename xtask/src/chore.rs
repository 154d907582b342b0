//! What all chores share: running commands, installing what they need, the built program.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once the tests have built the program. Another build would compile most dependencies again, because tests enable
/// more features of some crates.
static PROGRAM_IS_BUILT: AtomicBool = AtomicBool::new(false);

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let elsewhere = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(elsewhere.unwrap_or_else(|| "target".into()))
}

/// The program `laneway` of a build profile.
pub(crate) fn program(profile: &str) -> PathBuf {
    target().join(profile).join("laneway")
}

/// Builds the debug program that a chore starts.
pub(crate) fn build_program() -> Result<(), String> {
    if PROGRAM_IS_BUILT.load(Ordering::Relaxed) {
        return Ok(());
    }
    run("cargo", &["build", "--package", "laneway-cli"], &[])
}

/// Says that the tests have just built the debug program.
pub(crate) fn program_is_built() {
    PROGRAM_IS_BUILT.store(true, Ordering::Relaxed);
}

/// Runs a command in the root of the repository and fails with it.
pub(crate) fn run(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    println!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(root())
        .status()
        .map_err(|error| format!("{program} did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} {} failed", arguments.join(" "))) }
}

/// Installs a Debian package when its program is missing.
pub(crate) fn ensure(program: &str, package: &str) -> Result<(), String> {
    let is_there = || Command::new(program).arg("--version").output().is_ok();
    if is_there() {
        return Ok(());
    }
    let options = [("DEBIAN_FRONTEND", "noninteractive")];
    // Another program may be installing something.
    let patience = "--option=DPkg::Lock::Timeout=120";
    let installed = run("apt-get", &["update"], &[]).and_then(|()| {
        run("apt-get", &["install", "--yes", "--no-install-recommends", patience, package], &options)
    });
    match installed {
        Ok(()) if is_there() => Ok(()),
        _ => Err(format!(
            "{program} is missing and could not be installed; as root: apt-get install {package}"
        )),
    }
}

/// The backends that stores are tested on, and the programs that some tests call.
pub(crate) fn ensure_backends() -> Result<(), String> {
    ensure("redis-server", "redis-server")?;
    ensure("redis-cli", "redis-tools")?;
    ensure("/usr/lib/postgresql/15/bin/postgres", "postgresql-15")?;
    ensure("pgbouncer", "pgbouncer")?;
    ensure("setpriv", "util-linux")?;
    // Checks the unit file of the package.
    ensure("systemd-analyze", "systemd")?;
    ensure("strace", "strace")?;
    ["nginx", "haproxy", "caddy"].into_iter().try_for_each(|proxy| ensure(proxy, proxy))?;
    ensure("promtool", "prometheus")?;
    ensure("kubectl", "kubernetes-client")?;
    ensure("tmux", "tmux")
}

/// The interpreter of a Python environment in `target/`, created when it is missing.
pub(crate) fn python(environment: &str) -> Result<String, String> {
    ensure("python3", "python3-venv")?;
    let folder = target().join(environment);
    if !folder.join("bin/pip").exists() {
        run("python3", &["-m", "venv", &folder.to_string_lossy()], &[])?;
    }
    Ok(folder.join("bin/python").to_string_lossy().into_owned())
}

/// Installs the locked packages of a Node project.
pub(crate) fn node_packages(project: &str) -> Result<(), String> {
    ensure("node", "nodejs")?;
    ensure("npm", "npm")?;
    run("npm", &["--prefix", project, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], &[])
}
