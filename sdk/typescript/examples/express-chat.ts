// A chat handler behind a lane: a limited number of turns at once, and one at a time for each user.
//
//   LANEWAY_URL=http://127.0.0.1:7717 node express-chat.js

import { setTimeout } from "node:timers/promises";
import express from "express";
import { AtCapacity, Client, WaitTimeout } from "../src/index.js";

const lanes = new Client(process.env.LANEWAY_URL ?? "http://127.0.0.1:7717");
const app = express();
app.use(express.json());

/** A stand-in for the call of a model. */
async function model(message: string, signal: AbortSignal): Promise<string> {
  await setTimeout(200, undefined, { signal });
  return message.toUpperCase();
}

app.post("/chat", async (request, response) => {
  const { user, message } = request.body as { user: string; message: string };
  try {
    const answer = await lanes.withSlot(["main"], { session: user, wait_ms: 20_000 }, (slot) => model(message, slot.signal));
    response.json({ answer });
  } catch (error) {
    if (!(error instanceof AtCapacity || error instanceof WaitTimeout)) throw error;
    response.status(429).set("retry-after", String(Math.ceil(error.retryAfter ?? 5))).json({ error: error.message });
  }
});

const server = app.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  const address = server.address();
  if (address !== null && typeof address === "object") console.log(`http://127.0.0.1:${address.port}`);
});
process.once("SIGTERM", () => server.close());
