import { type CallOptions, type Transport } from "./transport.js";
import type { LaneNumbers } from "./wire.js";
/** Settings of a lane; durations are milliseconds or texts such as `"2s"`. */
export interface LaneSettings {
    max_concurrency?: number | "unlimited";
    max_queued?: number;
    order?: "fair" | "fifo";
    priority?: number | "source";
    weight?: number;
    wait_timeout?: number | string;
    timeout?: number | string;
    lease?: number | string;
    max_redelivery?: number;
    retry?: string | Record<string, string | number | boolean>;
    rate_limit?: string | {
        per: "second" | "minute" | "hour";
        max: number;
    };
    ageing?: string | Record<string, string | number>;
    boost?: string | Record<string, string | number>;
    pressure_threshold?: number;
    alerts?: {
        warning?: number;
        critical?: number;
    };
    dead_letters_max?: number;
    notice_after?: number | string;
    handler?: "internal" | "external" | "hybrid";
}
/** A named limit; `change` also takes a pattern such as `session:*`. */
export declare class Lane {
    #private;
    readonly transport: Transport;
    readonly name: string;
    constructor(transport: Transport, name: string);
    /** How it stands, whether it exists now or not. */
    get(options?: CallOptions): Promise<LaneNumbers>;
    /** Changes settings; what is left out stays. Nothing that runs is ended. */
    change(settings: LaneSettings, options?: CallOptions): Promise<LaneNumbers>;
    /** Nothing starts any more; what runs goes on. */
    pause(options?: CallOptions): Promise<LaneNumbers>;
    /** A pause or a drain is over. */
    resume(options?: CallOptions): Promise<LaneNumbers>;
    /** Nothing new is accepted; what is there comes to its end. */
    drain(options?: CallOptions): Promise<LaneNumbers>;
    /** Cancels what waits; resolves to how many. */
    clear(options?: CallOptions): Promise<number>;
}
