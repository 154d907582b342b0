/** What to tell fetch about an answer that may take any time; nothing, where fetch is patient by itself. */
export declare function patient(waits: boolean | undefined): object;
