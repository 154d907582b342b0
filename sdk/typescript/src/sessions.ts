// Sessions and their messages.

import type { EventStream } from "./events.js";
import { type CallOptions, type Request, type Transport, pathOf } from "./transport.js";
import type {
  CancelManyAnswer,
  MessageAnswer,
  MessageRequest,
  Receipt,
  SessionChange,
  SessionStats,
  SessionSummary,
} from "./wire.js";

/** The lane of a session: its key, with special characters of lane names percent-encoded. */
export function sessionLane(key: string): string {
  const chars = [...key];
  const encoded = chars.map((char, place) => {
    const atTheEnd = place === 0 || place === chars.length - 1;
    if (!/[%/*\p{Cc}]/u.test(char) && !(atTheEnd && /\s/.test(char))) return char;
    return Array.from(new TextEncoder().encode(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  });
  return `session:${encoded.join("")}`;
}

/** A session: it runs one turn at a time, and further messages wait. */
export class Session {
  constructor(
    readonly transport: Transport,
    readonly key: string,
  ) {}

  #read<T>(parts: string[], request: Request): Promise<T> {
    return this.transport.read<T>(pathOf("sessions", this.key, ...parts), request);
  }

  /** Sends a message. The answer has its outcome. */
  send(text: string, message: Omit<MessageRequest, "text">, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["messages"], { ...options, method: "POST", body: { text, ...message } });
  }

  /** The state of the session. */
  get(options: CallOptions = {}): Promise<SessionSummary> {
    return this.#read([], options);
  }

  /** The numbers of its tool lanes. */
  stats(options: CallOptions = {}): Promise<SessionStats> {
    return this.#read(["stats"], options);
  }

  /** Sets the mode, debounce, cap or drop rule of the session. */
  change(settings: SessionChange, options: CallOptions = {}): Promise<SessionSummary> {
    return this.#read([], { ...options, method: "PATCH", body: settings });
  }

  /** The outcome of a message. */
  receipt(message: string, options: CallOptions = {}): Promise<Receipt> {
    return this.#read(["messages", message], options);
  }

  /** Withdraws a waiting message, also one that waits for the running turn to take it. */
  withdraw(message: string, options: CallOptions = {}): Promise<void> {
    return this.#read(["messages", message], { ...options, method: "DELETE" });
  }

  /** Moves a waiting message before another one, or to the end. */
  move(message: string, before?: string, options: CallOptions = {}): Promise<void> {
    const body = before === undefined ? {} : { before };
    return this.#read(["messages", message, "move"], { ...options, method: "POST", body });
  }

  /** Passes a waiting message into the running turn. */
  promote(message: string, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["messages", message, "promote"], { ...options, method: "POST" });
  }

  /** Moves a waiting message to the front. */
  sendNow(message: string, options: CallOptions = {}): Promise<void> {
    return this.#read(["messages", message, "send-now"], { ...options, method: "POST" });
  }

  /** Sends a parked message again, as a new one. */
  resend(message: string, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["messages", message, "resend"], { ...options, method: "POST" });
  }

  /** Stops the running turn. */
  interrupt(options: CallOptions = {}): Promise<void> {
    return this.#read(["interrupt"], { ...options, method: "POST" });
  }

  /** Withdraws all waiting messages. Resolves to their number. */
  async clear(options: CallOptions = {}): Promise<number> {
    return (await this.#read<CancelManyAnswer>(["clear"], { ...options, method: "POST" })).cancelled;
  }

  /** Sends a message to the running turn. */
  steer(text: string, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["steer"], { ...options, method: "POST", body: { text } });
  }

  /** The events of the session, without end. Await it to open it: nothing that happens later is missed. */
  events(options: CallOptions & { after?: string } = {}): EventStream {
    return this.transport.follow(pathOf("sessions", this.key, "events"), options);
  }
}
