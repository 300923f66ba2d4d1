import { firstValueFrom, merge, NEVER, type Observable, Subject } from 'rxjs';
import { TradeFeedError } from '../index.js';
import { boundDefaults, BoundedQueue } from '../operators/bounded/bounded-queue.js';
import { writeFrame } from '../operators/node/write-frame.js';
import { printable } from '../protocol/printable.js';
import { brokenOf } from './delivery.js';
import type { CliEvent } from './follow.js';
import { type CliContext, isTerminal, say } from './terminal.js';
import { counted, logLine } from './text.js';

type OutputLine = string | Uint8Array;

export type Format = (event: CliEvent) => OutputLine | undefined;

/** A pipe or a file gets text payloads unchanged. On a terminal, they mustn't be able to control it. */
export const formatFor = ({ json }: { readonly json?: boolean | undefined }, context: CliContext): Format => {
  const isShown = isTerminal(context.stdout, context);
  // JSON doesn't escape these characters, but they can control a terminal.
  if (json) return isShown ? (event) => jsonFormat(event)?.replaceAll(terminalControls, escaped) : jsonFormat;
  return (event) => {
    if (event.type !== 'frame') return undefined;
    if (event.isBinary) return `${event.data.toString('base64')}\n`;
    return isShown ? `${printable(event.text())}\n` : Buffer.concat([event.data, newline]);
  };
};

const terminalControls = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
const newline = Buffer.from('\n');

/** Prints an event as its line in a log, without the offset, and the failure that stopped the feed as one more line. */
export const jsonFormat = (event: CliEvent): string | undefined => {
  if (event.type === 'frame') return `${writeFrame(event)}\n`;
  if (event.type === 'tick') return undefined;
  if (event.type !== 'ended') return `${JSON.stringify(event)}\n`;
  if (event.ending.kind !== 'failed') return undefined;
  const { error } = event.ending;
  const failure = error instanceof TradeFeedError ? error : { message: String(error) };
  return `${JSON.stringify({ type: 'stopped', at: event.at, failure })}\n`;
};

/**
 * Writes lines to stdout without waiting for it. If it waited, a slow reader would keep it from draining the socket,
 * and the service closes slow clients with 1013. Beyond `maxBytes` it drops the oldest lines that wait, and says so on
 * stderr, and in JSON also in their place.
 */
export class LineWriter {
  readonly #context: CliContext;
  readonly #isJson: boolean;
  readonly #queue: BoundedQueue<OutputLine>;
  readonly #emptied = new Subject<void>();
  // If the reader exits while lines are queued, neither `drain` nor another `error` follows.
  readonly #broken: Promise<unknown>;
  dropped = 0;
  #reported = 0;

  constructor(context: CliContext, isJson = false, maxBytes = 64 * 1024 * 1024) {
    this.#context = context;
    this.#isJson = isJson;
    const bounds = { ...boundDefaults, capacity: Infinity, capacityBytes: maxBytes };
    this.#queue = new BoundedQueue({ ...bounds, bytesOf: (line: OutputLine) => Buffer.byteLength(line) });
    this.#broken = firstValueFrom(brokenOf(context.stdout), { defaultValue: undefined });
    context.stdout.on('drain', this.#drain);
  }

  write(line: OutputLine): void {
    const { stdout } = this.#context;
    const waiting = this.#queue.size;
    if (waiting === 0 && !stdout.writableNeedDrain) {
      stdout.write(line);
      return;
    }
    this.#queue.offer(line);
    this.#drop(waiting + 1 - this.#queue.size);
  }

  /** Resolves when stdout has taken all lines. Drops what's left when it's too late. */
  async flush(late$: Observable<unknown> = NEVER): Promise<void> {
    if (this.#queue.size > 0) await firstValueFrom(merge(this.#broken, this.#emptied, late$));
    this.#context.stdout.off('drain', this.#drain);
    this.#drop(this.#queue.size);
    this.#queue.end();
    this.#reportDropped();
  }

  readonly #drain = (): void => {
    const { stdout } = this.#context;
    this.#reportDropped();
    while (this.#queue.size > 0 && !stdout.writableNeedDrain) stdout.write(this.#queue.take());
    if (this.#queue.size === 0) this.#emptied.next();
  };

  #drop(lines: number): void {
    if (lines > 0 && this.dropped === this.#reported)
      say(this.#context.stderr, logLine('the reader of stdout is too slow: the oldest lines are dropped'));
    this.dropped += lines;
  }

  #reportDropped(): void {
    const lines = this.dropped - this.#reported;
    if (lines === 0) return;
    this.#reported = this.dropped;
    say(this.#context.stderr, logLine(`${counted(lines, 'line')} dropped: the reader of stdout was too slow`));
    if (this.#isJson) this.#context.stdout.write(`${JSON.stringify({ type: 'dropped', at: Date.now(), lines })}\n`);
  }
}
