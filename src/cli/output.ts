import type { Writable } from 'node:stream';
import { firstValueFrom, of, Subject } from 'rxjs';
import { TradeFeedError } from '../index.js';
import { boundDefaults, BoundedQueue } from '../operators/bounded/bounded-queue.js';
import { writeFrame } from '../operators/node/write-frame.js';
import { printable } from '../protocol/printable.js';
import { type CliContext, isTerminal } from './context.js';
import { brokenOf, type Ending, written } from './delivery.js';
import type { CliEvent } from './follow.js';

type OutputLine = string | Uint8Array;

export type Format = (event: CliEvent) => OutputLine | undefined;

export const formatFor = ({ json }: { readonly json?: boolean | undefined }, context: CliContext): Format => {
  const isShown = isTerminal(context.stdout, context);
  if (!json) return payloadFormat(isShown);
  if (!isShown) return jsonFormat;
  // JSON doesn't escape these characters, but they can control a terminal.
  return (event) => jsonFormat(event)?.replaceAll(terminalControls, escapeCharacter);
};

const terminalControls = /[\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;
const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
const newline = Buffer.from('\n');

// A pipe or a file gets text payloads unchanged. On a terminal, they mustn't be able to control it.
const payloadFormat =
  (isShown: boolean): Format =>
  (event) => {
    if (event.type !== 'frame') return undefined;
    if (event.isBinary) return `${event.data.toString('base64')}\n`;
    return isShown ? `${printable(event.text())}\n` : Buffer.concat([event.data, newline]);
  };

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

interface LineWriterOptions {
  /** How many bytes may wait for the stream. Beyond that, it drops the oldest lines. */
  readonly maxBytes: number;
  readonly onDropping: () => void;
  /** Called once the stream accepts more. Returns the line to write in place of the dropped ones. */
  readonly onDropped: (lines: number) => string | undefined;
}

/**
 * Writes lines to a stream that may be slow, without waiting for it. If it waited, a slow reader of stdout would keep
 * it from draining the socket, and the service closes slow clients with 1013.
 */
export class LineWriter {
  readonly #stream: Writable;
  readonly #options: LineWriterOptions;
  readonly #queue: BoundedQueue<OutputLine>;
  readonly #emptied = new Subject<void>();
  // If the reader exits while lines are queued, neither `drain` nor another `error` follows.
  readonly #broken: Promise<unknown>;
  dropped = 0;
  #reported = 0;

  constructor(stream: Writable, options: LineWriterOptions) {
    this.#stream = stream;
    this.#options = options;
    const bounds = { ...boundDefaults, capacity: Infinity, capacityBytes: options.maxBytes };
    this.#queue = new BoundedQueue({ ...bounds, bytesOf: (line: OutputLine) => Buffer.byteLength(line) });
    this.#broken = firstValueFrom(brokenOf(stream), { defaultValue: undefined });
    stream.on('drain', this.#drain);
  }

  write(line: OutputLine): void {
    const waiting = this.#queue.size;
    if (waiting === 0 && !this.#stream.writableNeedDrain) {
      this.#stream.write(line);
      return;
    }
    this.#queue.offer(line);
    this.#drop(waiting + 1 - this.#queue.size);
  }

  /** Resolves like {@link written} when all lines are written. Drops what's left after `withinMs`. */
  async flush(withinMs?: number): Promise<Ending | undefined> {
    const broken = await written(
      this.#stream,
      withinMs,
      this.#queue.size === 0 ? of(undefined) : this.#emptied,
      this.#broken,
    );
    this.#stream.off('drain', this.#drain);
    this.#drop(this.#queue.size);
    this.#queue.end();
    this.#reportDropped();
    return broken;
  }

  readonly #drain = (): void => {
    this.#reportDropped();
    while (this.#queue.size > 0 && !this.#stream.writableNeedDrain) this.#stream.write(this.#queue.take());
    if (this.#queue.size === 0) this.#emptied.next();
  };

  #drop(lines: number): void {
    if (lines > 0 && this.dropped === this.#reported) this.#options.onDropping();
    this.dropped += lines;
  }

  #reportDropped(): void {
    const lines = this.dropped - this.#reported;
    if (lines === 0) return;
    this.#reported = this.dropped;
    const marker = this.#options.onDropped(lines);
    if (marker !== undefined) this.#stream.write(marker);
  }
}
