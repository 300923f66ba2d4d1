import { gunzipSync, gzipSync } from 'node:zlib';
import { type SchedulerLike, Subscription } from 'rxjs';
import { createLifecycle, type Lifecycle } from '../../../src/feed/lifecycle.js';
import { Bell } from '../../../src/log/bell.js';
import { committedIn, consume$, openCursor } from '../../../src/log/consume.js';
import type { FolderSettings } from '../../../src/log/options.js';
import { LogReader } from '../../../src/log/reader.js';
import type { From, LogRecord, ReaderSettings } from '../../../src/log/records.js';
import type { Machine } from '../../../src/log/segments.js';
import { LogWriter } from '../../../src/log/writer.js';
import { logMeanings } from '../../../src/log/log-error.js';
import { createFailure } from '../../../src/protocol/failures/trade-feed-error.js';
import { Frame } from '../../../src/protocol/frame.js';
import { type Chance, createChance } from '../../simulation/chance.js';
import { type Run as AnyRun, Timeline } from '../../simulation/timeline.js';
import { Time } from '../../simulation/world.js';
import { type Process, SimulatedDisk } from './disk.js';
import { isLater, keyOf, type Numbered, Observer, type Truth } from './observer.js';

export interface Run extends AnyRun {
  readonly frames: number;
  readonly received: number;
  readonly gaps: number;
  readonly virtualMs: number;
  readonly files: readonly (readonly [name: string, text: string])[];
}

/** Runs writers, readers and a consumer of one log once, in virtual time. */
export const simulate = (seed: number): Promise<Run> => new Simulation(seed).run();

/** A writer, and the feed whose events it adds. */
interface Writing {
  readonly log: LogWriter;
  readonly process: Process;
  readonly source: Lifecycle;
  isOpen: boolean;
  hasFrame: boolean;
}

interface Running {
  readonly process: Process;
  readonly close: () => void;
}

class Simulation {
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #time = new Time();
  readonly #timeline = new Timeline(this.#time);
  readonly #disk: SimulatedDisk;
  readonly #truth: Truth;
  readonly #settings: FolderSettings;
  #writer: Writing | undefined;
  readonly #readers = new Map<string, Running & { readonly observer: Observer; readonly reader: LogReader }>();
  #consumer: Running | undefined;
  /** What the consumer has received. */
  #consumed: Observer | undefined;
  #committed = 0;
  #sent = 0;
  #boots = 1;
  readonly #processes: Process[] = [];
  readonly #bells: Bell[] = [];
  /** What happens in a step, and how often of a thousand times. */
  readonly #steps: readonly (readonly [share: number, act: () => void])[] = [
    [620, () => this.#feed()],
    [40, () => this.#kill()],
    [30, () => this.#endWriter()],
    [10, () => this.#failPower()],
    [30, () => this.#startWriter()],
    [20, () => this.#restartReader()],
    [10, () => this.#killConsumer()],
    [15, () => this.#fillDisk()],
    [25, () => this.#repairDisk()],
    [5, () => this.#failCalls()],
    [10, () => this.#loseSegment()],
    [185, () => undefined],
  ];
  #connections = 0;

  constructor(seed: number) {
    this.#seed = seed;
    this.#chance = createChance(seed);
    this.#disk = new SimulatedDisk(this.#chance, this.#time);
    this.#settings = {
      segmentBytes: this.#chance.oneOf([400, 1_500, 6_000]),
      syncMs: this.#chance.oneOf([0, 20, 1_000, Infinity]),
      maxWaitingBytes: this.#chance.oneOf([600, 1e9]),
      maxBytes: this.#chance.oneOf([Infinity, Infinity, 4_000]),
      maxAgeMs: Infinity,
      compress: this.#chance.isTrue(0.4),
    };
    const canLose = this.#settings.maxBytes !== Infinity;
    this.#truth = {
      contents: new Map(),
      sinceBoot: new Map(),
      newest: { gen: 0, offset: -1 },
      canLose,
      hasLost: false,
      received: 0,
      gaps: 0,
      timeline: this.#timeline,
    };
  }

  async run(): Promise<Run> {
    for (const name of ['a', 'b', 'c']) this.#startReader(name, 'earliest');
    this.#startWriter();
    this.#startConsumer();
    for (let step = 0; step < 120; step += 1) {
      this.#step();
      const { isTrue, between } = this.#chance;
      await this.#time.passSlowly(isTrue(0.05) ? between(100, 1_500) : between(0, 12));
      if (this.#writer === undefined && isTrue(0.1)) this.#startWriter();
    }
    await this.#end();
    // All bells of a process are in one list, which would keep this run in memory.
    for (const bell of this.#bells) bell.close();
    const { received, gaps } = this.#truth;
    return {
      ...this.#timeline.result(this.#seed),
      ...{ frames: this.#sent, received, gaps, virtualMs: this.#time.now() },
      files: this.#disk.names().map((name) => [name, this.#disk.text(name)]),
    };
  }

  #step(): void {
    // A failed fsync ends it.
    if (this.#writer !== undefined && !this.#disk.hasLock(this.#writer.process)) this.#writer = undefined;
    this.#chance.oneByShare(this.#steps)();
  }

  #begin(): Process {
    const process = { isAlive: true, folder: `/${this.#seed}-${this.#processes.length}`, fds: new Set<number>() };
    this.#processes.push(process);
    return process;
  }

  get #now(): number {
    return Math.floor(1_000_000 + this.#time.now());
  }

  #machine(process: Process): Machine {
    const time = this.#time;
    const guarded = (call: () => void) => () => {
      if (process.isAlive) call();
    };
    return {
      disk: this.#disk.for(process),
      lockFile: (fd) => this.#disk.lock(process, fd),
      now: () => this.#now,
      monotonic: () => time.now(),
      newId: () =>
        this.#chance
          .whole(0, 2 ** 40)
          .toString(16)
          .padStart(12, '0'),
      every: (ms, call) => time.every(ms, guarded(call)),
      soon: (call) => void time.after(0, guarded(call)),
      atExit: () => () => undefined,
      warn: () => undefined,
      gzip: (bytes, done) =>
        void time.after(
          this.#chance.between(1, 30),
          guarded(() => done(null, gzipSync(bytes, { level: 1 }))),
        ),
    };
  }

  /** The timers of a feed, which end with its process. */
  #scheduler(process: Process): SchedulerLike {
    const schedule = (work: () => void, ms = 0) =>
      new Subscription(this.#time.after(ms, () => process.isAlive && work()));
    return { now: () => this.#now, schedule: schedule as SchedulerLike['schedule'] };
  }

  #reader(process: Process, settings: ReaderSettings): LogReader {
    const time = this.#time;
    const bell = new Bell(process.folder, (ms, call) => time.after(ms, call), false);
    this.#bells.push(bell);
    return new LogReader(process.folder, settings, {
      disk: this.#disk.for(process),
      now: () => this.#now,
      bell,
      gunzip: async (bytes) => {
        await time.wait(1);
        return gunzipSync(bytes);
      },
      turn: () => time.wait(0),
      bufferBytes: 512,
    });
  }

  // The writer.

  #startWriter(): void {
    if (this.#writer !== undefined) return;
    const process = this.#begin();
    try {
      const log = new LogWriter(process.folder, this.#settings, this.#machine(process), (error) => {
        this.#timeline.note(`writer: ${String((error.cause as Error | undefined)?.message)}`);
        return true;
      });
      const source = createLifecycle((event) => log.add(event), { scheduler: this.#scheduler(process) });
      this.#writer = { log, process, source, isOpen: false, hasFrame: false };
      this.#timeline.note('writer starts');
    } catch (error) {
      this.#disk.kill(process);
      this.#timeline.note(`writer cannot start: ${(error as Error).message.slice(0, 60)}`);
    }
  }

  #feed(): void {
    const { isTrue, whole } = this.#chance;
    const writer = this.#writer;
    if (writer === undefined) {
      this.#sent += isTrue(0.5) ? 1 : 0;
      return;
    }
    // The frames of some sources are late, as those of the plan Free.
    const at = this.#now - (this.#seed % 3 === 0 ? 40 : 0);
    if (!writer.isOpen) {
      writer.isOpen = true;
      writer.hasFrame = false;
      this.#connections += 1;
      // Half of the feeds have the option `deliveryDelayMs: 0`, as for the plan Developer.
      const complete = this.#seed % 2 === 1 && { completeFrom: at };
      writer.source.emit({ type: 'opened', at, feed: 'market', connection: this.#connections, ...complete });
    } else if (isTrue(0.03)) {
      writer.isOpen = false;
      const failure = createFailure(logMeanings.paused, { stage: 'stream', endedAt: at });
      writer.source.emit({ type: 'disconnected', at, failure });
    } else {
      if (!writer.hasFrame) writer.source.firstFrame(at);
      writer.hasFrame = true;
      for (let count = whole(1, 6); count > 0; count -= 1) {
        this.#sent += 1;
        const text = JSON.stringify({ n: this.#sent, pad: 'x'.repeat(whole(0, 40)) });
        writer.log.add(new Frame('market', Buffer.from(text), false, at, this.#connections));
      }
    }
  }

  #kill(): void {
    if (this.#writer === undefined) return;
    this.#timeline.fault('kill -9');
    this.#disk.kill(this.#writer.process);
    this.#writer = undefined;
  }

  #endWriter(): void {
    if (this.#writer === undefined) return;
    this.#timeline.fault('clean end');
    // It keeps its lock until a write in flight returns.
    this.#writer.log.end();
    this.#writer = undefined;
  }

  // The readers.

  #startReader(name: string, from: From): void {
    const { isTrue, between } = this.#chance;
    const process = this.#begin();
    const observer = new Observer(name, this.#truth);
    const reader = this.#reader(process, { from, follow: true, onDamage: 'gap' });
    const run = async () => {
      for (;;) {
        const records = await reader.next(isTrue(0.5) ? 3 : undefined);
        if (records === undefined || !process.isAlive) return;
        observer.receive(records, reader.position);
        if (isTrue(0.3)) await this.#time.wait(between(0, 60));
      }
    };
    run().catch((error: unknown) => {
      if (process.isAlive) this.#timeline.wrong(`${name}: ${String(error)}`);
    });
    this.#readers.set(name, { process, observer, reader, close: () => reader.close() });
  }

  #stopReader(name: string): void {
    const { process, close } = this.#readers.get(name)!;
    if (this.#chance.isTrue(0.5)) close();
    this.#disk.kill(process);
  }

  #restartReader(): void {
    const { oneOf, random } = this.#chance;
    const name = oneOf(['a', 'b', 'c']);
    this.#stopReader(name);
    const offset = Math.floor(random() * Math.max(0, this.#truth.newest.offset));
    const time = 1_000_000 + this.#time.now() * random();
    this.#startReader(name, oneOf<From>(['earliest', 'latest', { offset }, { time }]));
  }

  // The consumer.

  #startConsumer(): void {
    const { between } = this.#chance;
    const process = this.#begin();
    const machine = this.#machine(process);
    const before = committedIn(process.folder, 'db', machine.disk);
    // After a power failure the cursor is older than what a consumer has reported, after a kill it is newer.
    const observer = (this.#consumed = new Observer('consumer', this.#truth, before, this.#consumed));
    const batches: { readonly offsets: readonly Numbered[]; isDone: boolean }[] = [];
    let position: LogReader | undefined;
    const work = async (records: readonly LogRecord[]) => {
      if (!process.isAlive) return;
      observer.receive(records, position?.position);
      const offsets = records.flatMap((record) =>
        record.type === 'watermark' || record.offset === undefined ? [] : { ...record.position, offset: record.offset },
      );
      const batch = { offsets, isDone: false };
      batches.push(batch);
      await this.#time.wait(between(1, 80));
      batch.isDone = process.isAlive;
    };
    const openReader = (options: ReaderSettings) => (position = this.#reader(process, options));
    const { folder } = process;
    const log = { path: folder, now: machine.now, openReader, openCursor: () => openCursor(folder, 'db', machine) };
    const subscription = consume$(log, 'db', work, { maxBatch: 4, maxInFlight: 3 }).subscribe({
      next: ({ committed }) => {
        if (!process.isAlive) return;
        this.#timeline.note(`commits ${committed}`);
        const open = batches.filter(({ isDone }) => !isDone).flatMap(({ offsets }) => offsets);
        const cursor = committedIn(process.folder, 'db', machine.disk)!;
        const passed = open.find((each) => !isLater(each, { ...cursor, offset: cursor.offset - 1 }));
        if (passed) this.#timeline.wrong(`the cursor is at ${committed}, but ${keyOf(passed)} is not done`);
        this.#committed = committed;
      },
      error: (error: Error) => {
        if (!process.isAlive) return;
        if ((error as { code?: string }).code !== 'log-write-failed')
          this.#timeline.wrong(`consumer: ${error.message}`);
        // The disk is full: start over, as `retry` does.
        this.#time.after(500, () => {
          if (process.isAlive) this.#restartConsumer();
        });
      },
    });
    this.#consumer = { process, close: () => subscription.unsubscribe() };
  }

  #restartConsumer(): void {
    this.#disk.kill(this.#consumer!.process);
    this.#startConsumer();
  }

  #killConsumer(): void {
    this.#timeline.fault('consumer killed');
    this.#restartConsumer();
  }

  // The machine.

  #failPower(): void {
    this.#timeline.fault('power failure');
    for (const process of this.#processes) this.#disk.kill(process);
    this.#writer = undefined;
    this.#disk.failPower();
    this.#boots += 1;
    this.#truth.sinceBoot.clear();
    this.#truth.canLose = true;
    for (const name of this.#readers.keys()) this.#startReader(name, 'earliest');
    this.#startConsumer();
  }

  /** Somebody removes the newest segment, or cuts it. */
  #loseSegment(): void {
    if (![0, 7, 8].includes(this.#seed % 9)) return;
    const newest = this.#disk.names().findLast((name) => name.endsWith('.ndjson'));
    const { offset = 0 } = JSON.parse(this.#disk.text('writer.json') || '{}') as { readonly offset?: number };
    // After two losses in a row, nobody knows which generation has written the lines of a segment without a header.
    if (newest === undefined || offset < this.#truth.newest.offset) return;
    this.#timeline.fault('segment lost');
    this.#disk.lose(newest, this.#chance.isTrue(0.5));
    this.#truth.hasLost = this.#truth.canLose = true;
  }

  #failCalls(): void {
    this.#timeline.fault('disk errors');
    this.#disk.errors = 0.3;
  }

  #fillDisk(): void {
    if (this.#disk.free !== Infinity) return;
    this.#timeline.fault('full disk');
    const { between, isTrue } = this.#chance;
    this.#disk.free = this.#chance.whole(0, 200);
    // Another program removes its files, which makes room for a waiting write.
    if (isTrue(0.5)) this.#time.after(between(10, 1_200), () => (this.#disk.free = Infinity));
  }

  #repairDisk(): void {
    this.#disk.free = Infinity;
    this.#disk.errors = 0;
  }

  /** Repairs everything, after which all readers and the consumer must reach the end. */
  async #end(): Promise<void> {
    const wrong = (text: string): void => this.#timeline.wrong(text);
    this.#repairDisk();
    await this.#time.passSlowly(1_500);
    if (this.#writer !== undefined && !this.#disk.hasLock(this.#writer.process)) this.#writer = undefined;
    for (let attempt = 0; this.#writer === undefined && attempt < 20; attempt += 1) {
      this.#startWriter();
      await this.#time.passSlowly(500);
    }
    if (this.#writer === undefined) wrong('no writer can start');
    for (let n = 0; n < 5; n += 1) this.#feed();
    await this.#time.passSlowly(300);
    for (let n = 0; n < 3; n += 1) this.#feed();
    this.#writer?.log.end();
    await this.#time.passSlowly(500);
    this.#startReader('at the end', 'earliest');
    const last = this.#readers.get('at the end')!.observer;
    const end = () => this.#truth.newest.offset + 1;
    const isDone = ({ observer, reader }: { observer: Observer; reader: LogReader }) =>
      observer.isGone && reader.position?.offset === end();
    if (!(await this.#time.passUntil(() => [...this.#readers.values()].every(isDone), 20_000)))
      for (const [name, each] of this.#readers)
        if (!isDone(each)) wrong(`${name} is at ${each.reader.position?.offset} of ${end()}, ${each.observer.isGone}`);
    for (const [key, at] of this.#truth.sinceBoot)
      // Retention has removed those before the first one.
      if (!this.#truth.hasLost && isLater(at, last.first!) && !last.offsets.has(key))
        wrong(`${key} is gone: ${this.#truth.contents.get(key)}`);
    if (!(await this.#time.passUntil(() => this.#committed === end(), 20_000)))
      wrong(`the consumer is at ${this.#committed}, the log at ${end()}`);
    // A power failure may cut off the end of an older segment, and so may somebody.
    if (this.#boots > 1 || this.#truth.hasLost) return;
    for (const name of this.#disk.names().filter((each) => each.endsWith('.ndjson')))
      if (!this.#disk.text(name).endsWith('\n')) wrong(`${name} ends with a torn line`);
  }
}
