// A task server in Hono that limits how many tasks run at once, on all its replicas together, and answers 429 above that.
//
// Each replica has the addresses of all Laneway servers and goes on with the next when its own is away.

import { serve } from "@hono/node-server";
import { Hono, type MiddlewareHandler } from "hono";
import { streamSSE } from "hono/streaming";
import { AtCapacity, Client, Draining, StoreUnavailable, Unreachable } from "laneway";

type Variables = { lost: AbortSignal };

/** Holds a slot of the lane until the answer has gone out to its end, or its reader has left. */
export function admit(client: Client, lane: string): MiddlewareHandler<{ Variables: Variables }> {
  return async (context, next) => {
    let slot;
    try {
      slot = await client.slot([lane], { wait_ms: 0 });
    } catch (error) {
      if (error instanceof AtCapacity) {
        const { code, retryable, detail, running, max_concurrency } = error.problem;
        const wait = Math.ceil(error.retryAfter ?? 5);
        return context.json({ success: false, error: { code, retryable, message: detail, running, max_concurrency } }, 429, {
          "retry-after": `${wait}`,
        });
      }
      if (!(error instanceof Draining || error instanceof StoreUnavailable || error instanceof Unreachable)) throw error;
      return context.json({ success: false, error: { code: "UNAVAILABLE", retryable: true } }, 503, { "retry-after": "5" });
    }
    const release = () => slot.release().catch(() => undefined);
    context.set("lost", slot.signal);
    try {
      await next();
    } catch (error) {
      await release();
      throw error;
    }
    // The handler of a stream has returned before its first event, so the body keeps the slot.
    if (context.res.body === null) await release();
    else context.res = new Response(holding(context.res.body, release), context.res);
  };
}

/** The same bytes, with something to do at their end, whatever that is. */
function holding(body: ReadableStream<Uint8Array>, end: () => Promise<void>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        // Before the last byte, so that a caller who has read to the end finds the slot free.
        await end();
        controller.close();
      } catch (error) {
        await end();
        controller.error(error);
      }
    },
    async cancel(reason) {
      await reader.cancel(reason);
      await end();
    },
  });
}

/** Does the work, and reports steps. */
export type Run = (task: string, report: (step: string) => Promise<void>, lost: AbortSignal) => Promise<string>;

export function app(client: Client, run: Run): Hono<{ Variables: Variables }> {
  const app = new Hono<{ Variables: Variables }>();
  // Full is healthy: the task server answers, and says when to come back.
  app.get("/health", (context) => context.json({ status: "ok" }));
  app.post("/tasks", async (context) => {
    // First what is wrong with the request, then room.
    const { task } = await context.req.json<{ task?: string }>().catch(() => ({ task: undefined }));
    if (!task) return context.json({ success: false, error: { code: "INVALID", message: "a task is needed" } }, 400);
    const respond = async () => {
      context.res = streamSSE(context, async (stream) => {
        const report = (data: string) => stream.writeSSE({ event: "step", data });
        await stream.writeSSE({ event: "start", data: task });
        const result = await run(task, report, context.get("lost"));
        await stream.writeSSE({ event: "complete", data: result });
      });
    };
    return (await admit(client, "tasks")(context, respond)) ?? context.res;
  });
  return app;
}

/** Serves the app on a free port. */
export function listen(client: Client, run: Run): Promise<{ url: string; close: () => void }> {
  return new Promise((resolve) => {
    const server = serve({ fetch: app(client, run).fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
      resolve({ url: `http://127.0.0.1:${port}`, close: () => void server.close() });
    });
  });
}
