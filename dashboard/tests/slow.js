// A slow network, on purpose: a proxy in front of a server that holds back everything the server says.

import net from "node:net";

/** So long at most is each piece held back, in ms, when the tests run slowly; 0: not at all. */
export const DELAY_MAX_MS = Number(process.env.LANEWAY_TEST_SLOW ?? 0);
/** How many times slower the page's own work is. */
export const THROTTLE = Number(process.env.LANEWAY_TEST_THROTTLE ?? 1);
for (const [name, value] of Object.entries({ LANEWAY_TEST_SLOW: DELAY_MAX_MS, LANEWAY_TEST_THROTTLE: THROTTLE })) {
  if (!(value >= 0)) throw new Error(`${name} is a number`);
}

/**
 * Listens on a free port and passes everything on to `port`. What comes back is held back for a random time, piece by piece and in order, so
 * that answers overtake each other and events come late, as they do on a machine that has much else to do. Resolves to the proxy.
 */
export async function slowDown(port) {
  const sockets = new Set();
  const proxy = net.createServer((page) => {
    const server = net.connect(port, "127.0.0.1");
    for (const socket of [page, server]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    let before = Promise.resolve();
    const later = (act) => {
      const rested = new Promise((resolve) => { setTimeout(resolve, Math.random() * DELAY_MAX_MS); });
      before = Promise.all([before, rested]).then(act);
    };
    page.pipe(server);
    server.on("data", (piece) => later(() => page.write(piece)));
    server.on("close", () => later(() => page.destroy()));
    page.on("close", () => server.destroy());
  });
  await new Promise((resolve) => { proxy.listen(0, "127.0.0.1", resolve); });
  return {
    address: `127.0.0.1:${proxy.address().port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => { proxy.close(resolve); });
    },
  };
}
