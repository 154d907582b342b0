/**
 * What to tell Node's own fetch, so that it waits for any answer (0) or for so many milliseconds; undefined, where that is not possible:
 * in browsers, and where the program has set a dispatcher of its own.
 */
export declare function patience(limitMs: number): {
    dispatcher: object;
} | undefined;
