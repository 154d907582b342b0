// Agents: turns, stateless tasks, and the agent's lane.

import type { LanewayEvent } from "./events.js";
import type { LaneSettings } from "./lanes.js";
import { asChild } from "./running.js";
import { type CallOptions, type Transport, pathOf } from "./transport.js";
import type { AcceptedTurn, AgentView, ChatAnswer, ChatRequest, ClearedQueue, QueueView, ReleasedQueue } from "./wire.js";

export interface TurnOptions extends Omit<ChatRequest, "message">, CallOptions {
  /** The agent that sends the request. */
  sourceAgent?: string;
  /** The id of the parent, which lends its slots while it waits. Default: the task of the worker's handler that asks. */
  parent?: string;
  /** The turn continues when this caller disconnects. */
  detach?: boolean;
  /** The idempotency key. With it, a repeated request starts nothing, and the client repeats the request where that helps. */
  idempotencyKey?: string;
}

/** A request for a turn: await it for the answer, or iterate over it for the events. */
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
      ...asChild(this.transport.addresses, parent),
      "x-detach": detach ? "true" : undefined,
      "idempotency-key": idempotencyKey,
    };
    return { method: "POST" as const, body: { message: this.message, ...rest }, headers, signal, traceparent };
  }

  /** Sends the request, waits for the end, and resolves to the answer. */
  answer(): Promise<ChatAnswer> {
    this.#answer ??= this.transport.read<ChatAnswer>(this.path, { ...this.#request(), waits: true });
    return this.#answer;
  }

  /** Sends the request, and yields events from acceptance on. Leaving the loop cancels the turn, unless it is detached. */
  events(): AsyncGenerator<LanewayEvent, void, void> {
    return this.transport.stream(this.path, this.#request());
  }

  /** Sends the request, and resolves when the server has accepted it. */
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

/** What runs an agent's turns, and the settings of its lane. */
export interface AgentSettings extends LaneSettings {
  /** The HTTP service that answers. */
  url?: string | null;
  /** Workers answer. */
  external?: boolean;
  /** The agent answers with the message. */
  echo?: boolean;
  /** Further lanes that its turns need. */
  lanes?: string[] | null;
}

/** An agent. */
export class Agent {
  constructor(
    readonly transport: Transport,
    readonly name: string,
  ) {}

  /** One turn of a session: await it for the answer, or iterate over it for the events. */
  chat(message: string, options: TurnOptions = {}): Turn {
    return new Turn(this.transport, pathOf("agents", this.name, "chat"), message, options);
  }

  /** One task without a session, in parallel with others. Await it or iterate over it like a turn. */
  task(message: string, options: TurnOptions = {}): Turn {
    return new Turn(this.transport, pathOf("agents", this.name, "task"), message, options);
  }

  /** Requests one turn of a session, without waiting for its end. */
  submit(message: string, options: TurnOptions = {}): Promise<AcceptedTurn> {
    return this.chat(message, options).accepted();
  }

  /** Creates the agent, which all replicas know, also after a restart. It needs one of `url`, `external` and `echo`. */
  create(settings: AgentSettings, options: CallOptions = {}): Promise<AgentView> {
    const body = { name: this.name, ...settings };
    return this.transport.read(pathOf("agents"), { ...options, method: "POST", body });
  }

  /** Changes the given settings of an agent that `create` made, and keeps the others. `null` removes a setting. */
  change(settings: AgentSettings, options: CallOptions = {}): Promise<AgentView> {
    return this.transport.read(pathOf("agents", this.name), { ...options, method: "PATCH", body: settings });
  }

  /** Removes an agent that `create` made. Its waiting tasks are cancelled, and its running turns may end. */
  remove(options: CallOptions = {}): Promise<void> {
    return this.transport.read(pathOf("agents", this.name), { ...options, method: "DELETE" });
  }

  /** The state of the agent. */
  get(options: CallOptions = {}): Promise<AgentView> {
    return this.transport.read(pathOf("agents", this.name), options);
  }

  /** The state of the agent's lane. */
  queue(options: CallOptions = {}): Promise<QueueView> {
    return this.transport.read(pathOf("agents", this.name, "queue"), options);
  }

  /** Cancels the waiting tasks of the agent's lane. */
  clear(options: CallOptions = {}): Promise<ClearedQueue> {
    return this.transport.read(pathOf("agents", this.name, "queue", "clear"), { ...options, method: "POST" });
  }

  /** Frees the slots of the agent's running attempts. They may still run, but the server refuses their reports. */
  release(options: CallOptions = {}): Promise<ReleasedQueue> {
    return this.transport.read(pathOf("agents", this.name, "queue", "release"), { ...options, method: "POST" });
  }
}
