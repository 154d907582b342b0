// Agents: asking them, and how their lines stand.

import type { LanewayEvent } from "./events.js";
import { type CallOptions, type Transport, pathOf } from "./transport.js";
import type { AcceptedTurn, AgentView, ChatAnswer, ChatRequest, ClearedQueue, QueueView, ReleasedQueue } from "./wire.js";

export interface TurnOptions extends Omit<ChatRequest, "message">, CallOptions {
  /** The agent that asks. */
  sourceAgent?: string;
  /** The id of the running task that asks and waits: it lends its slots. */
  parent?: string;
  /** The run goes on when this caller has gone. */
  detach?: boolean;
  /** Asking twice is asking once, and the request is repeated by itself where that helps. */
  idempotencyKey?: string;
}

/** A turn that is about to be asked for: await it for the answer, or iterate over it for the events. */
export class Turn implements PromiseLike<ChatAnswer>, AsyncIterable<LanewayEvent> {
  #answer: Promise<ChatAnswer> | undefined;

  constructor(
    readonly transport: Transport,
    readonly path: string,
    readonly message: string,
    readonly options: TurnOptions,
  ) {}

  #request() {
    const { sourceAgent, parent, detach, idempotencyKey, signal, traceparent, ...rest } = this.options;
    const headers: Record<string, string | undefined> = {
      "x-source-agent": sourceAgent,
      "x-laneway-parent": parent,
      "x-detach": detach ? "true" : undefined,
      "idempotency-key": idempotencyKey,
    };
    return { method: "POST" as const, body: { message: this.message, ...rest }, headers, signal, traceparent };
  }

  /** Asks, waits for the end, and resolves to the answer. */
  answer(): Promise<ChatAnswer> {
    this.#answer ??= this.transport.read<ChatAnswer>(this.path, { ...this.#request(), waits: true });
    return this.#answer;
  }

  /** Asks, and tells what happens from acceptance on. Leaving the loop cancels the run, unless it is detached. */
  events(): AsyncGenerator<LanewayEvent, void, void> {
    return this.transport.stream(this.path, this.#request());
  }

  /** Asks, and resolves when it is accepted. */
  accepted(): Promise<AcceptedTurn> {
    const request = this.#request();
    const headers = { ...request.headers, prefer: "respond-async" };
    return this.transport.read<AcceptedTurn>(this.path, { ...request, headers });
  }

  then<A = ChatAnswer, B = never>(
    done?: ((answer: ChatAnswer) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.answer().then(done, failed);
  }

  catch<B = never>(failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<ChatAnswer | B> {
    return this.answer().catch(failed);
  }

  finally(ended?: (() => void) | null): Promise<ChatAnswer> {
    return this.answer().finally(ended);
  }

  [Symbol.asyncIterator](): AsyncIterator<LanewayEvent> {
    return this.events();
  }
}

/** What can run a turn. */
export class Agent {
  constructor(
    readonly transport: Transport,
    readonly name: string,
  ) {}

  /** One turn of a conversation: await it for the answer, or iterate over it for the events. */
  chat(message: string, options: TurnOptions = {}): Turn {
    return new Turn(this.transport, pathOf("agents", this.name, "chat"), message, options);
  }

  /** One stateless task, parallel to all others; to be awaited or iterated over like a turn. */
  task(message: string, options: TurnOptions = {}): Turn {
    return new Turn(this.transport, pathOf("agents", this.name, "task"), message, options);
  }

  /** One turn of a conversation that is not waited for. */
  submit(message: string, options: TurnOptions = {}): Promise<AcceptedTurn> {
    return this.chat(message, options).accepted();
  }

  /** How the agent stands. */
  get(options: CallOptions = {}): Promise<AgentView> {
    return this.transport.read(pathOf("agents", this.name), options);
  }

  /** How its line stands. */
  queue(options: CallOptions = {}): Promise<QueueView> {
    return this.transport.read(pathOf("agents", this.name, "queue"), options);
  }

  /** Cancels what waits in its line. */
  clear(options: CallOptions = {}): Promise<ClearedQueue> {
    return this.transport.read(pathOf("agents", this.name, "queue", "clear"), { ...options, method: "POST" });
  }

  /** Takes its slots away from whatever runs. The old runs may still be going; what they report is refused. */
  release(options: CallOptions = {}): Promise<ReleasedQueue> {
    return this.transport.read(pathOf("agents", this.name, "queue", "release"), { ...options, method: "POST" });
  }
}
