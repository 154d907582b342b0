// A gateway between chats and an agent: one turn of a chat at a time. A message that arrives during a turn interrupts it.
//
// The worker may run in another process. The gateway delivers only answers that the server has accepted, so the answer of an
// interrupted turn goes nowhere, even if its agent finishes it.

import { type Client, type LanewayEvent, Worker, type WorkerOptions } from "laneway";

const AGENT = "assistant";

/** The settings of the server: how many chats the agent answers at once. */
export const configFor = (turns: number): object => ({
  lane: { main: { max_concurrency: turns } },
  agent: { [AGENT]: { external: true, max_concurrency: turns, max_queued: 10 * turns } },
});

export interface Inbound {
  chat: string;
  /** The id of the message in its channel. A message that arrives twice is answered once. */
  id: string;
  from: string;
  text: string;
}

/** What a turn gets. */
interface Turn {
  text: string;
  to: string;
}

export class ChatGateway {
  readonly #stop = new AbortController();

  private constructor(
    readonly client: Client,
    /** Sends an answer to its chat. */
    readonly deliver: (chat: string, answer: string) => void,
  ) {}

  static async open(client: Client, deliver: (chat: string, answer: string) => void): Promise<ChatGateway> {
    const gateway = new ChatGateway(client, deliver);
    const events = await client.events({ lane: `agent:${AGENT}` }, { signal: gateway.#stop.signal });
    void gateway.#listen(events);
    return gateway;
  }

  /** Passes on a message from a chat. Resolves to what became of it, such as `started` or `interrupted`. */
  async receive({ chat, id, from, text }: Inbound): Promise<string> {
    const message = { agent: AGENT, channel: "web", to: chat, sender: from, message_id: id, mode: "interrupt" };
    return (await this.client.session(`web:${chat}`).send(text, message)).outcome;
  }

  async #listen(events: AsyncIterable<LanewayEvent>): Promise<void> {
    try {
      for await (const event of events) {
        if (event.event !== "completed") continue;
        const { chat, answer } = event.data.result as { chat: string; answer: string };
        this.deliver(chat, answer);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  close(): void {
    this.#stop.abort();
  }
}

/** A worker that runs the turns. `answer` should end early when its signal is aborted; the next turn waits for that. */
export function turnWorker(
  client: Client,
  answer: (chat: string, text: string, signal: AbortSignal) => Promise<string>,
  options: Omit<WorkerOptions, "lanes"> = {},
): Worker {
  const worker = new Worker(client, { ...options, lanes: [`agent:${AGENT}`] });
  return worker.handler<Turn>(`agent:${AGENT}`, async ({ payload: { to, text }, signal }) => ({
    chat: to,
    answer: await answer(to, text, signal),
  }));
}
