import { type LanewayEvent } from "./events.js";
import { type Retry } from "./retry.js";
/** How to talk to a server. */
export interface ClientOptions {
    token?: string;
    /** When a request is sent again by itself. */
    retry?: Partial<Retry>;
    /** How long an answer may take, of requests that do not wait for work. Default 30 000. */
    timeoutMs?: number;
    /** Used in place of the global one. */
    fetch?: typeof fetch;
    /** The trace that goes on where a request is sent, as a `traceparent`. */
    trace?: () => string | undefined;
}
/** What every call takes. */
export interface CallOptions {
    /** Gives up when it is aborted. */
    signal?: AbortSignal | undefined;
    /** The trace that this call belongs to. */
    traceparent?: string | undefined;
}
export interface Request extends CallOptions {
    method?: "GET" | "POST" | "PATCH" | "DELETE";
    body?: unknown;
    query?: Record<string, string | undefined> | undefined;
    headers?: Record<string, string | undefined>;
    /** The answer may take any time. */
    waits?: boolean;
    /** It may take so long, and no longer. Default: as the client's options say. */
    withinMs?: number;
    /** What a good answer says is not looked at. */
    isUnread?: boolean;
    /** It is not sent again, although it could be: the caller sees to that. */
    isOnce?: boolean;
}
/** A path below `/api`, each part percent-encoded. */
export declare function pathOf(...parts: string[]): string;
export declare class Transport {
    #private;
    readonly url: string;
    readonly retry: Retry;
    constructor(url: string, options: ClientOptions);
    /** Sends a request, again where that is safe, and returns the answer if it is a good one. */
    send<T>(path: string, request?: Request): Promise<Answer<T>>;
    read<T>(path: string, request?: Request): Promise<T>;
    /** Everything in a list, page by page. */
    pages<T>(path: string, request?: Request): AsyncGenerator<T, void, void>;
    /** The events of one stream, until it ends or breaks. Leaving the loop closes it. */
    stream(path: string, request: Request): AsyncGenerator<LanewayEvent, void, void>;
    /** The events of a stream, which goes on where it was when the connection breaks; of a task, until `done`. */
    follow(path: string, request: Request & {
        after?: string | undefined;
    }): AsyncGenerator<LanewayEvent, void, void>;
}
/** What a server answered. */
export interface Answer<T> {
    headers: Headers;
    body: T;
}
