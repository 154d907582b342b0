// Clients with sessions behind a balancer: any replica serves any session.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { cluster } from "./cluster.mjs";

let running;
before(async () => (running = await cluster()));
after(() => running?.stop());

const patience = { timeout: 180_000 };

async function connected(use) {
  const headers = { authorization: `Bearer ${running.token}` };
  const transport = new StreamableHTTPClientTransport(new URL("/mcp", running.url), { requestInit: { headers } });
  const client = new Client({ name: "tests", version: "1" });
  await client.connect(transport, patience);
  try {
    assert.ok(transport.sessionId, "the client has a session");
    return await use(client, transport);
  } finally {
    await client.close();
  }
}

const chat = (client, message, options) =>
  client.callTool({ name: "chat_with_agent", arguments: { agent_name: "echo", message } }, undefined, { ...patience, ...options });

test("every call is answered under round robin, and while replicas restart", async () => {
  const rounds = { before: 12, after: 12 };
  let restarted = false;
  const restart = running.restart().finally(() => (restarted = true));
  const clients = Array.from({ length: 4 }, (_, number) =>
    connected(async (client) => {
      let answered = 0;
      const ask = async () => {
        const message = `${number}-${answered}`;
        const answer = await chat(client, message);
        assert.equal(answer.content[0].text, message, JSON.stringify(answer));
        const { tools } = await client.listTools(undefined, patience);
        assert.equal(tools.length, 8);
        answered += 1;
      };
      while (answered < rounds.before || !restarted) await ask();
      for (let left = rounds.after; left > 0; left -= 1) await ask();
      return answered;
    }),
  );
  const answered = await Promise.all(clients);
  await restart;
  assert.ok(answered.every((count) => count >= rounds.before + rounds.after), `${answered}`);
});

test("a call is cancelled at the replica that answers it", () =>
  connected(async (client) => {
    for (const message of ["cancel-1", "cancel-2", "cancel-3"]) {
      const cancelling = new AbortController();
      let report;
      const begun = new Promise((resolve) => (report = resolve));
      const call = client.callTool({ name: "chat_with_agent", arguments: { agent_name: "gate", message } }, undefined, {
        ...patience,
        signal: cancelling.signal,
        onprogress: ({ message }) => report(message),
      });
      call.catch(() => {});
      assert.equal(await begun, "running");
      const queue = await client.callTool({ name: "queue_status", arguments: { agent_name: "gate" } }, undefined, patience);
      cancelling.abort("no longer wanted");
      await assert.rejects(call);
      assert.equal(await running.ended(queue.structuredContent.current_execution.id), "cancelled");
    }
  }));

test("an ended session is unknown at every replica", () =>
  connected(async (client, transport) => {
    const session = transport.sessionId;
    await transport.terminateSession();
    const headers = {
      authorization: `Bearer ${running.token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-session-id": session,
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    // The other replicas hear of the end soon after.
    for (let refused = 0; refused < 6; ) {
      const { status } = await fetch(new URL("/mcp", running.url), { method: "POST", headers, body });
      assert.ok(status === 404 || (status === 200 && refused < 3), `${status}`);
      refused = status === 404 ? refused + 1 : 0;
    }
  }));
