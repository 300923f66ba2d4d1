import { randomBytes } from 'node:crypto';
import { AsyncSubject } from 'rxjs';
import { RelayFullError } from './refusals.js';
import { Slot } from './relay-client.js';
import type { RelaySettings } from './relay-options.js';
import type { RelayClientStatus } from './relay-reports.js';

/** The slots for the clients of a relay. */
export class ClientSlots {
  /** Emits once the relay is closed and the last client has left. */
  readonly emptied$ = new AsyncSubject<void>();
  readonly #bounds: Pick<RelaySettings, 'maxClients' | 'maxClientsPerUser'>;
  readonly #taken = new Set<Slot>();
  #isClosed = false;

  constructor(bounds: Pick<RelaySettings, 'maxClients' | 'maxClientsPerUser'>) {
    this.#bounds = bounds;
  }

  get authorizing(): number {
    return [...this.#taken].filter(({ admitted }) => admitted === undefined).length;
  }

  get clients(): readonly RelayClientStatus[] {
    return [...this.#taken].flatMap(({ client, admitted }) => {
      if (client === undefined) return [];
      const { number, since, sent, missed } = client;
      return [{ client: number, ...(admitted?.user !== undefined && { user: admitted.user }), since, sent, missed }];
    });
  }

  /** @throws RelayFullError when no slot is free */
  take(): Slot {
    const { maxClients } = this.#bounds;
    if (this.#isClosed) throw closedError();
    if (this.#taken.size >= maxClients) throw new RelayFullError(`There are ${maxClients} clients. Retry later.`);
    const slot = new Slot();
    this.#taken.add(slot);
    return slot;
  }

  /**
   * Admits the client of a slot. Ends the stream of the same user that it continues, which may be on a connection that
   * is dead but not closed. The name of a replaced stream is gone, so a page that was replaced by its duplicate cannot
   * replace it in turn.
   *
   * @param continued - the name of the stream that the client continues
   * @throws RelayFullError when the user has as many streams as allowed, or was disconnected in the meantime
   */
  admit(slot: Slot, user: string | undefined, continued: string | undefined): void {
    if (user === undefined) {
      slot.admitted = { user, stream: undefined };
      return;
    }
    const { maxClientsPerUser } = this.#bounds;
    if (slot.disconnected.has(user))
      throw new RelayFullError('The session of this user ended meanwhile. Retry later.', 'session-ended');
    const others = this.#of(user);
    const replaced = others.find(({ admitted }) => continued !== undefined && admitted?.stream === continued);
    if (others.length - (replaced ? 1 : 0) >= maxClientsPerUser)
      throw new RelayFullError(`This user has ${maxClientsPerUser} streams. Retry later.`, 'user');
    slot.admitted = { user, stream: maxClientsPerUser < Infinity ? randomBytes(4).toString('hex') : undefined };
    replaced?.end('replaced');
  }

  free(slot: Slot): void {
    this.#taken.delete(slot);
    this.#emptyWhenOver();
  }

  /**
   * Ends the streams of a user, and returns their number. Also refuses this user in authorizations that have already
   * started.
   */
  disconnect(user: string): number {
    for (const { admitted, disconnected } of this.#taken) if (admitted === undefined) disconnected.add(user);
    const slots = this.#of(user);
    for (const slot of slots) slot.end('sessionEnded');
    return slots.length;
  }

  /** Ends all streams, and refuses new clients. */
  close(): void {
    this.#isClosed = true;
    for (const slot of [...this.#taken]) slot.end('closing');
    this.#emptyWhenOver();
  }

  // A replaced stream still ends, but no longer counts for its user.
  #of(user: string): readonly Slot[] {
    return [...this.#taken].filter(({ admitted, endReason }) => admitted?.user === user && endReason !== 'replaced');
  }

  #emptyWhenOver(): void {
    if (!this.#isClosed || this.#taken.size > 0) return;
    this.emptied$.next();
    this.emptied$.complete();
  }
}

export const closedError = (): RelayFullError => new RelayFullError('The relay is closed. Retry later.', 'closed');
