import { AsyncSubject, type Observable, ReplaySubject, type Unsubscribable } from 'rxjs';
import type { RelayClient } from './relay-client.js';
import { RelayFullError } from './relay-full-error.js';

/** Why the relay ends a stream that could go on. */
export type SentAway = 'closing' | 'sessionEnded';

/** How many clients may be here. */
export interface SeatBounds {
  readonly maxClients: number;
  readonly maxClientsPerUser: number;
}

/** The place of one client, from its request on until its stream has ended. */
export interface Seat extends Unsubscribable {
  /** Set once the client is admitted; `user` is its id, if it has one. */
  readonly admitted: { readonly user: string | undefined } | undefined;
  /** Set once messages are sent to it. */
  client: SeatedClient | undefined;
  /** Emits once, and again to a later subscriber, when the relay ends the stream. */
  readonly sentAway$: Observable<SentAway>;
}

/** A client that receives. */
export interface SeatedClient {
  /** Which one: 1, 2, … */
  readonly client: number;
  /** Since when, in epoch ms. */
  readonly since: number;
  readonly state: RelayClient;
}

interface OwnSeat extends Seat {
  admitted: { readonly user: string | undefined } | undefined;
  readonly sentAway$: ReplaySubject<SentAway>;
  /** The users whose sessions ended while this client was being authorized. */
  readonly endedUsers: Set<string>;
}

/** The places of a relay: who has one, and who gets none. */
export class Seats {
  readonly #bounds: SeatBounds;
  readonly #taken = new Set<OwnSeat>();
  readonly #emptied = new AsyncSubject<void>();
  #isClosed = false;

  constructor(bounds: SeatBounds) {
    this.#bounds = bounds;
  }

  /** Emits once the relay is closed and the last client has left. */
  get emptied$(): Observable<void> {
    return this.#emptied;
  }

  /** How many clients are not admitted yet. */
  get authorizing(): number {
    return [...this.#taken].filter(({ admitted }) => admitted === undefined).length;
  }

  /** Returns the clients that receive. */
  get clients(): readonly (SeatedClient & { readonly user: string | undefined })[] {
    return [...this.#taken].flatMap(({ client, admitted }) => (client ? [{ ...client, user: admitted?.user }] : []));
  }

  /**
   * Takes a place; unsubscribing from it frees it.
   *
   * @throws RelayFullError when there is none
   */
  take(): Seat {
    const { maxClients } = this.#bounds;
    if (this.#isClosed) throw closedError();
    if (this.#taken.size >= maxClients) throw new RelayFullError(`There are ${maxClients} clients. Come back later.`);
    const seat: OwnSeat = {
      admitted: undefined,
      client: undefined,
      sentAway$: new ReplaySubject(1),
      endedUsers: new Set(),
      unsubscribe: () => this.#free(seat),
    };
    this.#taken.add(seat);
    return seat;
  }

  /**
   * Admits the client of a place.
   *
   * @throws RelayFullError when the user has as many streams as allowed, or was signed out meanwhile
   */
  admit(seat: Seat, user: string | undefined): void {
    const own = seat as OwnSeat;
    const { maxClientsPerUser } = this.#bounds;
    if (user !== undefined && own.endedUsers.has(user))
      throw new RelayFullError('The session of this user ended meanwhile. Come back later.', 'session-ended');
    if (user !== undefined && this.#of(user).length >= maxClientsPerUser)
      throw new RelayFullError(`This user has ${maxClientsPerUser} streams. Come back later.`, 'user');
    own.admitted = { user };
  }

  /** Ends the streams of a user, and returns their number. An authorization that is under way does not count any more. */
  disconnect(user: string): number {
    for (const { admitted, endedUsers } of this.#taken) if (admitted === undefined) endedUsers.add(user);
    const seats = this.#of(user);
    for (const { sentAway$ } of seats) sentAway$.next('sessionEnded');
    return seats.length;
  }

  /** Sends everybody away, and gives no place any more. */
  close(): void {
    this.#isClosed = true;
    for (const { sentAway$ } of [...this.#taken]) sentAway$.next('closing');
    this.#emptyWhenOver();
  }

  #of(user: string): readonly OwnSeat[] {
    return [...this.#taken].filter(({ admitted }) => admitted?.user === user);
  }

  #free(seat: OwnSeat): void {
    this.#taken.delete(seat);
    this.#emptyWhenOver();
  }

  #emptyWhenOver(): void {
    if (!this.#isClosed || this.#taken.size > 0) return;
    this.#emptied.next();
    this.#emptied.complete();
  }
}

/** Creates the error of a client that comes to a closed relay. */
export const closedError = (): RelayFullError => new RelayFullError('The relay is closed. Come back later.', 'closed');
