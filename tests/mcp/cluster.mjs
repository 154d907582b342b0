// Three replicas on one Redis, behind an nginx that sends each request to the next one.
//
// As a program, it prints its address and a token, and restarts the replicas for each line of its input.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

const PROGRAM = process.env.LANEWAY_BINARY;
const REPLICAS = 3;

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Waits until a condition holds. Only a failure reaches the limit. */
async function until(what, holds) {
  for (const end = Date.now() + 120_000; Date.now() < end; await pause(10)) {
    if (await holds().catch(() => false)) return;
  }
  throw new Error(`never: ${what}`);
}

const nginx = (folder, port, replicas) => `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/nginx.log;
events {}
http {
  access_log ${folder}/access.log;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  upstream replicas {
    ${replicas.map((replica) => `server 127.0.0.1:${replica} max_fails=0;`).join("\n    ")}
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 1h;
      proxy_next_upstream error timeout http_503 non_idempotent;
    }
  }
}
`;

const config = (folder, number) => `
server {
  state = "${folder}/state-${number}"
  mcp_answer_within = "10m"
}
lane "main" { max_concurrency = 100 }
agent "echo" {
  echo = true
  max_concurrency = 100
  max_queued = 100
}
agent "gate" { command = ["sh", "gate.sh"] }
`;

export async function cluster() {
  const folder = mkdtempSync(join(tmpdir(), "laneway-cluster-"));
  const children = new Set();
  const start = (program, words) => {
    const child = spawn(program, words, { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
    children.add(child);
    child.once("exit", () => children.delete(child));
    return child;
  };
  const stop = () => {
    children.forEach((child) => child.kill("SIGKILL"));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    copyFileSync(join(import.meta.dirname, "gate.sh"), join(folder, "gate.sh"));
    const [redis, proxy, ...ports] = await Promise.all(Array.from({ length: REPLICAS + 2 }, freePort));
    const store = start("redis-server", ["--port", redis, "--bind", "127.0.0.1", "--save", ""]);
    await until("Redis is ready", async () => {
      execFileSync("redis-cli", ["-p", redis, "ping"], { stdio: ["ignore", "ignore", "ignore"] });
      return true;
    });
    store.stdout.resume();

    const serve = async (number) => {
      const words = ["serve", "--config", `replica-${number}.hcl`, "--listen", `127.0.0.1:${ports[number]}`];
      const child = start(PROGRAM, [...words, "--store", `redis://127.0.0.1:${redis}`, "--log", "error"]);
      await new Promise((resolve) => createInterface({ input: child.stdout }).on("line", resolve));
      return child;
    };
    for (let number = 0; number < REPLICAS; number += 1) {
      mkdirSync(join(folder, `state-${number}`));
      writeFileSync(join(folder, `replica-${number}.hcl`), config(folder, number));
    }
    // The token is made at one replica, and the log passes it on.
    const words = ["token", "create", "--config", "replica-0.hcl", "--subject", "tests", "--scope", "admin"];
    const token = execFileSync(PROGRAM, words, { cwd: folder, encoding: "utf8" }).trim();
    const replicas = [];
    for (let number = 0; number < REPLICAS; number += 1) replicas.push(await serve(number));
    const headers = { authorization: `Bearer ${token}` };
    for (const port of ports) {
      await until("each replica asks for the token", async () => {
        const [open, known] = await Promise.all([{}, headers].map((headers) => fetch(`http://127.0.0.1:${port}/api/me`, { headers })));
        return open.status === 401 && known.status === 200;
      });
    }
    writeFileSync(join(folder, "nginx.conf"), nginx(folder, proxy, ports));
    start("nginx", ["-c", join(folder, "nginx.conf"), "-p", folder, "-e", join(folder, "nginx.log")]);
    const url = `http://127.0.0.1:${proxy}`;
    await until("nginx is ready", async () => (await fetch(`${url}/healthz`)).ok);
    return {
      url,
      token,
      stop,
      open: (gate) => writeFileSync(join(folder, `${gate}.open`), ""),
      /** Waits for the end of a task, and returns its status. */
      async ended(task) {
        const events = await (await fetch(`${url}/api/tasks/${task}/events`, { headers })).text();
        return [...events.matchAll(/^event: (\w+)$/gm)].map((found) => found[1]).at(-2);
      },
      /** Restarts one replica after another, as an upgrade does, as often as LANEWAY_RESTARTS says. */
      async restart() {
        const restarts = Number(process.env.LANEWAY_RESTARTS ?? 0) * REPLICAS;
        for (let restart = 0; restart < restarts; restart += 1) {
          const number = restart % REPLICAS;
          const gone = once(replicas[number], "exit");
          replicas[number].kill("SIGTERM");
          await gone;
          replicas[number] = await serve(number);
        }
      },
    };
  } catch (error) {
    stop();
    throw error;
  }
}

if (process.argv[1] === import.meta.filename) {
  const running = await cluster();
  process.once("exit", running.stop);
  console.log(JSON.stringify({ url: running.url, token: running.token }));
  for await (const _ of createInterface({ input: process.stdin })) {
    await running.restart();
    console.log("restarted");
  }
  process.exit();
}
