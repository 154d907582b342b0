/** A new span, in the trace that goes on or in a new one. */
export declare function nextTraceparent(goingOn: string | undefined): string;
