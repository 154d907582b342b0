// A proxy between a client and the server that can change answers.

import { once } from "node:events";
import { createServer, request as forward } from "node:http";

/** Maps a method and a path to an action. `lose` passes the request on and drops the answer; `502` or JSON answer without the server. */
export type Meddling = (method: string, path: string) => "lose" | "502" | "stall" | `{${string}` | undefined;

export interface Proxy extends AsyncDisposable {
  url: string;
}

export async function proxy(url: string, meddle: Meddling): Promise<Proxy> {
  const { hostname, port } = new URL(url);
  const server = createServer((asked, answer) => {
    const what = meddle(asked.method!, asked.url!);
    if (what === "502") {
      asked.resume();
      answer.writeHead(502, { "content-type": "text/html" }).end("<html>Bad gateway</html>");
      return;
    }
    if (what?.startsWith("{")) {
      asked.resume();
      answer.writeHead(200, { "content-type": "application/json" }).end(what);
      return;
    }
    const onward = forward({ hostname, port, method: asked.method, path: asked.url, headers: asked.headers }, (told) => {
      if (what === "lose") {
        told.resume();
        told.on("end", () => answer.destroy());
      } else if (what === "stall") {
        // Send only the head of the answer.
        answer.writeHead(told.statusCode!, told.headers).flushHeaders();
        told.resume();
      } else {
        answer.writeHead(told.statusCode!, told.headers);
        told.pipe(answer);
      }
    });
    answer.on("close", () => onward.destroy());
    onward.on("error", () => answer.destroy());
    asked.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Applies an action to the first matching requests. */
export function theFirst(times: number, what: "lose" | "502" | "stall", method: string, endOfPath: string): Meddling {
  let seen = 0;
  return (asked, path) => {
    if (asked !== method || !path.endsWith(endOfPath)) return undefined;
    seen += 1;
    return seen <= times ? what : undefined;
  };
}
