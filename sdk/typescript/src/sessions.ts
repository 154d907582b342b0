// Sessions and their messages.

import type { LanewayEvent } from "./events.js";
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

/** The lane of a conversation: its key, with what has a meaning in lane names percent-encoded. */
export function sessionLane(key: string): string {
  const chars = [...key];
  const encoded = chars.map((char, place) => {
    const atTheEnd = place === 0 || place === chars.length - 1;
    if (!/[%/*\p{Cc}]/u.test(char) && !(atTheEnd && /\s/.test(char))) return char;
    return Array.from(new TextEncoder().encode(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  });
  return `session:${encoded.join("")}`;
}

/** A conversation: one turn at a time, and messages that wait. */
export class Session {
  constructor(
    readonly transport: Transport,
    readonly key: string,
  ) {}

  #read<T>(parts: string[], request: Request): Promise<T> {
    return this.transport.read<T>(pathOf("sessions", this.key, ...parts), request);
  }

  /** A message; the answer says what became of it. */
  send(text: string, message: Omit<MessageRequest, "text">, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["messages"], { ...options, method: "POST", body: { text, ...message } });
  }

  /** How it stands. */
  get(options: CallOptions = {}): Promise<SessionSummary> {
    return this.#read([], options);
  }

  /** How its tool lanes stand. */
  stats(options: CallOptions = {}): Promise<SessionStats> {
    return this.#read(["stats"], options);
  }

  /** Sets its own mode, debounce, cap or drop rule. */
  change(settings: SessionChange, options: CallOptions = {}): Promise<SessionSummary> {
    return this.#read([], { ...options, method: "PATCH", body: settings });
  }

  /** What became of a message. */
  receipt(message: string, options: CallOptions = {}): Promise<Receipt> {
    return this.#read(["messages", message], options);
  }

  /** Takes back a message that waits. */
  withdraw(message: string, options: CallOptions = {}): Promise<void> {
    return this.#read(["messages", message], { ...options, method: "DELETE" });
  }

  /** Puts a waiting message before another, or last. */
  move(message: string, before?: string, options: CallOptions = {}): Promise<void> {
    const body = before === undefined ? {} : { before };
    return this.#read(["messages", message, "move"], { ...options, method: "POST", body });
  }

  /** Makes a waiting message the next one. */
  sendNow(message: string, options: CallOptions = {}): Promise<void> {
    return this.#read(["messages", message, "send-now"], { ...options, method: "POST" });
  }

  /** Sends a parked message once more, as a new one. */
  resend(message: string, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["messages", message, "resend"], { ...options, method: "POST" });
  }

  /** Tells the running turn to stop. */
  interrupt(options: CallOptions = {}): Promise<void> {
    return this.#read(["interrupt"], { ...options, method: "POST" });
  }

  /** Takes back what waits; resolves to how many messages. */
  async clear(options: CallOptions = {}): Promise<number> {
    return (await this.#read<CancelManyAnswer>(["clear"], { ...options, method: "POST" })).cancelled;
  }

  /** Says something to the running turn. */
  steer(text: string, options: CallOptions = {}): Promise<MessageAnswer> {
    return this.#read(["steer"], { ...options, method: "POST", body: { text } });
  }

  /** What happens in it, without end. */
  events(options: CallOptions & { after?: string } = {}): AsyncGenerator<LanewayEvent, void, void> {
    return this.transport.follow(pathOf("sessions", this.key, "events"), options);
  }
}
