import type { LanewayEvent } from "./events.js";
import { type CallOptions, type Transport } from "./transport.js";
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
export declare class Turn implements PromiseLike<ChatAnswer>, AsyncIterable<LanewayEvent> {
    #private;
    readonly transport: Transport;
    readonly path: string;
    readonly message: string;
    readonly options: TurnOptions;
    constructor(transport: Transport, path: string, message: string, options: TurnOptions);
    /** Asks, waits for the end, and resolves to the answer. */
    answer(): Promise<ChatAnswer>;
    /** Asks, and tells what happens from acceptance on. Leaving the loop cancels the run, unless it is detached. */
    events(): AsyncGenerator<LanewayEvent, void, void>;
    /** Asks, and resolves when it is accepted. */
    accepted(): Promise<AcceptedTurn>;
    then<A = ChatAnswer, B = never>(done?: ((answer: ChatAnswer) => A | PromiseLike<A>) | null, failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<A | B>;
    catch<B = never>(failed?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<ChatAnswer | B>;
    finally(ended?: (() => void) | null): Promise<ChatAnswer>;
    [Symbol.asyncIterator](): AsyncIterator<LanewayEvent>;
}
/** Somebody who can run a turn. */
export declare class Agent {
    readonly transport: Transport;
    readonly name: string;
    constructor(transport: Transport, name: string);
    /** One turn of a conversation: await it for the answer, or iterate over it for the events. */
    chat(message: string, options?: TurnOptions): Turn;
    /** One stateless task, beside all others; to be awaited or iterated over like a turn. */
    task(message: string, options?: TurnOptions): Turn;
    /** One turn of a conversation that is not waited for. */
    submit(message: string, options?: TurnOptions): Promise<AcceptedTurn>;
    /** How the agent stands. */
    get(options?: CallOptions): Promise<AgentView>;
    /** How its line stands. */
    queue(options?: CallOptions): Promise<QueueView>;
    /** Cancels what waits in its line. */
    clear(options?: CallOptions): Promise<ClearedQueue>;
    /** Takes its slots away from whatever runs. The old runs may still be going; what they report is refused. */
    release(options?: CallOptions): Promise<ReleasedQueue>;
}
