import { Observable, type Subscriber } from 'rxjs';
import { type AsyncContext, contextOutside } from '../operators/items/async-context.js';
import type { Block } from './block.js';
import type { StreamResponse } from './http.js';
import { endOfId, type RelayMessage } from './relay-message.js';
import type { RelayResponse } from './relay-options.js';

/** Where the messages of a page go: to the subscriber, and blocks to its response, if that takes them. */
export class PageOutput {
  readonly #subscriber: Subscriber<RelayMessage>;
  readonly #response: RelayResponse | undefined;
  readonly #blocks: StreamResponse | undefined;
  readonly #stream: string | undefined;
  readonly #end: Uint8Array;
  readonly #own: AsyncContext | undefined;

  constructor(
    subscriber: Subscriber<RelayMessage>,
    response: RelayResponse | StreamResponse | undefined,
    stream: string | undefined,
    home: AsyncContext | undefined,
  ) {
    this.#own = contextOutside(home);
    this.#subscriber = subscriber;
    this.#response = response;
    this.#blocks = response !== undefined && 'writeBlock' in response ? response : undefined;
    this.#stream = stream;
    this.#end = stream === undefined ? endWithoutStream : Buffer.from(endOfId(stream));
  }

  /** Whether the client has left, or has received its last message. */
  get isOver(): boolean {
    return this.#subscriber.closed;
  }

  /** Whether the client must read before it receives more. */
  get isFull(): boolean {
    return this.#response?.writableNeedDrain === true;
  }

  /** Emits each time that the client has read what it has. */
  get drained$(): Observable<void> {
    return new Observable((drains) => {
      const listener = (): void => drains.next();
      this.#response?.on('drain', listener);
      return () => this.#response?.off('drain', listener);
    });
  }

  write(block: Block): void {
    const response = this.#blocks;
    if (response === undefined) return this.#subscriber.next(block.messageOf(this.#stream));
    if (this.#own === undefined) response.writeBlock(block.bytes, this.#end);
    else this.#own.runInAsyncScope(response.writeBlock, undefined, block.bytes, this.#end);
  }

  send(message: RelayMessage): void {
    this.#subscriber.next(message);
    if (message.type === 'connect-again' || message.type === 'complete') this.#subscriber.complete();
  }

  destroy(): void {
    this.#response?.destroy();
  }
}

const endWithoutStream = Buffer.from(endOfId(undefined));
