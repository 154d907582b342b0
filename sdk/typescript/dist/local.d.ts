import { Client } from "./client.js";
import type { ClientOptions } from "./transport.js";
export interface LocalOptions {
    /** `"memory"` (the default) or a directory. */
    store?: string;
    /** A configuration file, or what would stand in one: `{ lane: { main: { max_concurrency: 3 } } }`. */
    config?: string | object;
    /** The program; else the variable `LANEWAY_BINARY` names it, else it is looked for on the `PATH`. */
    binary?: string;
    /** Default: a free loopback port. */
    listen?: string;
    /** How long it may take to start. Default 30 000. */
    readyWithinMs?: number;
    /** Gives up starting it. */
    signal?: AbortSignal;
}
/** A server on a free loopback port: `await using queue = await Laneway.local()`. */
export declare class Local implements AsyncDisposable {
    #private;
    /** Where it listens. */
    readonly url: string;
    readonly home: string;
    private constructor();
    static start(options?: LocalOptions): Promise<Local>;
    get pid(): number;
    /** A client of it. */
    client(options?: ClientOptions): Client;
    /** Ends the server: asks it to, and after a while kills it. */
    close(graceMs?: number): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
