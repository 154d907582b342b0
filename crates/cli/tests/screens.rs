//! `laneway top`, `demo`, `chat` and others in a real terminal of 80 x 24.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod served;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use served::{laneway, serve};

/// How long a test waits for a screen. Only a failure reaches it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A terminal, which ends with the test.
struct Terminal {
    socket: String,
    dir: tempfile::TempDir,
}

impl Terminal {
    /// Opens a terminal with a shell.
    fn open() -> Terminal {
        let dir = tempfile::tempdir().unwrap();
        let terminal = Terminal { socket: dir.path().join("tmux").display().to_string(), dir };
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env PS1='$ ' sh"]);
        // Keys typed before the prompt would appear before it.
        terminal.wait("prompt", |screen| screen.starts_with('$'));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let bin = Path::new(env!("CARGO_BIN_EXE_laneway")).parent().unwrap().display().to_string();
        let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("tmux");
        command.args(["-u", "-S", &self.socket]).args(words).current_dir(self.dir.path());
        command.env_clear().env("PATH", path).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let output = command
            .output()
            .expect("tmux is missing; `cargo xtask test` installs it, or `apt-get install tmux`");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn line(&self, line: &str) {
        self.keys(&["-l", line]);
        self.keys(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until two captures in a row match, because one capture may show a half-drawn screen.
    #[track_caller]
    fn wait(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if is_there(&screen) && self.screen() == screen {
                return screen;
            }
            assert!(Instant::now() < end, "no {what} on this screen:\n{screen}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(Command::new("tmux").args(["-S", &self.socket, "kill-server"]).output());
    }
}

fn ask(dir: &Path, url: &str, words: &[&str]) -> String {
    let output = laneway(dir).args(words).env("LANEWAY_URL", url).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The row of a lane.
fn row<'a>(screen: &'a str, lane: &str) -> &'a str {
    screen.lines().find(|line| line.starts_with(lane)).unwrap_or_default()
}

#[test]
fn top_shows_lanes_obeys_confirmed_keys_and_survives_a_restart_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let config = "lane \"gpu\" { handler = \"external\" }\nserver { drain_grace = \"10ms\" }";
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    for number in ["1", "2", "3"] {
        ask(dir.path(), &served.url, &["submit", "render", number, "--lane", "gpu"]);
    }
    let terminal = Terminal::open();
    terminal.line(&format!("laneway top --url {}", served.url));
    let screen = terminal.wait("lanes", |screen| screen.contains("Longest waiting"));
    assert!(
        screen.lines().all(|line| line.chars().count() <= 80) && screen.lines().count() <= 24,
        "{screen}"
    );
    for text in ["running 0/∞  waiting 3", "No worker has claimed it.", "q quit", "LANE", "REFUSED", "P95"]
    {
        assert!(screen.contains(text), "no {text:?} on this screen:\n{screen}");
    }
    assert!(row(&screen, "gpu").contains("·▒▒▒") && row(&screen, "gpu").contains("0/1      3"), "{screen}");

    // `n` changes nothing and `y` does; an event brings the change to the screen.
    terminal.keys(&["End", "p"]);
    terminal.wait("question", |screen| screen.contains("Pause lane gpu? No task starts in it then. [y/n]"));
    terminal.keys(&["n"]);
    let screen = terminal.wait("answer", |screen| screen.contains("nothing has changed"));
    assert!(!screen.contains("paused"), "{screen}");
    terminal.keys(&["p", "y"]);
    terminal.wait("pause", |screen| row(screen, "gpu (paused)").contains("0/1"));
    terminal.keys(&["r", "y"]);
    terminal.wait("resume", |screen| row(screen, "gpu").contains("0/1") && !screen.contains("(paused)"));
    terminal.keys(&["l", "7", "Enter"]);
    terminal.wait("question", |screen| screen.contains("Set the limit of lane gpu to 7? [y/n]"));
    terminal.keys(&["y"]);
    terminal.wait("limit", |screen| row(screen, "gpu").contains("0/7"));
    terminal.keys(&["x", "y"]);
    terminal.wait("cancellation", |screen| {
        screen.contains("cancelled while queued") && screen.contains("waiting 2")
    });

    // The server stops and starts again.
    let address = served.url.trim_start_matches("http://").to_owned();
    drop(served);
    terminal.wait("sign that it is away", |screen| {
        screen.contains("AWAY: trying again")
            && screen.contains("the numbers are old")
            && screen.contains("gpu")
    });
    let served = serve(dir.path(), &address);
    terminal.wait("sign that it is back", |screen| screen.contains("waiting 2") && !screen.contains("AWAY"));
    terminal.keys(&["c", "y"]);
    terminal.wait("clearing", |screen| {
        screen.contains("No task waits.") && screen.contains("Cancelled 2 queued")
    });
    terminal.keys(&["q"]);
    terminal.wait("prompt", |screen| screen.trim_end().ends_with('$') && !screen.contains("LANE"));
    drop(served);
}

#[test]
fn the_demo_shows_work_within_seconds_and_leaves_no_files_or_processes() {
    let terminal = Terminal::open();
    let home = terminal.dir.path().join("tmp");
    std::fs::create_dir(&home).unwrap();
    terminal.line(&format!("TMPDIR={} laneway demo; echo ended with $?", home.display()));
    let screen = terminal.wait("address", |screen| screen.contains("Ctrl-C ends it."));
    let url = screen.lines().find_map(|line| line.trim().strip_prefix("browser:   ")).unwrap();
    let url = url.trim_end_matches('/').to_owned();
    assert!(screen.contains(&format!("laneway top --url {url}")), "{screen}");

    let watching = Terminal::open();
    watching.line(&format!("laneway top --url {url}"));
    // Tasks wait for the slow provider.
    watching.wait("full provider", |screen| row(screen, "provider:llm").contains("██▒"));
    watching.wait("work for workers", |screen| row(screen, "external").contains("█"));
    watching.wait("percentiles", |screen| row(screen, "agent:coder").contains("s "));
    let screen = watching.screen();
    assert!(
        screen.lines().all(|line| line.chars().count() <= 80) && screen.lines().count() <= 24,
        "{screen}"
    );
    watching.keys(&["q"]);
    watching.wait("program of an agent, at any moment", |_| programs_of(&url) > 0);

    terminal.keys(&["C-c"]);
    terminal.wait("end", |screen| {
        screen.contains("Stopped; the demo has removed its files.") && screen.contains("ended with 0")
    });
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "the store is still there");
    assert_eq!(programs_of(&url), 0, "programs of agents still run");
}

/// The number of processes with the server's address in their environment, as programs of agents have.
fn programs_of(url: &str) -> usize {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok());
    let environments = pids.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments.filter(|environment| String::from_utf8_lossy(environment).contains(url)).count()
}

#[test]
fn a_conversation_on_a_terminal_goes_turn_by_turn() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("laneway.hcl"), "store = \"memory\"\nagent \"echo\" { echo = true }")
        .unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    let terminal = Terminal::open();
    terminal.line(&format!("laneway chat echo --session ann --url {}", served.url));
    terminal.wait("prompt", |screen| screen.trim_end().ends_with("echo>"));
    terminal.line("good morning");
    terminal.wait("answer", |screen| screen.contains("\ngood morning\n"));
    terminal.line("/queue collect cap:7");
    terminal.wait("directive", |screen| screen.contains("Queue set for this session: mode collect, cap 7."));
    terminal.keys(&["C-d"]);
    terminal.wait("end", |screen| screen.trim_end().ends_with('$'));
    terminal.line(&format!("laneway cancel --all --url {}", served.url));
    terminal.wait("question", |screen| screen.contains("Cancelling all waiting tasks? [y/N]"));
    terminal.line("n");
    terminal.wait("refusal", |screen| screen.contains("laneway: not confirmed; nothing has changed"));
    terminal.line(&format!("laneway cancel --all --url {}", served.url));
    terminal.line("y");
    terminal.wait("answer", |screen| screen.contains("No queued requests to cancel."));
}

#[test]
fn chat_shows_the_position_then_the_output_and_ctrl_c_cancels_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // The agent prints a line, and ends when the test writes to the gate.
    let config = format!(
        "store = \"memory\"\nserver {{ drain_grace = \"10ms\" }}\n\
         agent \"gate\" {{ command = [\"sh\", \"-c\", \"read -r asked; echo about $asked; cat {}\"] }}",
        gate.display()
    );
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    ask(dir.path(), &served.url, &["chat", "gate", "first", "--detach"]);
    let terminal = Terminal::open();
    terminal.line(&format!("laneway chat gate second --session ann --url {}", served.url));
    terminal.wait("position", |screen| screen.contains("queued #1"));
    std::fs::write(&gate, "one\n").unwrap();
    let screen = terminal.wait("start of the answer", |screen| screen.contains("about second\n"));
    assert!(!screen.contains("queued"), "{screen}");
    std::fs::write(&gate, "two\n").unwrap();
    terminal.wait("rest of the answer", |screen| screen.contains("about second\ntwo\n$"));

    terminal.line(&format!("laneway chat gate third --url {}", served.url));
    terminal.wait("start of the answer", |screen| screen.contains("about third\n"));
    terminal.keys(&["C-c"]);
    terminal.wait("prompt", |screen| screen.trim_end().ends_with("\n$"));
    let end = Instant::now() + PATIENCE;
    while ask(dir.path(), &served.url, &["status"]) != "No task runs or waits.\n" {
        assert!(Instant::now() < end, "the turn still runs");
    }
    let tasks = ask(dir.path(), &served.url, &["tasks"]);
    assert!(tasks.contains("by caller"), "{tasks}");
}

#[test]
fn many_dead_letters_are_redriven_with_a_bar_and_colours_are_for_terminals() {
    const DEAD_LETTERS: usize = 25;
    let dir = tempfile::tempdir().unwrap();
    let config = "store = \"memory\"\nlane \"flaky\" { max_queued = 20 }\nhandler \"broken\" { command = [\"false\"] }";
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    for _ in 0..DEAD_LETTERS {
        // Each waits for the one before, so that the lane refuses none.
        drop(
            laneway(dir.path())
                .args(["submit", "broken", "--lane", "flaky", "--wait"])
                .env("LANEWAY_URL", &served.url)
                .output(),
        );
    }
    let terminal = Terminal::open();
    terminal.line(&format!("export LANEWAY_URL={}; clear", served.url));
    terminal.line("laneway lanes pause flaky | head -1; laneway dlq redrive --lane flaky");
    terminal
        .wait("question", |screen| screen.contains(&format!("Redriving {DEAD_LETTERS} dead letters? [y/N]")));
    terminal.line("y");
    // The paused lane has no room for all of them.
    let is_waiting =
        |screen: &str| screen.contains(&format!("20/{DEAD_LETTERS}")) && screen.contains("waits for room");
    terminal.wait("bar", is_waiting);
    ask(dir.path(), &served.url, &["lanes", "resume", "flaky"]);
    terminal.wait("answer", |screen| screen.contains(&format!("Redrove {DEAD_LETTERS} dead letters.")));

    for (line, is_bold) in
        [("laneway lanes", true), ("NO_COLOR=1 laneway lanes", false), ("laneway lanes | cat", false)]
    {
        terminal.line(&format!("clear; {line}; echo {}", line.len()));
        terminal.wait("table", |screen| {
            screen.contains("LANE  ") && screen.lines().any(|end| end == line.len().to_string())
        });
        let screen = terminal.tmux(&["capture-pane", "-p", "-e"]);
        assert_eq!(screen.contains("\u{1b}[1mLANE"), is_bold, "{line}: {screen:?}");
    }
}

#[test]
fn a_status_line_follows_each_change() {
    let dir = tempfile::tempdir().unwrap();
    let config = "lane \"gpu\" {\nhandler = \"external\"\nmax_concurrency = 3\n}\nstore = \"memory\"";
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    let mut command = laneway(dir.path());
    command
        .args(["status", "--line", "--watch", "--lane", "gpu"])
        .env("LANEWAY_URL", &served.url)
        .stdout(Stdio::piped());
    let mut following = command.spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert_eq!(lines.next().unwrap(), "", "idle");
    ask(dir.path(), &served.url, &["submit", "render", "--lane", "gpu"]);
    assert_eq!(lines.next().unwrap(), "Agent: 0/3 (1 queued)");
    ask(dir.path(), &served.url, &["submit", "render", "--lane", "gpu"]);
    assert_eq!(lines.next().unwrap(), "Agent: 0/3 (2 queued)");
    // While the server is away, the line is empty.
    let address = served.url.trim_start_matches("http://").to_owned();
    drop(served);
    assert_eq!(lines.next().unwrap(), "");
    let served = serve(dir.path(), &address);
    ask(dir.path(), &served.url, &["submit", "render", "--lane", "gpu"]);
    assert_eq!(lines.next().unwrap(), "Agent: 0/3 (1 queued)");
    ask(dir.path(), &served.url, &["cancel", "--all", "--yes"]);
    assert_eq!(lines.next().unwrap(), "");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn top_names_the_slot_that_waits() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("laneway.hcl"), "store = \"memory\"\nserver { drain_grace = \"10ms\" }")
        .unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    let slot = |label: &str| {
        let body = format!("{{\"lanes\": [\"editor\"], \"label\": \"{label}\", \"lease_ms\": 600000}}");
        let mut curl = Command::new("curl");
        curl.args(["-s", "-H", "content-type: application/json", "-d", &body]);
        curl.arg(format!("{}/api/slots", served.url)).stdout(Stdio::null());
        curl
    };
    assert!(slot("Refactor").status().unwrap().success());
    let mut waiting = slot("Review").spawn().unwrap();
    let terminal = Terminal::open();
    terminal.line(&format!("laneway top --url {}", served.url));
    terminal.wait("label", |screen| {
        let found = screen.lines().find(|line| line.starts_with("Longest waiting"));
        found.is_some_and(|line| line.contains(": Review, "))
    });
    terminal.keys(&["q"]);
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}

#[test]
fn a_small_terminal_shows_fewer_columns_in_full_width() {
    let dir = tempfile::tempdir().unwrap();
    let config = "lane \"gpu\" { handler = \"external\" }\nserver { drain_grace = \"10ms\" }";
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    let words = ["submit", "render-every-frame-of-the-film", "1", "--lane", "gpu"];
    let accepted = ask(dir.path(), &served.url, &words);
    let id = accepted.split(':').next().unwrap();
    let terminal = Terminal::open();
    // A row of a table fits in one line of 80 characters.
    terminal.line(&format!("LANEWAY_URL={} laneway status", served.url));
    let screen = terminal.wait("table", |screen| screen.contains(id));
    let row_of_task = row(&screen, id);
    assert!(row_of_task.contains("queued #1  gpu") && row_of_task.ends_with('-'), "{screen}");
    assert!(!screen.contains("render-every-frame"), "{screen}");
    terminal.line("clear");
    terminal.line(&format!("laneway top --url {}", served.url));
    // A key before the lanes appear would select none of them.
    terminal.wait("lanes", |screen| screen.contains("REFUSED") && row(screen, "gpu").contains("0/1"));
    terminal.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    // The program may read a key that comes with the new size only with the next key, so wait for the new size first.
    terminal.wait("less", |screen| !screen.contains("REFUSED") && screen.contains("P99"));
    terminal.keys(&["End"]);
    let screen = terminal.wait("last lane", |screen| row(screen, "gpu").contains("0/1"));
    assert!(row(&screen, "LANE").ends_with("RUN   WAIT    P99"), "{screen}");
    assert!(row(&screen, "gpu").ends_with("0/1      1      -"), "{screen}");
    assert!(screen.lines().next().unwrap().ends_with("running 0/∞  waiting 1"), "{screen}");
    assert!(screen.contains("p r c l x  q quit"), "{screen}");
    terminal.keys(&["q"]);
}

#[test]
fn ctrl_c_does_not_cancel_a_submitted_task_and_prints_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let config = "lane \"gpu\" { handler = \"external\" }\nserver { drain_grace = \"10ms\" }";
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let served = serve(dir.path(), "127.0.0.1:0");
    let terminal = Terminal::open();
    terminal.line(&format!(
        "LANEWAY_URL={} laneway submit render 1 --lane gpu --wait; echo ended with $?",
        served.url
    ));
    terminal.wait("position", |screen| screen.contains("queued #1"));
    terminal.keys(&["C-c"]);
    let screen = terminal.wait("end", |screen| screen.contains("ended with 130"));
    let tasks = ask(dir.path(), &served.url, &["tasks", "--status", "queued", "--json"]);
    let tasks: serde_json::Value = serde_json::from_str(&tasks).unwrap();
    let id = tasks[0]["id"].as_str().unwrap();
    assert!(screen.contains(&format!("task {id} continues")), "{screen}");
}
