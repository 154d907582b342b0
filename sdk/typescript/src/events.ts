// Events of tasks, lanes and sessions: a union with the discriminant `event`.

import type { ClientEvent } from "./wire.js";

/** All events of a server. `id` is the position in the stream. A newer server may send others: skip unknown ones. */
export type LanewayEvent = ClientEvent & { id?: string; data: { task_id?: string; at?: string } };

/** Events of lanes, sessions and others. */
export type QueueEvent = Extract<
  LanewayEvent,
  {
    event:
      | "changed"
      | "pressure"
      | "idle"
      | "alert"
      | "paused"
      | "resumed"
      | "draining"
      | "drained"
      | "external_task_pending"
      | "external_task_completed"
      | "dead_lettered"
      | "message"
      | "schedule_fired"
      | "group"
      | "configured"
      | "gap"
      | "error";
  }
>;

/** Events of a task; `done` is the last one. */
export type TaskEvent = Exclude<LanewayEvent, QueueEvent>;

/** Reads the events of a stream (`text/event-stream`). */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<LanewayEvent, void, void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  let fields: Record<string, string> = {};
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line !== "") {
          take(fields, line);
        } else {
          if (fields.data !== undefined) yield told(fields);
          fields = {};
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function take(fields: Record<string, string>, line: string): void {
  const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
  if (name === "data") fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
  else if (name === "event" || name === "id") fields[name] = value;
}

function told(fields: Record<string, string>): LanewayEvent {
  const data: unknown = JSON.parse(fields.data ?? "{}");
  return { event: fields.event ?? "message", ...(fields.id ? { id: fields.id } : {}), data } as LanewayEvent;
}

/** The events of a stream that also says when it is open. */
export async function* eventsOf(told: AsyncGenerator<LanewayEvent | undefined, void, void>): AsyncGenerator<LanewayEvent, void, void> {
  for await (const event of told) if (event !== undefined) yield event;
}

/**
 * Events, for `for await`. Await it first to open it: nothing that happens later is missed. Leaving the loop closes it.
 */
export class EventStream implements AsyncIterable<LanewayEvent>, PromiseLike<AsyncGenerator<LanewayEvent, void, void>> {
  readonly #told: AsyncGenerator<LanewayEvent | undefined, void, void>;
  readonly #events: AsyncGenerator<LanewayEvent, void, void>;
  #opened: Promise<AsyncGenerator<LanewayEvent, void, void>> | undefined;

  constructor(told: AsyncGenerator<LanewayEvent | undefined, void, void>) {
    this.#told = told;
    this.#events = eventsOf(told);
  }

  /** Opens the stream, and resolves to its events. */
  open(): Promise<AsyncGenerator<LanewayEvent, void, void>> {
    // The first item says that the stream is open.
    this.#opened ??= this.#told.next().then(() => this.#events);
    return this.#opened;
  }

  then<A = AsyncGenerator<LanewayEvent, void, void>, B = never>(
    done?: ((events: AsyncGenerator<LanewayEvent, void, void>) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.open().then(done, failed);
  }

  /** The next event. */
  next(): Promise<IteratorResult<LanewayEvent, void>> {
    return this.#events.next();
  }

  /** Closes the stream. */
  async return(): Promise<IteratorResult<LanewayEvent, void>> {
    // An iterator that has not begun does not close what it reads.
    await this.#told.return();
    return this.#events.return();
  }

  [Symbol.asyncIterator](): AsyncGenerator<LanewayEvent, void, void> {
    return this.#events;
  }
}
