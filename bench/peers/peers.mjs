// Runs the workloads of `src/compare/workloads.rs` on the Node queues.
// `node peers.mjs p-queue|bullmq WORKLOAD REDIS_PORT` prints one line of JSON.
import PQueue from 'p-queue';
import { Queue, Worker } from 'bullmq';

const [peer, workload, port] = process.argv.slice(2);
const nap = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => Number(process.hrtime.bigint()) / 1e6;
const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Counts down to zero. Gives up when nothing has moved for ten seconds. */
function countdown(count) {
  let left = count, finish;
  const done = new Promise((resolve) => (finish = resolve));
  let before = left;
  const watch = setInterval(() => {
    if (left === before) finish(false);
    before = left;
  }, 10000);
  if (left === 0) finish(true);
  return {
    oneLess: () => { if (--left === 0) finish(true); },
    left: () => left,
    none: () => done.finally(() => clearInterval(watch)),
  };
}

/** A queue of `slots`, with a queue of one for each session in front of it. */
function pQueue(slots) {
  const lane = new PQueue({ concurrency: slots });
  const sessions = new Map();
  const submit = (body, { session } = {}) => {
    if (session === undefined) {
      lane.add(body).catch(() => {});
      return;
    }
    if (!sessions.has(session)) sessions.set(session, new PQueue({ concurrency: 1 }));
    sessions.get(session).add(() => lane.add(body)).catch(() => {});
  };
  return { submit, close: async () => {} };
}

const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };

async function bullMq(slots) {
  const queue = new Queue('compare' + process.pid, { connection });
  const bodies = new Map();
  let next = 0;
  const worker = new Worker(queue.name, async (job) => {
    const body = bodies.get(job.data.number);
    bodies.delete(job.data.number);
    await body();
  }, { connection, concurrency: slots });
  worker.on('error', () => {});
  await queue.waitUntilReady();
  await worker.waitUntilReady();
  const submit = async (body) => {
    const number = ++next;
    bodies.set(number, body);
    await queue.add('body', { number }, { removeOnComplete: true, removeOnFail: true });
  };
  return { submit, close: async () => { await worker.close(true); await queue.close(); } };
}

const open = async (slots) => (peer === 'p-queue' ? pQueue(slots) : bullMq(slots));

const workloads = {
  async no_ops() {
    const queue = await open(50);
    const tasks = peer === 'p-queue' ? 50000 : 5000;
    const left = countdown(tasks);
    const start = now();
    const callers = Array.from({ length: 256 }, async (_, i) => {
      for (let n = i; n < tasks; n += 256) await queue.submit(async () => left.oneLess());
    });
    await Promise.all(callers);
    if (!(await left.none())) throw new Error('some no-ops never ran');
    const rate = tasks / (now() - start);
    await queue.close();
    return rate;
  },
  async fan_out() {
    const queue = await open(256);
    const left = countdown(256);
    const start = now();
    await Promise.all(Array.from({ length: 256 }, () =>
      queue.submit(async () => { await nap(20); left.oneLess(); })));
    if (!(await left.none())) throw new Error('some naps never ran');
    const took = now() - start;
    await queue.close();
    return took;
  },
  async sessions() {
    let start = now();
    await Promise.all(Array.from({ length: 4 }, async () => {
      for (let n = 0; n < 250; n++) await nap(2);
    }));
    const bare = (now() - start) * 3;
    const queue = await open(4);
    const left = countdown(3000);
    const state = Array.from({ length: 1000 }, () => ({ running: false, next: 0 }));
    let wrong = 0;
    start = now();
    // The turns of a conversation come one right after another, as messages of an impatient user do.
    await Promise.all(state.flatMap((mine, session) => [0, 1, 2].map((turn) => queue.submit(async () => {
      if (mine.running || mine.next !== turn) wrong++;
      mine.running = true;
      mine.next = turn + 1;
      await nap(2);
      mine.running = false;
      left.oneLess();
    }, { session }))));
    if (!(await left.none())) throw new Error('some turns never ran');
    const took = now() - start;
    await queue.close();
    return [took / bare, wrong];
  },
  async idle() {
    const queue = await open(8);
    const times = [];
    for (let n = 0; n < 300; n++) {
      let started;
      const begun = new Promise((resolve) => (started = resolve));
      const start = now();
      await Promise.all([queue.submit(async () => started(now())), begun]);
      times.push(((await begun) - start) * 1000);
      await nap(0);
    }
    await queue.close();
    return median(times);
  },
  // The growth of this process per waiting task, in bytes, and the number of tasks. Redis holds those of BullMQ.
  async memory() {
    const tasks = peer === 'p-queue' ? 100000 : 20000;
    let add;
    if (peer === 'p-queue') {
      const lane = new PQueue({ concurrency: 1 });
      add = () => { lane.add(() => new Promise(() => {})); };
      add();
    } else {
      const queue = new Queue('memory', { connection });
      await queue.waitUntilReady();
      add = () => queue.add('wait', {});
    }
    globalThis.gc();
    const before = process.memoryUsage().rss;
    if (peer === 'p-queue') for (let n = 0; n < tasks; n++) add();
    else for (let n = 0; n < tasks; n += 500) await Promise.all(Array.from({ length: 500 }, add));
    globalThis.gc();
    const grown = peer === 'p-queue' ? Math.max(0, process.memoryUsage().rss - before) : 0;
    return [grown / tasks, tasks];
  },
  async panics() {
    const queue = await open(2);
    const left = countdown(90);
    for (let number = 0; number < 100; number++) {
      await queue.submit(async () => {
        await nap(0);
        if (number % 10 === 0) throw new Error('on purpose');
        left.oneLess();
      });
    }
    await left.none();
    const done = 90 - left.left();
    await queue.close();
    return done;
  },
  async flood() {
    const queue = await open(4);
    const left = countdown(1010);
    const order = [];
    let release;
    const gate = new Promise((resolve) => (release = resolve));
    for (let number = 0; number < 1010; number++) {
      const user = number < 1000 ? 'heavy' : 'light';
      await queue.submit(async () => {
        order.push(user);
        await gate;
        await nap(1);
        left.oneLess();
      });
    }
    await nap(50);
    release();
    if (!(await left.none())) throw new Error('some of the flood never ran');
    await queue.close();
    return order.flatMap((user, place) => (user === 'light' ? [place + 1] : []));
  },
  // Accepts a thousand tasks, prints their number, and waits to be killed.
  async accept() {
    if (peer === 'p-queue') {
      const lane = new PQueue({ concurrency: 4 });
      for (let n = 0; n < 1000; n++) lane.add(() => new Promise(() => {}));
    } else {
      const queue = new Queue('kill', { connection });
      for (let n = 0; n < 1000; n += 100) {
        await Promise.all(Array.from({ length: 100 }, (_, i) => queue.add('wait', { number: n + i })));
      }
    }
    console.log('1000');
    setInterval(() => {}, 1000);
    return new Promise(() => {});
  },
  // How many tasks the queue still has.
  async count() {
    if (peer === 'p-queue') return new PQueue({ concurrency: 4 }).size;
    const queue = new Queue('kill', { connection });
    return await queue.getJobCountByTypes('waiting', 'active', 'delayed', 'prioritized');
  },
};

console.log(JSON.stringify(await workloads[workload]()));
process.exit(0);
