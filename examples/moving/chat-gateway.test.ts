import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Laneway } from "laneway";
import { ChatGateway, configFor, turnWorker } from "./chat-gateway.js";

const CHATS = 50;

test("fifty chats interrupt their turns: never two at once, and no stale answer", async (t) => {
  const server = await Laneway.local({ config: configFor(CHATS) });
  t.after(() => server.close());
  const client = server.client();
  const [inside, overlaps] = [new Map<string, number>(), [] as string[]];
  const begun = new Map<string, () => void>();
  const worker = turnWorker(
    client,
    async (chat, text, signal) => {
      const turns = (inside.get(chat) ?? 0) + 1;
      inside.set(chat, turns);
      if (turns > 1) overlaps.push(chat);
      begun.get(`${chat} ${text}`)?.();
      if (text === "first") {
        await once(signal, "abort");
        // The agent takes a moment to stop, and gives its answer all the same.
        await setTimeout(20);
      }
      inside.set(chat, inside.get(chat)! - 1);
      return `answer to ${text}`;
    },
    { concurrency: CHATS, pollMs: 500, log: () => undefined },
  );
  const running = worker.run();

  const answers: string[] = [];
  let [all, done] = [new Promise<void>(() => undefined), () => {}];
  all = new Promise((resolve) => (done = resolve));
  const gateway = await ChatGateway.open(client, (chat, answer) => {
    if (answers.push(`${chat}: ${answer}`) === CHATS) done();
  });
  const chats = Array.from({ length: CHATS }, (_, n) => `chat-${n}`);
  const talk = async (chat: string) => {
    const started = new Promise<void>((resolve) => begun.set(`${chat} first`, resolve));
    const from = `${chat}-owner`;
    // A turn of a worker waits until the worker has claimed it.
    assert.equal(await gateway.receive({ chat, from, id: `${chat}-1`, text: "first" }), "queued");
    await started;
    assert.equal(await gateway.receive({ chat, from, id: `${chat}-2`, text: "second" }), "interrupted");
    // The channel sends it once more.
    assert.equal(await gateway.receive({ chat, from, id: `${chat}-2`, text: "second" }), "duplicate");
  };
  await Promise.all(chats.map(talk));
  await all;
  worker.drain();
  await running;
  gateway.close();
  assert.deepEqual(overlaps, []);
  assert.deepEqual(answers.sort(), chats.map((chat) => `${chat}: answer to second`).sort());
});
