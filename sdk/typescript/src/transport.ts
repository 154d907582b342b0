// Sends requests, repeats them where that is safe, and reads the answers.

import { Draining, LanewayError, StoreUnavailable, UnexpectedAnswer, Unreachable, refusal } from "./errors.js";
import { EventStream, type LanewayEvent, eventsOf, readEvents } from "./events.js";
import { patience } from "./patience.js";
import { USUAL, type Retry, pauseAfter, sleep } from "./retry.js";
import { nextTraceparent } from "./tracing.js";
import type { Problem } from "./wire.js";
import { WorkerEvents } from "./worker-events.js";

/** Options of the connection to a server. */
export interface ClientOptions {
  token?: string;
  /** When the client repeats a request by itself. */
  retry?: Partial<Retry>;
  /** How long an answer may take, for requests that do not wait for a task. Default 30 000. */
  timeoutMs?: number;
  /** The `fetch` to use instead of the global one. */
  fetch?: typeof fetch;
  /** Returns the current trace of a request, as a `traceparent`. */
  trace?: () => string | undefined;
}

/** Options of every call. */
export interface CallOptions {
  /** Ends the call when it is aborted. */
  signal?: AbortSignal | undefined;
  /** The trace of the call. */
  traceparent?: string | undefined;
}

export interface Request extends CallOptions {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  body?: unknown;
  query?: Record<string, string | undefined> | undefined;
  headers?: Record<string, string | undefined>;
  /** The answer may take any time. */
  waits?: boolean;
  /** How long the answer may take. Default: the client's option. */
  withinMs?: number;
  /** Ignores the content of a successful answer. */
  isUnread?: boolean;
  /** Does not repeat the request, because the caller does. */
  isOnce?: boolean;
}

/** A path below `/api`, each part percent-encoded. */
export function pathOf(...parts: string[]): string {
  return `/api/${parts.map(encodeURIComponent).join("/")}`;
}

export class Transport {
  readonly retry: Retry;
  /** The name under which the server knows this client as the owner of slots. */
  readonly worker = `client-${crypto.randomUUID()}`;
  readonly workerEvents = new WorkerEvents(this);
  readonly #fetch: typeof fetch;
  readonly #patience: (limitMs: number) => object | undefined;
  readonly #trace: ClientOptions["trace"];
  // A printed client must not show these, because one of them is the token.
  readonly #headersOfAll: Record<string, string> = {};
  readonly #timeoutMs: number;

  /** The servers; requests go to one of them. */
  readonly addresses: readonly string[];
  #current = 0;

  constructor(url: string | readonly string[], options: ClientOptions) {
    this.addresses = (typeof url === "string" ? url.split(",") : url).map((address) => address.trim().replace(/\/+$/, ""));
    if (this.addresses.length === 0 || !this.addresses.every((address) => /^https?:\/\/[^/]/i.test(address))) {
      throw new TypeError("the address of a server begins with http:// or https:// and a host, as in http://127.0.0.1:7717");
    }
    this.retry = { ...USUAL, ...options.retry };
    this.#trace = options.trace;
    if (options.token !== undefined) this.#headersOfAll.authorization = `Bearer ${options.token}`;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    // Only Node's own fetch accepts this option.
    this.#patience = options.fetch === undefined ? patience : () => undefined;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
  }

  /** The address in use. */
  get url(): string {
    return this.addresses[this.#current]!;
  }

  /** One try, at each address in turn while no server got the request. */
  async #anywhere<T>(ask: () => Promise<T>): Promise<T> {
    for (let others = this.addresses.length - 1; ; others -= 1) {
      const used = this.#current;
      try {
        return await ask();
      } catch (error) {
        if (isAway(error) && this.#current === used) this.#current = (used + 1) % this.addresses.length;
        if (!(error instanceof Unreachable) || error.wasSent || others === 0) throw error;
      }
    }
  }

  /** Sends a request, repeats it where that is safe, and returns a successful answer. */
  async send<T>(path: string, request: Request = {}): Promise<Answer<T>> {
    const headers = this.#headers(request);
    const repeatable = !request.isOnce && ((request.method ?? "GET") !== "POST" || "idempotency-key" in headers);
    const began = performance.now();
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#anywhere(() => this.#once<T>(path, request, headers));
      } catch (error) {
        if (!(error instanceof LanewayError) || !repeatable) throw error;
        const pause = pauseAfter(this.retry, error, tries, performance.now() - began, Math.random());
        if (pause === undefined) throw error;
        await sleep(pause, request.signal);
      }
    }
  }

  async read<T>(path: string, request: Request = {}): Promise<T> {
    return (await this.send<T>(path, request)).body;
  }

  /** All items of a list, page by page. */
  async *pages<T>(path: string, request: Request = {}): AsyncGenerator<T, void, void> {
    let cursor: string | undefined;
    do {
      const query = { ...request.query, cursor };
      const page = await this.read<{ items: T[]; next_cursor?: string | null }>(path, { ...request, query });
      yield* page.items;
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
  }

  /** The events of one stream, until it ends or the connection breaks. Leaving the loop closes it. */
  stream(path: string, request: Request): AsyncGenerator<LanewayEvent, void, void> {
    return eventsOf(this.#stream(path, request));
  }

  /** The events of one stream, after undefined when it is open. */
  async *#stream(path: string, request: Request): AsyncGenerator<LanewayEvent | undefined, void, void> {
    const stop = new AbortController();
    const signal = request.signal ? AbortSignal.any([request.signal, stop.signal]) : stop.signal;
    const headers = this.#headers({ ...request, headers: { accept: "text/event-stream", ...request.headers } });
    try {
      const response = await this.#anywhere(async () => {
        try {
          const opened = await this.#open(path, request, headers, signal, this.#patience(0));
          if (!opened.ok) throw refused(opened, await opened.text(), headers.traceparent);
          return opened;
        } catch (error) {
          throw error instanceof LanewayError ? error : unreachable(error, request.signal);
        }
      });
      yield undefined;
      if (response.status === 204 || response.body === null) {
        yield { event: "done", data: {} };
        return;
      }
      yield* readEvents(response.body);
    } catch (error) {
      throw error instanceof LanewayError ? error : unreachable(error, request.signal);
    } finally {
      stop.abort();
    }
  }

  /** The events of a stream; of a task, until `done`. Reconnects after the last event when the connection breaks. */
  follow(path: string, request: Request & { after?: string | undefined }): EventStream {
    return new EventStream(this.#follow(path, request));
  }

  async *#follow(
    path: string,
    request: Request & { after?: string | undefined },
  ): AsyncGenerator<LanewayEvent | undefined, void, void> {
    const endsWithTask = path.startsWith("/api/tasks/");
    let last = request.after;
    let [began, tries] = [performance.now(), 0];
    for (;;) {
      let broke: unknown = new Unreachable("the stream ended early");
      tries += 1;
      try {
        for await (const told of this.#stream(path, { ...request, headers: { "last-event-id": last } })) {
          [began, tries] = [performance.now(), 0];
          if (told === undefined) {
            yield undefined;
            continue;
          }
          last = told.id ?? last;
          yield told;
          if (endsWithTask && told.event === "done") return;
        }
      } catch (error) {
        broke = error;
      }
      if (!(broke instanceof LanewayError)) throw broke;
      const pause = pauseAfter(this.retry, broke, Math.max(tries, 1), performance.now() - began, Math.random());
      if (pause === undefined) throw broke;
      await sleep(pause, request.signal);
    }
  }

  #headers(request: Request): Record<string, string> {
    const headers: Record<string, string> = {
      traceparent: nextTraceparent(request.traceparent ?? this.#trace?.()),
      ...this.#headersOfAll,
    };
    if (request.body !== undefined) headers["content-type"] = "application/json";
    for (const [name, value] of Object.entries(request.headers ?? {})) {
      if (value !== undefined) headers[name] = value;
    }
    return headers;
  }

  /** One try: sends the request and reads the whole answer. */
  async #once<T>(path: string, request: Request, headers: Record<string, string>): Promise<Answer<T>> {
    const own = request.withinMs === undefined ? this.#patience(request.waits ? 0 : this.#timeoutMs) : undefined;
    const limit = own || request.waits ? undefined : late(request.withinMs ?? this.#timeoutMs, request.signal);
    let response: Response;
    let text: string;
    try {
      response = await this.#open(path, request, headers, limit?.signal ?? request.signal, own);
      const isUnread = request.isUnread && response.ok;
      // Read the answer to its end, so that the connection is free.
      text = isUnread ? ((await response.arrayBuffer()), "") : await response.text();
    } catch (error) {
      throw unreachable(error, request.signal);
    } finally {
      clearTimeout(limit?.timer);
    }
    if (!response.ok) throw refused(response, text, headers.traceparent);
    if (text === "") return { headers: response.headers, body: undefined as T };
    try {
      return { headers: response.headers, body: JSON.parse(text) as T };
    } catch (cause) {
      throw new UnexpectedAnswer(response.status, text, undefined, { cause });
    }
  }

  #open(
    path: string,
    request: Request,
    headers: Record<string, string>,
    signal: AbortSignal | undefined,
    patience: object | undefined,
  ): Promise<Response> {
    const init: RequestInit = { method: request.method ?? "GET", headers, ...patience };
    if (request.body !== undefined) {
      init.body = JSON.stringify(request.body);
      // A redirect would repeat the request or turn it into a GET. Node also copies a body that it might have to repeat.
      init.redirect = "error";
    }
    if (signal) init.signal = signal;
    return this.#fetch(`${this.url}${path}${request.query ? queryOf(request.query) : ""}`, init);
  }
}

/** A signal that is aborted after a time, or with another signal. */
function late(withinMs: number, signal: AbortSignal | undefined) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(new Error("no answer in time")), withinMs);
  return { timer, signal: signal ? AbortSignal.any([stop.signal, signal]) : stop.signal };
}

/** An answer of a server. */
export interface Answer<T> {
  headers: Headers;
  body: T;
}

function queryOf(fields: NonNullable<Request["query"]>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) query.set(key, value);
  }
  return query.size > 0 ? `?${query}` : "";
}

/** The error for an answer without success. */
function refused(response: Response, text: string, trace: string | undefined): LanewayError {
  if (response.headers.get("content-type")?.startsWith("application/problem+json")) {
    try {
      return refusal(JSON.parse(text) as Problem, trace);
    } catch {
      // The body is not a problem document.
    }
  }
  return new UnexpectedAnswer(response.status, text, response.headers.get("retry-after") ?? undefined);
}

/** The error for a failed fetch. The caller's own abort stays unchanged. */
function unreachable(error: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason ?? error;
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  if (cause === ": unexpected redirect") {
    return new LanewayError("this address redirects requests elsewhere; use the address of the server itself", {
      cause: error,
    });
  }
  return new Unreachable(`${error instanceof Error ? error.message : String(error)}${cause}`, { cause: error }, !isUnsent(error));
}

/** Whether a failed fetch had no connection. Only Node says so. */
function isUnsent(error: unknown): boolean {
  interface Failure {
    code?: string;
    syscall?: string;
    errors?: Failure[];
  }
  const cause = error instanceof Error ? (error.cause as Failure | undefined) : undefined;
  const [failure = cause] = cause?.errors ?? [];
  return ["connect", "getaddrinfo"].includes(failure?.syscall ?? "") || cause?.code === "UND_ERR_CONNECT_TIMEOUT";
}

/** Whether another server may answer where this one did not. */
function isAway(error: unknown): boolean {
  if (error instanceof UnexpectedAnswer) return error.isOfGateway;
  return error instanceof Unreachable || error instanceof Draining || error instanceof StoreUnavailable;
}
