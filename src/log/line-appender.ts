import type { Subject } from 'rxjs';
import type { Head } from '../protocol/place.js';
import type { LineRefusal, Stored } from './line-store.js';

/** Appends messages after one `end()` of a store. The next one creates another appender. */
export abstract class LineAppender {
  /** The newest message, stored or on its way. */
  protected last: Head | undefined;
  /** Why nothing more is stored. */
  #refused: LineRefusal | undefined;
  readonly #stored$: Subject<Stored>;

  constructor(last: Head | undefined, stored$: Subject<Stored>) {
    this.last = last;
    this.#stored$ = stored$;
  }

  append(head: Head, bytes: Uint8Array, isAgain: boolean): void {
    const problem = this.#refused ? undefined : misplaced(this.last, head);
    if (!this.isConnected) return this.refuse('away', new Error('The store is disconnected'));
    if (problem === 'stored') return this.stored(head);
    if (problem === 'fenced') this.refuse('fenced', new Error(`Generation ${this.last?.gen} continues the line`));
    try {
      if (this.#refused === undefined) this.store(head, bytes, isAgain);
      else if (!isAgain) this.publish(bytes, this.#refused);
      this.last = head;
    } catch (error) {
      // The client can't send it: it's too large.
      this.refuse('full', error);
    }
  }

  /** From now on, answers don't count. */
  close(): void {
    this.#refused ??= 'away';
  }

  protected abstract get isConnected(): boolean;

  /** Stores a message after the last one, and publishes it unless that was done before. */
  protected abstract store(head: Head, bytes: Uint8Array, isAgain: boolean): void;

  /** Publishes what the store doesn't take any more. */
  protected abstract publish(bytes: Uint8Array, refused: LineRefusal): void;

  protected stored({ offset, count }: Head): void {
    if (this.#refused === undefined) this.#stored$.next({ upTo: offset + count });
  }

  protected refuse(refused: LineRefusal, error: unknown): void {
    if (this.#refused !== undefined) return;
    this.#refused = refused;
    this.#stored$.next({ refused, error });
  }
}

/**
 * Why a message can't follow the last one: `stored` if the line has it, `fenced` if a later generation goes on. To
 * append it anyway would put the line out of order. The parts of a large record have the same offset.
 */
export const misplaced = (last: Head | undefined, { line, gen, offset }: Head): 'stored' | 'fenced' | undefined => {
  if (last?.line !== line || gen > last.gen) return undefined;
  if (gen < last.gen) return 'fenced';
  return offset < last.offset ? 'stored' : undefined;
};
