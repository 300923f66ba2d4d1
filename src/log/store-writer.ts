// The writer of a log in a store.
//
// In: frames and events of a feed. Out: messages, each directly after the last one.
// Never: a record before it's certain that nobody else writes the log, or more than `maxWaitingBytes` in memory.
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { firstValueFrom, skipWhile, Subscription, timeout } from 'rxjs';
import { newLine, type Place, startOf } from '../protocol/place.js';
import type { Fail } from './append.js';
import { recordLine } from './lines.js';
import { lineLimits, type LineStore, type Stored as Answer } from './line-store.js';
import { LineWriter } from './line-writer.js';
import { inUse, LogError } from './log-error.js';
import { encodeMessage, type LogHead } from './log-message.js';
import { Recorder } from './recorder.js';
import { awayMs, fencedOff, isConnected$, refusedBy, type StoredLog, StoreFaults, takeRole } from './stored-log.js';

const batchMs = 16;
const batchBytes = 256 * 1024;
/** The size of a message on a server that doesn't limit it. */
const mostBytes = 16 * 1024 * 1024;
const beatMs = 250;
const retryMs = 250;

/** A log that this process writes. */
interface Taken {
  readonly store: LineStore;
  /** The message with which it took the log: it has no records. */
  readonly head: LogHead;
  readonly release: () => void;
}

const noBody = new Uint8Array();

/**
 * Takes a log: from then on, older writers are fenced.
 *
 * @param isOver - whether nobody needs it any more
 * @throws LogError with the code `log-in-use` if another writer has it
 */
export const takeLog = async (log: StoredLog, fail: Fail, isOver: () => boolean): Promise<Taken> => {
  const faults = new StoreFaults(log, (error) => fail(error));
  const writer = randomBytes(6).toString('hex');
  const store = log.engine.line(log.spec);
  let release: (() => void) | undefined;
  let closed: LogError | undefined;
  const watching = isConnected$(log).subscribe({
    error: (error: unknown) => (closed = refusedBy(log, 'write', error)),
  });
  try {
    while (!isOver()) {
      try {
        const last = (await store.end()) as LogHead | undefined;
        release ??= await takeRole(log, 'writer');
        if (release === undefined) throw inUse(log.path);
        const head = claim(last, writer);
        const answer = await stored(store, head);
        const end = (await store.end()) as LogHead | undefined;
        if (end?.writer === writer) {
          faults.worked();
          return { store, head, release };
        }
        // Another one was faster.
        if (end !== undefined && (end.gen !== last?.gen || end.writer !== last.writer)) throw inUse(log.path);
        // The last writer's end came in between: what follows it is stored.
        const isLate = 'refused' in answer && answer.refused === 'fenced';
        if (!isLate) faults.failed('refused' in answer ? answer.error : undefined);
      } catch (error) {
        if (error instanceof LogError) throw error;
        // Nothing answers any more.
        if (closed !== undefined) throw closed;
        faults.failed(error);
      }
      // A failure may have ended it.
      if (!isOver()) await delay(retryMs);
    }
    throw fencedOff(log);
  } catch (error) {
    faults.worked();
    release?.();
    throw error;
  } finally {
    watching.unsubscribe();
  }
};

const claim = (last: LogHead | undefined, writer: string): LogHead => {
  const { gen: after = 0 } = last ?? {};
  // The store may have lost the last generation, whose number readers know: no other one gets it.
  const gen = Math.max(after + 1, Date.now());
  const place = { ...(last?.next ?? startOf(newLine())), gen };
  return { ...place, after, began: place.offset, count: 0, writer, state: [], next: place, part: 0, parts: 1 };
};

/** Stores a message. Returns what became of it. */
const stored = (store: LineStore, head: LogHead): Promise<Answer> => {
  const answered = firstValueFrom(store.stored$.pipe(timeout({ first: lineLimits.requestMs })));
  store.append(head, encodeMessage(head, noBody));
  return answered;
};

/** Records that are sent together. */
interface Batch {
  readonly before: Place;
  readonly state: LogHead['state'];
  readonly limit: number;
  text: string;
  bytes: number;
}

export class StoreWriter {
  readonly #log: StoredLog;
  readonly #store: LineStore;
  readonly #release: () => void;
  readonly #maxWaitingBytes: number;
  readonly #fail: (error: LogError, canContinue?: boolean) => void;
  readonly #faults: StoreFaults;
  readonly #line: LineWriter;
  readonly #recorder: Recorder;
  readonly #claimed: LogHead;
  readonly #others = new Subscription();
  #batch: Batch | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sentAt = performance.now();
  #ended: Promise<void> | undefined;
  /** Whether nothing may be sent any more. */
  #isClosed = false;

  constructor(log: StoredLog, { store, head, release }: Taken, maxWaitingBytes: number, fail: Fail) {
    [this.#log, this.#store, this.#claimed, this.#release] = [log, store, head, release];
    this.#maxWaitingBytes = maxWaitingBytes;
    this.#fail = (error, canContinue = true) => {
      // The end of its stream ends the writer, whose last message would be refused as well.
      if (!canContinue) this.#stop();
      if (!fail(error, canContinue)) this.#stop();
    };
    this.#faults = new StoreFaults(log, (error) => this.#fail(error));
    this.#line = new LineWriter(store, {
      maxBytes: () => log.engine.maxMessageBytes?.() ?? Infinity,
      maxWaitingBytes: Infinity,
      refused: (error) => {
        if (error === undefined) this.#faults.worked();
        else if (this.#ended === undefined) this.#faults.failed(error);
      },
      fenced: () => this.#fail(fencedOff(log), false),
    });
    this.#recorder = new Recorder(head.next, Date.now, (record, time, at, before) =>
      this.#add(recordLine(before.offset, record, time, at), before),
    );
    this.#others.add(
      store.stored$.subscribe((answer) => {
        this.#line.stored(answer);
        this.#goOn();
      }),
    );
    this.#others.add(
      // It's connected: only after an outage it must ask what the store has.
      isConnected$(log)
        .pipe(skipWhile(Boolean))
        .subscribe({
          next: (isConnected) => isConnected && this.#line.retry(),
          error: (error: unknown) => this.#closed(error),
        }),
    );
    const beats = setInterval(() => this.#beat(), beatMs);
    this.#others.add(() => clearInterval(beats));
  }

  /** Adds an event. Ignores values that aren't events of a feed. */
  add(value: unknown): void {
    if (this.#ended === undefined) this.#recorder.add(value);
  }

  /** Ends with the error of the source, which stops the feed, unless an event has said so already. */
  stopped(thrown: unknown): Promise<void> {
    if (this.#ended === undefined) this.#recorder.stopped(thrown);
    return this.end();
  }

  /** Resolves when everything is stored, or its failure is reported. What waits has been sent before it returns. */
  end(): Promise<void> {
    if (this.#ended !== undefined) return this.#ended;
    this.#recorder.goOn();
    this.#flush();
    this.#send({ ...this.#place(), closed: true }, noBody);
    // From now on, only the end says what fails.
    this.#faults.worked();
    return (this.#ended = this.#finish());
  }

  async #finish(): Promise<void> {
    // Nothing answers any more over a connection that was closed.
    const stopped = new Promise<void>((done) => this.#others.add(done));
    try {
      await Promise.race([this.#line.finish(awayMs), stopped]);
    } catch (error) {
      this.#fail(refusedBy(this.#log, 'write', error), false);
    }
    this.#stop();
  }

  #stop(): void {
    this.#ended ??= Promise.resolve();
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#others.unsubscribe();
    this.#faults.worked();
    this.#line.close();
    this.#release();
  }

  #closed(error: unknown): void {
    const isEnding = this.#ended !== undefined;
    if (isEnding && this.#line.waitingBytes === 0) return this.#stop();
    const problem = isEnding ? new Error('its connection was closed before the last records were confirmed') : error;
    this.#fail(refusedBy(this.#log, 'write', problem), false);
  }

  /** The head of a message without records. */
  #place(): LogHead {
    const { end, isLosing } = this.#recorder;
    // What waits isn't recorded for others yet.
    const place = this.#batch?.before ?? end;
    const reached = this.#batch || isLosing ? undefined : this.#recorder.reached();
    return { ...this.#claimed, ...place, count: 0, state: [], next: place, reached };
  }

  /** Says that the writer is alive, and how far it is. */
  #beat(): void {
    if (!this.#recorder.isLosing) this.#recorder.settle();
    this.#goOn();
    const head = this.#place();
    // Retention may remove all others while the market is quiet, and a log without its end would begin anew.
    const { maxAgeMs = Infinity } = this.#log.spec;
    if (performance.now() - this.#sentAt > maxAgeMs / 4 && this.#batch === undefined) this.#send(head, noBody);
    else this.#store.append(head, encodeMessage(head, noBody), 'live');
  }

  #add(line: string, before: Place): void {
    if (this.#isClosed) return;
    const bytes = Buffer.byteLength(line);
    if (this.#batch !== undefined && this.#batch.bytes + bytes > this.#batch.limit) this.#flush(before);
    this.#batch ??= this.#begin(before);
    this.#batch.text += line;
    this.#batch.bytes += bytes;
  }

  #begin(before: Place): Batch {
    const state = this.#recorder.stateAt(before.at);
    // Collects the frames of a few turns in one message. One after a pause doesn't wait.
    this.#timer = setTimeout(() => this.#flush(), this.#sentAt + batchMs - performance.now());
    const limit = Math.min(batchBytes, this.#maxWaitingBytes / 4, this.#room(before, state));
    return { before, state, limit, text: '', bytes: 0 };
  }

  /** How many bytes of records a message can have. The numbers of parts and the headers of the client count as well. */
  #room(before: Place, state: LogHead['state']): number {
    const head = encodeMessage({ ...this.#claimed, ...before, state, next: before }, noBody);
    const limit = this.#log.engine.maxMessageBytes?.() ?? mostBytes;
    return Math.max(1, limit - head.byteLength - 256);
  }

  #flush(next = this.#recorder.end): void {
    clearTimeout(this.#timer);
    const batch = this.#batch;
    if (batch === undefined || this.#isClosed) return;
    this.#batch = undefined;
    const { before, state, text } = batch;
    const head = { ...this.#claimed, ...before, state };
    const body = Buffer.from(text);
    const room = this.#room(before, state);
    const parts = Math.ceil(body.byteLength / room);
    for (let part = 0; part < parts; part += 1) {
      const bytes = body.subarray(part * room, (part + 1) * room);
      const end = part === parts - 1 ? next : before;
      this.#send({ ...head, part, parts, count: end.offset - before.offset, next: end }, bytes);
    }
    if (this.#line.waitingBytes > this.#maxWaitingBytes) this.#lose();
  }

  #send(head: LogHead, body: Uint8Array): void {
    this.#sentAt = performance.now();
    this.#line.append(head, encodeMessage(head, body));
  }

  /** Too much waits: from now on, records are only counted. */
  #lose(): void {
    this.#recorder.lose();
    const { path } = this.#log;
    const problem = `Can't write the log ${path}: more than ${this.#maxWaitingBytes} bytes wait for its store.`;
    const advice = 'Look at the load of the server and at the network, or raise `maxWaitingBytes`.';
    this.#fail(new LogError('log-write-failed', problem, { path, advice }));
  }

  /** Records go on once half of the room is free again, or gaps and frames would alternate. */
  #goOn(): void {
    if (this.#recorder.isLosing && this.#line.waitingBytes <= this.#maxWaitingBytes / 2) this.#recorder.goOn();
  }
}
