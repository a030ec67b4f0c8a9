// BullMQ on Node: the orders of bench/peers/__main__.py and the ledger of bench/ledger.py, in JavaScript.
// Packages come from the peer's own directory, which is the working directory.
import fs from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.cwd()}/`);
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const QUEUE = "bench";
const SLOTS = 200;
const CHUNK = 1000;
const WARM_MAX = 500;
const NAP_MS = 50;
const MAX_SAMPLES = 4096;
const PAD = "x".repeat(132);
const OPTIONS = { removeOnComplete: true };

const connect = () => new Redis(process.env.BENCH_URL, { maxRetriesPerRequest: null });
const seconds = () => performance.now() / 1000;
const payload = (kind, number) => ({
  kind,
  number,
  sent_ns: Number(process.hrtime.bigint()),
  pad: PAD,
});

// Kept in memory and written at most every 2 ms while jobs finish: Node cannot map a file.
class Ledger {
  constructor(path) {
    this.file = fs.openSync(path, "r+");
    this.slots = new BigInt64Array(4 + MAX_SAMPLES);
    this.dirty = false;
    setInterval(() => this.flush(), 2);
  }

  begin() {
    const now = process.hrtime.bigint();
    if (!this.slots[1]) this.slots[1] = now;
    return now;
  }

  end() {
    this.slots[2] = process.hrtime.bigint();
    this.slots[0] += 1n;
    this.dirty = true;
  }

  sample(elapsed) {
    const index = Number(this.slots[3]);
    if (index >= MAX_SAMPLES) return;
    this.slots[4 + index] = elapsed;
    this.slots[3] += 1n;
  }

  flush() {
    if (!this.dirty) return;
    this.dirty = false;
    const used = 8 * (4 + Number(this.slots[3]));
    fs.writeSync(this.file, new Uint8Array(this.slots.buffer, 0, used), 0, used, 0);
  }
}

const orders = {
  async bulk(queue, kind, count) {
    const jobs = Array.from({ length: Number(count) }, (_, number) => ({
      name: "run",
      data: payload(kind, number),
      opts: OPTIONS,
    }));
    const warm = Math.min(Math.floor(jobs.length / 10), WARM_MAX);
    await queue.addBulk(jobs.slice(0, warm));
    const began = seconds();
    for (let start = warm; start < jobs.length; start += CHUNK) {
      await queue.addBulk(jobs.slice(start, start + CHUNK));
    }
    return { jobs: jobs.length - warm, seconds: seconds() - began };
  },

  async single(queue, duration) {
    for (let number = 0; number < 100; number++) {
      await queue.add("run", payload("noop", number), OPTIONS);
    }
    const began = seconds();
    let jobs = 0;
    while (seconds() < began + Number(duration)) {
      await queue.add("run", payload("noop", jobs), OPTIONS);
      jobs += 1;
    }
    return { jobs, seconds: seconds() - began };
  },

  async pace(queue, count, interval) {
    const began = seconds();
    for (let number = 0; number < Number(count); number++) {
      const wait = began + number * Number(interval) - seconds();
      if (wait > 0) await sleep(wait * 1000);
      await queue.add("run", payload("stamp", number), OPTIONS);
    }
    return { jobs: Number(count), seconds: seconds() - began };
  },
};

function work(slots) {
  const ledger = new Ledger(process.env.BENCH_LEDGER);
  const perform = async (job) => {
    const started = ledger.begin();
    if (job.data.kind === "stamp") ledger.sample(started - BigInt(job.data.sent_ns));
    if (job.data.kind === "nap") await sleep(NAP_MS);
    ledger.end();
  };
  new Worker(QUEUE, perform, { connection: connect(), concurrency: slots || SLOTS });
}

const [command, ...args] = process.argv.slice(2);
if (command === "probe") {
  console.log(JSON.stringify({ name: "bullmq-node" }));
} else if (command === "worker") {
  work(Number(args[0]));
} else {
  const connection = connect();
  const queue = new Queue(QUEUE, { connection });
  await queue.waitUntilReady();
  console.log(JSON.stringify(await orders[command](queue, ...args)));
  await queue.close();
  connection.disconnect();
}
