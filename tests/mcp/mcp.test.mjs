// The official TypeScript client against a real server, over both transports.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { PROGRAM, serve } from "./serving.mjs";

let server;
let impatient;
before(async () => {
  [server, impatient] = await Promise.all([serve(), serve({ isImpatient: true })]);
});
after(() => {
  server?.stop();
  impatient?.stop();
});

/** How long a test waits. An idle machine needs some milliseconds; only a failure reaches it. */
const patience = { timeout: 180_000 };

function transport(kind, { url }, token) {
  if (kind === "stdio") {
    const env = { PATH: process.env.PATH, LANEWAY_TOKEN: token };
    return new StdioClientTransport({ command: PROGRAM, args: ["mcp", "--url", url], env });
  }
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  return new StreamableHTTPClientTransport(new URL("/mcp", url), { requestInit });
}

async function connected(kind, subject, use, where = server) {
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(transport(kind, where, where.tokens[subject] ?? subject), patience);
  try {
    // The client checks answers of tools against their schemas from here on.
    await client.listTools(undefined, patience);
    return await use(client);
  } finally {
    await client.close();
  }
}

/** A running call. `status` is its first progress message. */
function call(client, agent, message, options = {}) {
  let report;
  const status = new Promise((resolve) => (report = resolve));
  const params = { name: "chat_with_agent", arguments: { agent_name: agent, message } };
  const onprogress = (progress) => report(progress.message);
  const result = client.callTool(params, undefined, { onprogress, ...patience, ...options });
  result.catch(() => {});
  return { status, result };
}

const tool = (client, name, args) => client.callTool({ name, arguments: args }, undefined, patience);

for (const [kind, gate] of [["http", "gate-1"], ["stdio", "gate-2"]]) {
  describe(kind, () => {
    test("tools are listed in order and their answers match their schemas", () =>
      connected(kind, "admin", async (client) => {
        const { tools } = await client.listTools();
        const names = tools.map((listed) => listed.name).join(" ");
        assert.equal(
          names,
          "chat_with_agent get_task list_agents queue_status cancel_task explain_task clear_queue release_agent",
        );
        const answer = await tool(client, "chat_with_agent", { agent_name: "echo", message: "hello" });
        assert.equal(answer.structuredContent.response, "hello");
        const task_id = answer.structuredContent.execution.id;
        for (const [name, args] of [
          ["get_task", { task_id }],
          ["explain_task", { task_id }],
          ["cancel_task", { task_id }],
          ["list_agents", {}],
          ["queue_status", { agent_name: "echo" }],
          ["clear_queue", { agent_name: "echo" }],
          ["release_agent", { agent_name: "echo" }],
        ]) {
          assert.ok(!(await tool(client, name, args)).isError, name);
        }
      }));

    test("a full lane answers busy with the computed time", () =>
      connected(kind, "user", async (client) => {
        const [first, second] = [`busy1${kind}`, `busy2${kind}`];
        const running = call(client, gate, first);
        assert.equal(await running.status, "running");
        const waiting = call(client, gate, second);
        assert.equal(await waiting.status, "position 1 in line");
        const refused = await tool(client, "chat_with_agent", { agent_name: gate, message: "third" });
        assert.deepEqual(JSON.parse(refused.content[0].text), refused.structuredContent);
        const { details, ...busy } = refused.structuredContent;
        assert.ok(refused.isError);
        assert.deepEqual(busy, {
          status: "agent_busy",
          agent: gate,
          queue_status: "queue_full",
          retry_after_seconds: details.retry_after,
          message: details.detail,
        });
        server.open(first);
        server.open(second);
        assert.equal((await running.result).content[0].text, `answer of ${first}`);
        assert.equal((await waiting.result).content[0].text, `answer of ${second}`);
      }));

    test("a long call is answered with its task, and the same call joins it", () =>
      connected(kind, "user", async (client) => {
        const message = `long${kind}`;
        const going = await tool(client, "chat_with_agent", { agent_name: gate, message });
        assert.equal(going.structuredContent.status, "still_going");
        const { task_id } = going.structuredContent;
        const again = call(client, gate, message);
        assert.equal(await again.status, "running");
        impatient.open(message);
        assert.equal((await again.result).structuredContent.execution.id, task_id);
        await impatient.ended(task_id);
        const found = await tool(client, "get_task", { task_id });
        assert.equal(found.structuredContent.result, `answer of ${message}`);
        assert.equal(impatient.runs(message), 1);
      }, impatient));

    test("a cancelled call cancels its task", () =>
      connected(kind, "user", async (client) => {
        const cancelling = new AbortController();
        const running = call(client, gate, `cancel${kind}`, { signal: cancelling.signal });
        assert.equal(await running.status, "running");
        const queue = await tool(client, "queue_status", { agent_name: gate });
        cancelling.abort("no longer wanted");
        await assert.rejects(running.result);
        assert.equal(await server.ended(queue.structuredContent.current_execution.id), "cancelled");
      }));

    test("a token allows what its scopes allow, and a wrong one nothing", async () => {
      await connected(kind, "reader", async (client) => {
        const { tools } = await client.listTools();
        assert.equal(tools.map((listed) => listed.name).join(" "), "get_task list_agents queue_status explain_task");
        const refused = await tool(client, "chat_with_agent", { agent_name: "echo", message: "x" });
        assert.equal(refused.isError && refused.structuredContent.code, "FORBIDDEN");
      });
      await assert.rejects(connected(kind, "tk_wrong.secret", () => {}), /token/);
    });

    test("the error of an unknown argument names the known ones", () =>
      connected(kind, "user", async (client) => {
        const refused = await tool(client, "chat_with_agent", { agent_name: "echo", message: "x", to: "y" });
        assert.ok(refused.isError);
        assert.match(refused.content[0].text, /expected one of `agent_name`, `message`, `session`, `parallel`/);
      }));
  });
}
