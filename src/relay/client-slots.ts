import { AsyncSubject, type Observable, ReplaySubject, type Unsubscribable } from 'rxjs';
import type { EndReason, RelayClient } from './relay-client.js';
import { RelayFullError } from './relay-full-error.js';

/** The limits of the number of clients. */
export interface SlotBounds {
  readonly maxClients: number;
  readonly maxClientsPerUser: number;
}

/** The slot of one client, from its request until its stream has ended. Unsubscribing frees it. */
export interface Slot extends Unsubscribable {
  /** Set once the client is admitted. */
  readonly admitted: { readonly user: string | undefined } | undefined;
  /** Set once the client receives messages. */
  client: ActiveClient | undefined;
  /** Emits the reason when the relay ends the stream, also to later subscribers. */
  readonly ended$: Observable<EndReason>;
}

/** A client that receives messages. */
export interface ActiveClient {
  /** The number of the client: 1, 2, … */
  readonly client: number;
  /** When it joined, in epoch ms. */
  readonly since: number;
  readonly state: RelayClient;
}

interface TakenSlot extends Slot {
  admitted: { readonly user: string | undefined } | undefined;
  readonly ended$: ReplaySubject<EndReason>;
  /** The users that were disconnected while this client was being authorized. */
  readonly disconnected: Set<string>;
}

/** The slots for the clients of a relay. */
export class ClientSlots {
  readonly #bounds: SlotBounds;
  readonly #taken = new Set<TakenSlot>();
  readonly #emptied = new AsyncSubject<void>();
  #isClosed = false;

  constructor(bounds: SlotBounds) {
    this.#bounds = bounds;
  }

  /** Emits once the relay is closed and the last client has left. */
  get emptied$(): Observable<void> {
    return this.#emptied;
  }

  /** The number of clients that are not admitted yet. */
  get authorizing(): number {
    return [...this.#taken].filter(({ admitted }) => admitted === undefined).length;
  }

  /** The clients that receive messages. */
  get clients(): readonly (ActiveClient & { readonly user: string | undefined })[] {
    return [...this.#taken].flatMap(({ client, admitted }) => (client ? [{ ...client, user: admitted?.user }] : []));
  }

  /**
   * Takes a slot.
   *
   * @throws RelayFullError when none is free
   */
  take(): Slot {
    const { maxClients } = this.#bounds;
    if (this.#isClosed) throw closedError();
    if (this.#taken.size >= maxClients) throw new RelayFullError(`There are ${maxClients} clients. Retry later.`);
    const slot: TakenSlot = {
      admitted: undefined,
      client: undefined,
      ended$: new ReplaySubject(1),
      disconnected: new Set(),
      unsubscribe: () => this.#free(slot),
    };
    this.#taken.add(slot);
    return slot;
  }

  /**
   * Admits the client of a slot.
   *
   * @throws RelayFullError when the user has as many streams as allowed, or was disconnected in the meantime
   */
  admit(slot: Slot, user: string | undefined): void {
    const taken = slot as TakenSlot;
    const { maxClientsPerUser } = this.#bounds;
    if (user !== undefined && taken.disconnected.has(user))
      throw new RelayFullError('The session of this user ended meanwhile. Retry later.', 'session-ended');
    if (user !== undefined && this.#of(user).length >= maxClientsPerUser)
      throw new RelayFullError(`This user has ${maxClientsPerUser} streams. Retry later.`, 'user');
    taken.admitted = { user };
  }

  /** Ends the streams of a user, and returns their number. Also refuses this user in authorizations that have already started. */
  disconnect(user: string): number {
    for (const { admitted, disconnected } of this.#taken) if (admitted === undefined) disconnected.add(user);
    const slots = this.#of(user);
    for (const { ended$ } of slots) ended$.next('sessionEnded');
    return slots.length;
  }

  /** Ends all streams, and refuses new clients. */
  close(): void {
    this.#isClosed = true;
    for (const { ended$ } of [...this.#taken]) ended$.next('closing');
    this.#emptyWhenOver();
  }

  #of(user: string): readonly TakenSlot[] {
    return [...this.#taken].filter(({ admitted }) => admitted?.user === user);
  }

  #free(slot: TakenSlot): void {
    this.#taken.delete(slot);
    this.#emptyWhenOver();
  }

  #emptyWhenOver(): void {
    if (!this.#isClosed || this.#taken.size > 0) return;
    this.#emptied.next();
    this.#emptied.complete();
  }
}

/** Creates the error for a client of a closed relay. */
export const closedError = (): RelayFullError => new RelayFullError('The relay is closed. Retry later.', 'closed');
