// The running task that sends a request.

/** A running task, and the address of its server. */
export interface Running {
  url: string;
  task: string;
}

interface Storage {
  getStore(): Running | undefined;
  run<T>(running: Running, inside: () => T): T;
}

interface Node {
  env?: Record<string, string | undefined>;
  getBuiltinModule?: (name: string) => { AsyncLocalStorage?: new () => Storage } | undefined;
}

// Browsers, and Node before 20.16, have neither. There, a handler passes `parent` itself.
const node = (globalThis as { process?: Node }).process;
const Storage = node?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
const storage = Storage === undefined ? undefined : new Storage();

/** Runs a handler, whose requests to the same server are then children of its task. */
export function runningAs<T>(running: Running, inside: () => T): T {
  return storage === undefined ? inside() : storage.run(running, inside);
}

/** The headers that make a request to the server at one of these addresses a child of the running task, or of a given one. */
export function asChild(urls: readonly string[], parent?: string): { "x-laneway-parent"?: string } {
  if (parent !== undefined) return { "x-laneway-parent": parent };
  // The program of an agent has its task in its environment.
  const own = storage?.getStore() ?? { url: node?.env?.LANEWAY_URL ?? "", task: node?.env?.LANEWAY_TASK_ID ?? "" };
  return own.task !== "" && urls.includes(own.url.replace(/\/+$/, "")) ? { "x-laneway-parent": own.task } : {};
}
