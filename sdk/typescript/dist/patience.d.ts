/** What to tell Node's own fetch so that it waits for any answer; nothing, where it is patient by itself. */
export declare function patient(): object;
