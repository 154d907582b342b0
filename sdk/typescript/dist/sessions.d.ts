import type { LanewayEvent } from "./events.js";
import { type CallOptions, type Transport } from "./transport.js";
import type { MessageAnswer, MessageRequest, Receipt, SessionChange, SessionStats, SessionSummary } from "./wire.js";
/** The lane of a conversation: its key, with what has a meaning in lane names percent-encoded. */
export declare function sessionLane(key: string): string;
/** A conversation: one turn at a time, and messages that wait. */
export declare class Session {
    #private;
    readonly transport: Transport;
    readonly key: string;
    constructor(transport: Transport, key: string);
    /** A message; the answer says what became of it. */
    send(text: string, message: Omit<MessageRequest, "text">, options?: CallOptions): Promise<MessageAnswer>;
    /** How it stands. */
    get(options?: CallOptions): Promise<SessionSummary>;
    /** How its tool lanes stand. */
    stats(options?: CallOptions): Promise<SessionStats>;
    /** Sets its own mode, debounce, cap or drop rule. */
    change(settings: SessionChange, options?: CallOptions): Promise<SessionSummary>;
    /** What became of a message. */
    receipt(message: string, options?: CallOptions): Promise<Receipt>;
    /** Takes back a message that waits. */
    withdraw(message: string, options?: CallOptions): Promise<void>;
    /** Puts a waiting message before another, or last. */
    move(message: string, before?: string, options?: CallOptions): Promise<void>;
    /** Makes a waiting message the next one. */
    sendNow(message: string, options?: CallOptions): Promise<void>;
    /** Sends a message that was set aside once more, as a new one. */
    resend(message: string, options?: CallOptions): Promise<MessageAnswer>;
    /** Tells the running turn to stop. */
    interrupt(options?: CallOptions): Promise<void>;
    /** Takes back what waits; resolves to how many messages. */
    clear(options?: CallOptions): Promise<number>;
    /** Says something to the running turn. */
    steer(text: string, options?: CallOptions): Promise<MessageAnswer>;
    /** What happens in it, without end. */
    events(options?: CallOptions & {
        after?: string;
    }): AsyncGenerator<LanewayEvent, void, void>;
}
