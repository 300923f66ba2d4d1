import { Decoder, type FeedMessage, headOf } from '../../../src/cluster/messages.js';
import type { LineRefusal } from '../../../src/log/line-store.js';
import { type Page, type Refused, StoredLine } from '../../../src/log/stored-line.js';
import type { Head, Place } from '../../../src/protocol/place.js';
import type { Time } from '../../simulation/world.js';
import { numberOf, type Observer } from './observer.js';

/**
 * How the engine compares what an appended message follows. `ids`: a stream of NATS. `copies`: one with copies, which
 * compares sequences only, so that a replaced owner can come between. `script`: Redis, which keeps such an owner from
 * the subscribers, too.
 */
export type LineKind = 'ids' | 'copies' | 'script';

const decoder = new Decoder('market', 1_000, () => '');

/** Decodes a message of any owner. */
export const decodeAny = (bytes: Uint8Array): FeedMessage | undefined => decoder.decode(bytes);

/** Returns the numbers of the frames in a message of any owner. */
export const numbersIn = (bytes: Uint8Array): readonly number[] => {
  const message = decodeAny(bytes);
  return message?.kind === 'batch' ? message.framesOf(0, 0).map(numberOf) : [];
};

interface Message {
  readonly head: Head;
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly number: number;
}

/** What a message follows. */
interface Last {
  readonly sequence: number;
  /** Each message has another one. */
  readonly id: number;
}

type Answer = 'stored' | LineRefusal;

/** The server that stores the line, with its faults. */
export class LineServer {
  readonly kind: LineKind;
  readonly maxAgeMs: number;
  /** `silent`: it doesn't answer. `away`: it answers that it can't. `full`: it can be read. */
  state: 'good' | 'silent' | 'away' | 'full' = 'good';
  /** Its longest delay. */
  delayMs = 3;
  readonly #time: Time;
  readonly #observer: Observer;
  #ids = 0;
  readonly #messages: Message[] = [];
  #last: Last = { sequence: 0, id: 0 };

  constructor(time: Time, observer: Observer, kind: LineKind, maxAgeMs: number) {
    this.#time = time;
    this.#observer = observer;
    this.kind = kind;
    this.maxAgeMs = maxAgeMs;
  }

  /** The messages that it keeps: those of the line that it ends with. */
  get messages(): readonly Message[] {
    this.#expire();
    const line = this.#messages.at(-1)?.head.line;
    return this.#messages.filter(({ head }) => head.line === line);
  }

  newId(): number {
    return (this.#ids += 1);
  }

  end(): { readonly last: Last; readonly head: Head | undefined } {
    return { last: this.#last, head: this.messages.at(-1)?.head };
  }

  /** Returns the answer, and whether the subscribers get the message. */
  append(follows: Last, id: number, bytes: Uint8Array): { readonly answer: Answer; readonly isLive: boolean } {
    const { sequence, id: lastId } = this.#last;
    const head = headOf(bytes)!;
    const isExpected = this.kind === 'copies' ? sequence === follows.sequence : lastId === follows.id;
    const { gen = head.gen } = this.#messages.at(-1)?.head ?? {};
    const isOfOther = !isExpected && gen > head.gen;
    const isLive = this.kind !== 'script' || !isOfOther;
    if (this.state !== 'good') return { answer: this.state === 'full' ? 'full' : 'away', isLive };
    if (!isExpected) return { answer: this.kind === 'script' && gen === head.gen ? 'away' : 'fenced', isLive };
    this.#last = { sequence: sequence + 1, id };
    this.#messages.push({ head, bytes, at: this.#time.now(), number: sequence + 1 });
    this.#observer.stored(head, numbersIn(bytes));
    this.#expire();
    return { answer: 'stored', isLive };
  }

  /** Returns what is wrong with it at the end of a run. @param end - where the owner's generation ends */
  problems({ gen, offset: end }: Place): readonly string[] {
    const own = this.messages.filter(({ head }) => head.gen === gen);
    return own.flatMap(({ head: { offset, count }, number }, n) => {
      const next = own[n + 1];
      const [from, to] = [offset + count, next?.head.offset ?? end];
      // With copies, the message after one of a replaced owner is refused, but those after it have the right sequence.
      const isPassedOver = this.kind === 'copies' && next !== undefined && next.number > number + 1;
      // What is sent again may come twice.
      return to > from && !isPassedOver ? [`the store lacks ${from} to ${to} of generation ${gen}`] : [];
    });
  }

  #expire(): void {
    const oldest = this.#time.now() - this.maxAgeMs;
    const kept = this.#messages.findIndex(({ at }) => at >= oldest);
    this.#remove(kept < 0 ? this.#messages.length : kept);
  }

  #remove(count: number): void {
    if (count > 0) this.#observer.removed(this.#messages.splice(0, count).flatMap(({ bytes }) => numbersIn(bytes)));
  }

  /** Loses all, like a memory that isn't written to a disk. */
  lose(): void {
    this.#remove(this.#messages.length);
    this.#last = { sequence: 0, id: 0 };
  }
}

/** The connection of a replica to the server of the line. */
export interface LineLink {
  readonly isConnected: () => boolean;
  /** Sends a message to the server, which publishes it to the subscribers if `arrive` says so. */
  readonly publish: (bytes: Uint8Array, arrive: () => boolean) => void;
  /** Sends an answer to this replica. */
  readonly answer: (receive: () => void) => void;
  readonly call: <T>(call: () => T) => Promise<T>;
  readonly wrong: (text: string) => void;
}

const pageSize = 4;

interface Newest {
  readonly last: Last;
  readonly head: Head | undefined;
}

/** The store of a replica. */
export class SimulatedLine extends StoredLine<Newest, number> {
  readonly #server: LineServer;
  readonly #link: LineLink;
  #last: Last = { sequence: 0, id: 0 };
  /** The highest generation that it knows of. */
  #told = 0;

  constructor(server: LineServer, link: LineLink) {
    super();
    this.#server = server;
    this.#link = link;
  }

  override append(head: Head, bytes: Uint8Array, only?: 'store' | 'live'): void {
    if (only === 'store' && head.gen < this.#told)
      this.#link.wrong(`sends generation ${head.gen} again, although it knows of ${this.#told}`);
    super.append(head, bytes, only);
  }

  protected get isConnected(): boolean {
    return this.#link.isConnected();
  }

  protected newest(): Promise<Newest> {
    return this.#link.call(() => this.#server.end());
  }

  protected follow({ last, head }: Newest): void {
    this.#last = last;
    // One that has lost all has no later generation, either.
    this.#told = head ? Math.max(this.#told, head.gen) : 0;
  }

  protected store(_head: Head, bytes: Uint8Array, isAgain: boolean): Promise<Refused | undefined> {
    const follows = this.#last;
    const id = this.#server.newId();
    this.#last = { sequence: follows.sequence + 1, id };
    return new Promise((resolve) => {
      this.#link.publish(bytes, () => {
        const { answer, isLive } = this.#server.append(follows, id, bytes);
        const refused = answer === 'stored' ? undefined : { refused: answer, error: new Error(answer) };
        if (this.#server.state !== 'silent') this.#link.answer(() => resolve(refused));
        return isLive && !isAgain;
      });
    });
  }

  protected publish(bytes: Uint8Array, refused: LineRefusal): undefined {
    if (this.#server.kind !== 'script' || refused !== 'fenced') this.#link.publish(bytes, () => true);
  }

  protected async find(isFound: (head: Head) => boolean) {
    const found = await this.#link.call(() => this.#server.messages.find(({ head }) => isFound(head)));
    return found && { head: found.head, key: found.number };
  }

  protected async *pages(first: number, signal: AbortSignal): AsyncIterable<Page<number>> {
    const newest = await this.#link.call(() => this.#server.messages.at(-1)?.number ?? 0);
    for (let next = first; next <= newest && !signal.aborted;) {
      const from = next;
      const isNext = ({ number }: Message): boolean => number >= from && number <= newest;
      const page = await this.#link.call(() => this.#server.messages.filter(isNext).slice(0, pageSize));
      next = (page.at(-1)?.number ?? newest) + 1;
      yield { messages: page.map(({ bytes }) => bytes), next };
    }
  }

  last(): Promise<Head | undefined> {
    return this.#link.call(() => this.#server.messages.at(-1)?.head);
  }

  exists(): Promise<boolean> {
    return Promise.resolve(true);
  }

  protected bytes(): Promise<number> {
    return Promise.resolve(0);
  }

  protected headOf(bytes: Uint8Array): Head | undefined {
    return headOf(bytes);
  }
}
