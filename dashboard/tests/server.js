// A real server, started on a free port for one test file, with real traffic.

import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DELAY_MAX_MS, slowDown } from "./slow.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PROGRAM = process.env.LANEWAY_PROGRAM
  ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "debug", "laneway");

/** What takes longer than this does not happen. It takes some milliseconds where nothing else is going on; machines that run tests are busy. */
export const WAIT_MAX_MS = 60_000;

export const CONFIG = `
server { drain_grace = "100ms" }

lane "global"       { max_concurrency = 10 }
lane "main"         { max_concurrency = 4 }
lane "provider:llm" { max_concurrency = 8 }
# No task gets more urgent while a slow machine goes through the tests.
lane "tools" {
  max_concurrency = 2
  max_queued = 20000
  ageing = "off"
}
lane "quay"         { ageing = "off" }
lane "agent:*"      { wait_timeout = "1h" }

agent "echo"    { echo = true }
agent "coder" {
  command = ["sh", "-c", "echo thinking; exec sleep 600"]
  lanes = ["main", "provider:llm"]
}
agent "builder" { external = true }
# It answers once a message has been passed into its turn.
agent "listener" {
  protocol = "jsonl"
  command = ["sh", "-c", "read -r asked; read -r passed; echo '{\\"type\\": \\"result\\", \\"result\\": \\"heard\\"}'"]
}
agent "teller" {
  command = ["sh", "-c", "echo once upon a time; exec sleep 600"]
  lanes = ["story"]
}
agent "writer" {
  command = ["sh", "-c", "exec sleep 600"]
  max_concurrency = 8
}

handler "breaks" { command = ["sh", "-c", "echo it broke >&2; exit 3"] }
handler "slow"   { command = ["sh", "-c", "exec sleep 600"] }

schedule "standup" {
  cron = "0 9 * * 1-5"
  timezone = "Europe/Berlin"
  agent = "echo"
  message = "Post the standup"
}
`;

/** Work of every kind: what runs, what waits, what is over, what broke. */
export async function traffic(server) {
  for (const message of ["Refactor the parser", "Add a test", "Read the log", "Write the changelog"]) await server.chat("coder", message);
  for (let index = 0; index < 9; index += 1) await server.task("slow", ["tools"], { index }, { priority: index % 4 });
  for (const lane of ["main", "checks"]) await server.task("breaks", [lane], { lane }, { retry: { strategy: "none" } });
  for (const name of ["ann", "bob"]) await server.ask("POST", "/api/agents/echo/chat", { message: `hello ${name}`, session: name });
  await server.chat("builder", "Build the release");
  await server.chat("builder", "Build the manual");
  await server.ask("POST", "/api/claim", { worker: "worker-1", lanes: ["agent:builder"], max: 1, lease_ms: 3600000 });
  for (const text of ["Plan the trip", "By train", "With a dog"]) {
    await server.ask("POST", "/api/sessions/trip/messages", { agent: "writer", text, sender_name: "Ann", channel: "web" });
  }
  await server.ask("POST", "/api/lanes/provider%3Allm/pause");
  for (let index = 0; index < 3; index += 1) await server.chat("coder", "One too many").catch((error) => { if (error.status !== 429) throw error; });
  await server.until("/api/dead-letters", ({ items }) => items.length === 2);
}

/** One running server. `url` is where pages find it, which is slow when the tests run slowly; `ask` asks it directly. */
export class Server {
  constructor(folder) {
    this.folder = folder;
    this.listen = "127.0.0.1:0";
    this.token = null;
  }

  static async start({ config = CONFIG, store = "memory" } = {}) {
    const folder = await mkdtemp(join(tmpdir(), "laneway-dashboard-"));
    await writeFile(join(folder, "laneway.hcl"), config);
    const server = new Server(folder);
    server.store = store === "memory" ? store : join(folder, "data");
    await server.run();
    if (DELAY_MAX_MS > 0) {
      server.slow = await slowDown(Number(new URL(server.direct).port));
      server.url = `http://${server.slow.address}`;
    }
    return server;
  }

  /** Starts the program; again on the same port when it has run before. */
  async run() {
    const given = ["serve", "--config", join(this.folder, "laneway.hcl"), "--listen", this.listen, "--store", this.store];
    this.process = spawn(PROGRAM, given, { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    this.process.stderr.on("data", (text) => { said += text; });
    this.direct = await new Promise((resolve, reject) => {
      this.process.stdout.on("data", (text) => {
        said += text;
        const found = /listens on (http:\/\/(\S+))/.exec(said);
        if (found) {
          this.listen = found[2];
          resolve(found[1]);
        }
      });
      this.process.on("error", reject);
      this.process.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    });
    this.url ??= this.direct;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    const late = setTimeout(() => this.process.kill("SIGKILL"), WAIT_MAX_MS);
    await ended;
    clearTimeout(late);
  }

  async end() {
    await this.stop();
    await this.slow?.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  async ask(method, path, body, headers = {}) {
    const token = this.token ? { authorization: `Bearer ${this.token}` } : {};
    const request = { method, headers: { ...token, ...headers } };
    if (body !== undefined) {
      request.body = JSON.stringify(body);
      request.headers["content-type"] = "application/json";
    }
    const response = await fetch(this.direct + path, request);
    const text = await response.text();
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status} ${text}`), { status: response.status });
    return text.startsWith("{") ? JSON.parse(text) : text;
  }

  /** Asks an agent without waiting for the answer. */
  chat(agent, message, more = {}) {
    return this.ask("POST", `/api/agents/${agent}/chat`, { message, ...more }, { prefer: "respond-async" });
  }

  task(kind, lanes, payload = {}, more = {}) {
    return this.ask("POST", "/api/tasks", { kind, lanes, payload, ...more });
  }

  /** Submits many tasks of one kind, without waiting for the answer to one before the next is sent. */
  async fill(lane, total, sockets = 4) {
    const body = JSON.stringify({ kind: "slow", lanes: [lane], payload: {} });
    const request = `POST /api/tasks HTTP/1.1\r\nhost: ${this.listen}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const { hostname, port } = new URL(this.direct);
    const share = Math.ceil(total / sockets);
    const one = () => new Promise((resolve, reject) => {
      const socket = net.connect(Number(port), hostname);
      let rest = "";
      let accepted = 0;
      socket.on("error", reject);
      socket.on("data", (bytes) => {
        const parts = (rest + bytes).split("HTTP/1.1 ");
        rest = `HTTP/1.1 ${parts.pop()}`;
        accepted += parts.filter((part) => part.startsWith("202")).length;
        const refused = parts.find((part) => /^[45]/.test(part));
        if (refused) reject(new Error(refused));
        // The last answer is never followed by another.
        if (accepted + (/^HTTP\/1.1 202[^]*}$/.test(rest) ? 1 : 0) < share) return;
        socket.destroy();
        resolve();
      });
      socket.write(request.repeat(share));
    });
    await Promise.all(Array.from({ length: sockets }, one));
  }

  /** Waits until what is asked for fits. */
  async until(path, fits) {
    const end = Date.now() + WAIT_MAX_MS;
    for (;;) {
      const found = await this.ask("GET", path);
      if (fits(found)) return found;
      if (Date.now() > end) throw new Error(`${path} never fitted: ${JSON.stringify(found).slice(0, 800)}`);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }
}
