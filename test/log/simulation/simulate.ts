import { gunzipSync, gzipSync } from 'node:zlib';
import { Bell } from '../../../src/log/bell.js';
import { consume$ } from '../../../src/log/consume.js';
import { type From, LogReader, type LogRecord } from '../../../src/log/reader.js';
import { LogWriter, type Machine } from '../../../src/log/writer.js';
import { Frame } from '../../../src/protocol/frame.js';
import { createFailure } from '../../../src/protocol/failures/trade-feed-error.js';
import { logFailures } from '../../../src/log/log-error.js';
import { createChance } from '../../cluster/simulation/chance.js';
import { type Process, SimulatedDisk } from './disk.js';

export interface Run {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly timeline: readonly string[];
  readonly faults: Readonly<Record<string, number>>;
  readonly frames: number;
  readonly received: number;
  readonly gaps: number;
}

interface Reader {
  readonly name: string;
  process: Process;
  stop: () => void;
}

/** One run of writers, readers and a consumer of one log, in virtual time. */
export const simulate = async (seed: number): Promise<Run> => {
  const chance = createChance(seed);
  const world = new World();
  const disk = new SimulatedDisk(
    chance,
    (ms, call) => world.after(ms, call),
    () => world.now,
  );
  const violations: string[] = [];
  const timeline: string[] = [];
  const faults: Record<string, number> = {};
  const truth = new Map<string, string>();
  let [sent, received, gaps, boots, processes] = [0, 0, 0, 1, 0];
  const note = (text: string) => timeline.push(`${world.now.toFixed(1)} ${text}`);
  const fault = (name: string) => {
    faults[name] = (faults[name] ?? 0) + 1;
    note(name);
  };
  const wrong = (text: string) => {
    if (violations.length < 20) violations.push(`${world.now.toFixed(1)} ${text}`);
    note(`VIOLATION ${text}`);
  };
  const begin = (): Process => ({ isAlive: true, folder: `/${seed}-${(processes += 1)}`, fds: new Set() });
  const machineOf = (process: Process): Machine => {
    const guarded = (call: () => void) => () => {
      if (process.isAlive) call();
    };
    return {
      disk: disk.for(process),
      lockFile: (fd) => disk.lock(process, fd),
      now: () => Math.floor(1_000_000 + world.now),
      boot: () => `boot-${boots}`,
      every: (ms, call) => world.every(ms, guarded(call)),
      soon: (call) => {
        world.after(0, guarded(call));
      },
      atExit: () => () => undefined,
      warn: () => undefined,
      gzip: (bytes, done) => {
        world.after(
          chance.between(1, 30),
          guarded(() => done(null, gzipSync(bytes, { level: 1 }))),
        );
      },
    };
  };

  // The writer.
  let writer: { log: LogWriter; process: Process; isOpen: boolean; connection: number } | undefined;
  const settings = {
    segmentBytes: chance.oneOf([400, 1_500, 6_000]),
    syncMs: chance.oneOf([0, 20, 1_000, Infinity]),
    maxWaitingBytes: chance.oneOf([600, 1e9]),
    maxBytes: chance.oneOf([Infinity, Infinity, 4_000]),
    maxAgeMs: Infinity,
    compress: chance.isTrue(0.4),
    lock: true,
  };
  let connections = 0;
  const startWriter = () => {
    const process = begin();
    try {
      const log = new LogWriter(process.folder, settings, machineOf(process), (error) => {
        note(`writer: ${error.message} ${(error.cause as Error | undefined)?.message ?? ''}`);
        return true;
      });
      writer = { log, process, isOpen: false, connection: 0 };
      note('writer starts');
    } catch (error) {
      disk.kill(process);
      note(`writer cannot start: ${(error as Error).message}`);
    }
  };
  const feed = () => {
    if (writer === undefined) return void (sent += chance.isTrue(0.5) ? 1 : 0);
    const at = Math.floor(1_000_000 + world.now);
    const { log } = writer;
    if (!writer.isOpen) {
      writer.isOpen = true;
      writer.connection = connections += 1;
      log.add({ type: 'opened', at, feed: 'market', connection: writer.connection });
      return;
    }
    if (chance.isTrue(0.03)) {
      writer.isOpen = false;
      const failure = createFailure(logFailures.paused, { stage: 'stream', endedAt: at });
      log.add({ type: 'disconnected', at, failure });
      return;
    }
    const count = Math.floor(chance.between(1, 6));
    for (let n = 0; n < count; n += 1) {
      sent += 1;
      const text = JSON.stringify({ n: sent, pad: 'x'.repeat(Math.floor(chance.between(0, 40))) });
      log.add(new Frame('market', Buffer.from(text), false, at, writer.connection));
    }
  };
  const kill = () => {
    if (writer === undefined) return;
    fault('kill -9');
    disk.kill(writer.process);
    writer = undefined;
  };
  const end = () => {
    if (writer === undefined) return;
    fault('clean end');
    writer.log.end();
    // Its lock stays until a write in flight is back.
    writer = undefined;
  };

  // Readers check the order and the content of what they receive.
  const checker = (name: string) => {
    let last: { offset: number; n: number | undefined } | undefined;
    let missing: number | undefined = 0;
    let hasGap = false;
    let isJump = false;
    return (record: LogRecord) => {
      if (record.type === 'watermark') return;
      if (record.type === 'gap') {
        gaps += 1;
        hasGap = true;
        missing = record.missed === undefined || missing === undefined ? undefined : missing + record.missed;
      }
      if (!('offset' in record)) return;
      const { offset } = record;
      if (last !== undefined && offset === last.offset && record.type !== 'frame' && record.type !== 'gap') return;
      if (last !== undefined && offset <= last.offset)
        wrong(`${name}: ${offset} after ${last.offset} ${JSON.stringify(record).slice(0, 150)}`);
      isJump ||= last !== undefined && offset > last.offset + 1;
      const text = record.type === 'frame' ? record.text() : record.type;
      // An event of the reader has the place before the next record.
      if (record.type === 'frame') {
        const key = `${offset}`;
        const known = truth.get(key);
        if (known !== undefined && known !== text) wrong(`${name}: offset ${offset} was ${known} and is ${text}`);
        truth.set(key, text);
        received += 1;
        const { n } = JSON.parse(text) as { n: number };
        // After a pause the gap follows `opened`.
        if (isJump && !hasGap) wrong(`${name}: ${offset} after ${last?.offset} without a gap`);
        isJump = false;
        if (last?.n !== undefined) {
          const lost = n - last.n - 1;
          if (lost < 0) wrong(`${name}: frame ${n} after ${last.n}`);
          if (!hasGap && lost > 0) wrong(`${name}: frame ${n} after ${last.n} without a gap`);
          if (hasGap && missing !== undefined && missing !== lost)
            wrong(`${name}: a gap says ${missing}, ${lost} are missing before ${n}`);
        }
        last = { offset, n };
        missing = 0;
        hasGap = false;
      } else last = { offset: Math.max(offset, last?.offset ?? -1), n: last?.n };
    };
  };
  const readerMachine = (process: Process) => ({
    disk: disk.for(process),
    now: () => Math.floor(1_000_000 + world.now),
    bell: new Bell(process.folder, (ms, call) => world.after(ms, call), false),
  });
  const startReader = (name: string, from: From, check = checker(name)): Reader => {
    const process = begin();
    const reader = new LogReader(process.folder, { from, follow: true, onDamage: 'gap' }, readerMachine(process));
    const run = async () => {
      for (;;) {
        const records = await reader.next(chance.isTrue(0.5) ? 3 : undefined);
        if (records === undefined || !process.isAlive) return;
        records.forEach(check);
        if (chance.isTrue(0.3)) await new Promise<void>((done) => world.after(chance.between(0, 60), done));
        const { position } = reader;
        if (position !== undefined && position.offset < 0) wrong(`${name}: a position of ${position.offset}`);
      }
    };
    run().catch((error: Error) => {
      if (process.isAlive)
        wrong(`${name}: ${error.message} ${String((error.cause as Error | undefined)?.stack ?? error.stack)}`);
    });
    const stop = () => {
      if (process.isAlive && chance.isTrue(0.5)) reader.close();
      disk.kill(process);
    };
    return { name, process, stop };
  };

  // The consumer: what its work has finished, over all of its processes.
  const finished = new Set<number>();
  const skipped: { from: number; to: number }[] = [];
  let consumer: { process: Process; stop: () => void } | undefined;
  let committed = -1;
  const startConsumer = () => {
    const process = begin();
    const machine = machineOf(process);
    // Where the cursor is.
    let last = committed - 1;
    const work = async (records: readonly LogRecord[]) => {
      const offsets = records.flatMap((record) => ('offset' in record ? [record.offset] : []));
      note(`consumer ${process.folder} works on ${offsets.join(' ')}`);
      for (const offset of offsets) {
        if (offset > last + 1) skipped.push({ from: last + 1, to: offset });
        last = Math.max(last, offset);
      }
      await new Promise<void>((done) => world.after(chance.between(1, 80), done));
      if (!process.isAlive) return;
      for (const offset of offsets) finished.add(offset);
    };
    const place = {
      folder: process.folder,
      machine,
      openReader: (options: ConstructorParameters<typeof LogReader>[1]) =>
        new LogReader(process.folder, options, readerMachine(process)),
    };
    consume$(place, 'db', work, { maxBatch: 4, maxInFlight: 3 }).subscribe({
      next: ({ committed: offset }) => {
        if (!process.isAlive) return;
        if (offset < committed && boots === bootOfCommit) wrong(`the cursor goes back from ${committed} to ${offset}`);
        note(`consumer ${process.folder} commits ${offset}`);
        committed = offset;
        bootOfCommit = boots;
        for (let n = offset - 1; n >= 0 && n > offset - 40; n -= 1)
          if (!finished.has(n) && isKnown(n) && !skipped.some(({ from, to }) => n >= from && n < to)) {
            wrong(`the cursor is at ${offset}, but ${n} is not done`);
            break;
          }
      },
      error: (error: Error) => {
        if (process.isAlive && !/EIO|full|EKILLED/.test(String((error.cause as Error | undefined)?.message)))
          wrong(`consumer: ${error.message}`);
      },
    });
    consumer = {
      process,
      stop: () => disk.kill(process),
    };
  };
  let bootOfCommit = 1;
  const isKnown = (n: number) => truth.has(`${n}`);

  const readers = ['a', 'b', 'c'].map((name) => startReader(name, 'earliest'));
  startWriter();
  startConsumer();
  const steps = 260;
  for (let step = 0; step < steps; step += 1) {
    const act = chance.random();
    if (act < 0.62) feed();
    else if (act < 0.66) kill();
    else if (act < 0.69) end();
    else if (act < 0.7) {
      fault('power failure');
      // Every process of the machine ends.
      for (const { process } of readers) disk.kill(process);
      consumer?.stop();
      if (writer !== undefined) disk.kill(writer.process);
      writer = undefined;
      disk.failPower();
      boots += 1;
      readers.forEach((reader, n) => (readers[n] = startReader(reader.name, 'earliest')));
      startConsumer();
    } else if (act < 0.73 && writer === undefined) startWriter();
    else if (act < 0.75) {
      const n = Math.floor(chance.random() * readers.length);
      const reader = readers[n]!;
      reader.stop();
      const highest = Math.max(0, ...[...truth.keys()].map(Number));
      const from = chance.oneOf<From>([
        'earliest',
        'latest',
        { offset: Math.floor(chance.random() * highest) },
        { time: 1_000_000 + world.now * chance.random() },
      ]);
      readers[n] = startReader(reader.name, from);
    } else if (act < 0.76) {
      fault('consumer killed');
      consumer?.stop();
      startConsumer();
    } else if (act < 0.775 && disk.free === Infinity) {
      fault('full disk');
      disk.free = Math.floor(chance.between(0, 200));
    } else if (act < 0.8) {
      if (disk.free !== Infinity) note('space again');
      disk.free = Infinity;
      disk.errors = 0;
    } else if (act < 0.805) {
      fault('disk errors');
      disk.errors = 0.3;
    }
    await world.run(chance.isTrue(0.1) ? chance.between(100, 1_500) : chance.between(0, 12));
    if (writer === undefined && chance.isTrue(0.1)) startWriter();
  }
  // Everything works again, and all readers reach the end.
  disk.free = Infinity;
  disk.errors = 0;
  await world.run(3_000);
  for (let attempt = 0; writer === undefined && attempt < 20; attempt += 1) {
    startWriter();
    await world.run(500);
  }
  if (writer === undefined) wrong('no writer can start');
  for (let n = 0; n < 5; n += 1) feed();
  await world.run(500);
  for (let n = 0; n < 3; n += 1) feed();
  writer?.log.end();
  await world.run(5_000);
  const lastFrame = sent;
  const last = new Map<string, number>();
  for (const { name, stop } of readers) {
    stop();
    let newest = 0;
    const check = checker(`${name}, at the end`);
    const again = startReader(name, 'earliest', (record) => {
      check(record);
      if (record.type === 'frame') newest = (JSON.parse(record.text()) as { n: number }).n;
    });
    for (let n = 0; n < 40 && newest !== lastFrame; n += 1) await world.run(1_000);
    again.stop();
    last.set(name, newest);
    if (newest !== lastFrame) wrong(`${name}: the last frame is ${newest}, of ${lastFrame}`);
  }
  const end_ = Math.max(...[...truth.keys()].map(Number)) + 1;
  for (let n = 0; n < 60 && committed < end_; n += 1) await world.run(1_000);
  consumer?.stop();
  if (committed < end_) wrong(`the consumer is at ${committed}, the log at ${end_}`);
  return {
    seed,
    violations,
    timeline,
    faults,
    frames: sent,
    received,
    gaps,
    files: disk
      .names()
      .map(
        (name) =>
          `== ${name}\n${(name.endsWith('.gz') ? gunzipSync(disk.bytes(name)).toString() : disk.text(name)).slice(0, 3_000)}`,
      ),
  } as Run;
};

/** A queue of events in virtual time. Promises settle between two events. */
class World {
  now = 0;
  #number = 0;
  readonly #queue: { readonly at: number; readonly number: number; readonly call: () => void; isCanceled: boolean }[] =
    [];

  after(ms: number, call: () => void): () => void {
    const event = { at: this.now + Math.max(0, ms), number: (this.#number += 1), call, isCanceled: false };
    let index = this.#queue.length;
    while (index > 0 && this.#queue[index - 1]!.at > event.at) index -= 1;
    this.#queue.splice(index, 0, event);
    return () => {
      event.isCanceled = true;
    };
  }

  every(ms: number, call: () => void): () => void {
    let cancel = () => {};
    const next = () => {
      cancel = this.after(ms, () => {
        next();
        call();
      });
    };
    next();
    return () => cancel();
  }

  async run(ms: number): Promise<void> {
    const until = this.now + ms;
    await settled();
    for (;;) {
      const event = this.#queue[0];
      if (event === undefined || event.at > until) break;
      this.#queue.shift();
      if (event.isCanceled) continue;
      this.now = event.at;
      event.call();
      await settled();
    }
    this.now = until;
  }
}

// More than the longest chain of promises in the log.
const settled = async (): Promise<void> => {
  for (let n = 0; n < 25; n += 1) await undefined;
};
