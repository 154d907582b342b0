//! The peer on Redis: BullMQ, from npm.

use std::process::Command;

const SCRIPT: &str = r"
const { Queue, Worker } = require('bullmq');
const [port, count] = process.argv.slice(1).map(Number);
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
(async () => {
  const queue = new Queue('bench' + process.pid, { connection });
  await queue.waitUntilReady();
  let done = 0, finish;
  const all = new Promise((resolve) => (finish = resolve));
  const worker = new Worker(queue.name, async () => {}, { connection, concurrency: 50 });
  worker.on('completed', () => { if (++done === count) finish(); });
  await worker.waitUntilReady();
  const start = process.hrtime.bigint();
  const callers = Array.from({ length: 256 }, async (_, i) => {
    for (let n = i; n < count; n += 256) await queue.add('noop', {}, { removeOnComplete: true });
  });
  await Promise.all(callers);
  await all;
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  console.log(count / seconds);
  await worker.close();
  await queue.close();
})();
";

/// Tasks a second, added and processed, 50 at once.
pub(crate) fn throughput(port: u16, tasks: usize) -> f64 {
    let home = std::env::var("LANEWAY_BULLMQ").unwrap_or_default();
    let out = Command::new("node")
        .args(["-e", SCRIPT, "--", &port.to_string(), &tasks.to_string()])
        .current_dir(if home.is_empty() { "." } else { &home })
        .output()
        .unwrap_or_else(|error| panic!("node did not start: {error}"));
    let said = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    said.parse().unwrap_or_else(|_| {
        let error = String::from_utf8_lossy(&out.stderr);
        panic!("run this by `cargo xtask bench replicas`, which installs BullMQ: {error}")
    })
}
