// Requests: sent, repeated where that is safe, and read.
import { LanewayError, UnexpectedAnswer, Unreachable, refusal } from "./errors.js";
import { readEvents } from "./events.js";
import { patience } from "./patience.js";
import { USUAL, pauseAfter, sleep } from "./retry.js";
import { nextTraceparent } from "./tracing.js";
/** A path below `/api`, each part percent-encoded. */
export function pathOf(...parts) {
    return `/api/${parts.map(encodeURIComponent).join("/")}`;
}
export class Transport {
    url;
    retry;
    #fetch;
    #patience;
    #trace;
    // Out of sight of whoever prints a client: there is a token among them.
    #headersOfAll = {};
    #timeoutMs;
    constructor(url, options) {
        this.url = url;
        if (!/^https?:\/\/[^/]/i.test(url)) {
            throw new TypeError("the address of a server begins with http:// or https:// and a host, as in http://127.0.0.1:7717");
        }
        this.url = url.replace(/\/+$/, "");
        this.retry = { ...USUAL, ...options.retry };
        this.#trace = options.trace;
        if (options.token !== undefined)
            this.#headersOfAll.authorization = `Bearer ${options.token}`;
        this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
        // What Node's own fetch takes, another one may not.
        this.#patience = options.fetch === undefined ? patience : () => undefined;
        this.#timeoutMs = options.timeoutMs ?? 30_000;
    }
    /** Sends a request, again where that is safe, and returns the answer if it is a good one. */
    async send(path, request = {}) {
        const headers = this.#headers(request);
        const repeatable = !request.isOnce && ((request.method ?? "GET") !== "POST" || "idempotency-key" in headers);
        const began = performance.now();
        for (let tries = 1;; tries += 1) {
            try {
                return await this.#once(path, request, headers);
            }
            catch (error) {
                if (!(error instanceof LanewayError) || !repeatable)
                    throw error;
                const pause = pauseAfter(this.retry, error, tries, performance.now() - began, Math.random());
                if (pause === undefined)
                    throw error;
                await sleep(pause, request.signal);
            }
        }
    }
    async read(path, request = {}) {
        return (await this.send(path, request)).body;
    }
    /** Everything in a list, page by page. */
    async *pages(path, request = {}) {
        let cursor;
        do {
            const query = { ...request.query, cursor };
            const page = await this.read(path, { ...request, query });
            yield* page.items;
            cursor = page.next_cursor ?? undefined;
        } while (cursor !== undefined);
    }
    /** The events of one stream, until it ends or breaks. Leaving the loop closes it. */
    async *stream(path, request) {
        const stop = new AbortController();
        const signal = request.signal ? AbortSignal.any([request.signal, stop.signal]) : stop.signal;
        const headers = this.#headers({ ...request, headers: { accept: "text/event-stream", ...request.headers } });
        try {
            const response = await this.#open(path, request, headers, signal, this.#patience(0));
            if (!response.ok)
                throw refused(response, await response.text(), headers.traceparent);
            if (response.status === 204 || response.body === null) {
                yield { event: "done", data: {} };
                return;
            }
            yield* readEvents(response.body);
        }
        catch (error) {
            throw error instanceof LanewayError ? error : unreachable(error, request.signal);
        }
        finally {
            stop.abort();
        }
    }
    /** The events of a stream, which goes on where it was when the connection breaks; of a task, until `done`. */
    async *follow(path, request) {
        const endsWithTask = path.startsWith("/api/tasks/");
        let last = request.after;
        let [began, tries] = [performance.now(), 0];
        for (;;) {
            let broke = new Unreachable("the stream ended early");
            tries += 1;
            try {
                for await (const told of this.stream(path, { ...request, headers: { "last-event-id": last } })) {
                    [began, tries] = [performance.now(), 0];
                    last = told.id ?? last;
                    yield told;
                    if (endsWithTask && told.event === "done")
                        return;
                }
            }
            catch (error) {
                broke = error;
            }
            if (!(broke instanceof LanewayError))
                throw broke;
            const pause = pauseAfter(this.retry, broke, Math.max(tries, 1), performance.now() - began, Math.random());
            if (pause === undefined)
                throw broke;
            await sleep(pause, request.signal);
        }
    }
    #headers(request) {
        const headers = {
            traceparent: nextTraceparent(request.traceparent ?? this.#trace?.()),
            ...this.#headersOfAll,
        };
        if (request.body !== undefined)
            headers["content-type"] = "application/json";
        for (const [name, value] of Object.entries(request.headers ?? {})) {
            if (value !== undefined)
                headers[name] = value;
        }
        return headers;
    }
    /** One try, from the first word to the last one of the answer. */
    async #once(path, request, headers) {
        const own = request.withinMs === undefined ? this.#patience(request.waits ? 0 : this.#timeoutMs) : undefined;
        const limit = own || request.waits ? undefined : late(request.withinMs ?? this.#timeoutMs, request.signal);
        let response;
        let text;
        try {
            response = await this.#open(path, request, headers, limit?.signal ?? request.signal, own);
            const isUnread = request.isUnread && response.ok;
            // Heard to its end all the same, so that the connection is free.
            text = isUnread ? ((await response.arrayBuffer()), "") : await response.text();
        }
        catch (error) {
            throw unreachable(error, request.signal);
        }
        finally {
            clearTimeout(limit?.timer);
        }
        if (!response.ok)
            throw refused(response, text, headers.traceparent);
        if (text === "")
            return { headers: response.headers, body: undefined };
        try {
            return { headers: response.headers, body: JSON.parse(text) };
        }
        catch (cause) {
            throw new UnexpectedAnswer(response.status, text, undefined, { cause });
        }
    }
    #open(path, request, headers, signal, patience) {
        const init = { method: request.method ?? "GET", headers, ...patience };
        if (request.body !== undefined) {
            init.body = JSON.stringify(request.body);
            // Sent on elsewhere it would be asked twice, or become a GET. Node also copies a body that it might have to send again.
            init.redirect = "error";
        }
        if (signal)
            init.signal = signal;
        return this.#fetch(`${this.url}${path}${request.query ? queryOf(request.query) : ""}`, init);
    }
}
/** A signal that is aborted when it is late, or with another one. */
function late(withinMs, signal) {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(new Error("no answer in time")), withinMs);
    return { timer, signal: signal ? AbortSignal.any([stop.signal, signal]) : stop.signal };
}
function queryOf(fields) {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(fields)) {
        if (value !== undefined)
            query.set(key, value);
    }
    return query.size > 0 ? `?${query}` : "";
}
/** Why an answer is not a good one. */
function refused(response, text, trace) {
    if (response.headers.get("content-type")?.startsWith("application/problem+json")) {
        try {
            return refusal(JSON.parse(text), trace);
        }
        catch {
            // No problem document after all.
        }
    }
    return new UnexpectedAnswer(response.status, text, response.headers.get("retry-after") ?? undefined);
}
/** What a failed fetch means: the caller's own abort stays what it is. */
function unreachable(error, signal) {
    if (signal?.aborted)
        return signal.reason ?? error;
    const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
    if (cause === ": unexpected redirect") {
        return new LanewayError("whoever answers at this address sends requests on elsewhere; use the address of the server itself", {
            cause: error,
        });
    }
    return new Unreachable(`${error instanceof Error ? error.message : String(error)}${cause}`, { cause: error });
}
