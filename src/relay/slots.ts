import { randomBytes } from 'node:crypto';
import { ReplaySubject } from 'rxjs';
import type { EndReason, RelayClient } from './relay-client.js';
import { RelayFullError } from './refusals.js';
import type { RelaySettings } from './relay-options.js';
import type { RelayClientStatus } from './relay-reports.js';

/** Holds a client's place from its request until its stream has ended. */
export class Slot {
  /**
   * Set once authorized. `stream` names its stream, if `maxClientsPerUser` applies: the client's next one replaces it.
   */
  admitted: { readonly user: string | undefined; readonly stream: string | undefined } | undefined;
  client: RelayClient | undefined;
  readonly ended$ = new ReplaySubject<void>(1);
  endReason: EndReason | undefined;
  /** Users disconnected while this client was being authorized. */
  readonly disconnected = new Set<string>();

  /** Ends the stream. A client still reading the end of a run learns that the relay closes, or what replaced it. */
  end(reason: EndReason): void {
    const isFinal = this.endReason === 'closing' || (this.endReason === 'replaced' && reason === 'sessionEnded');
    if (!isFinal) this.endReason = reason;
    this.ended$.next();
  }
}

/** The places of a relay's clients, within its limits. */
export class ClientSlots {
  readonly #bounds: Pick<RelaySettings, 'maxClients' | 'maxClientsPerUser'>;
  readonly #onEmpty: () => void;
  readonly #taken = new Set<Slot>();
  #isClosed = false;

  /** @param onEmpty - called once the relay is closed and the last client has left */
  constructor(bounds: Pick<RelaySettings, 'maxClients' | 'maxClientsPerUser'>, onEmpty: () => void) {
    this.#bounds = bounds;
    this.#onEmpty = onEmpty;
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
   * Admits the client of a slot. Ends the same user's stream that it continues, whose connection may be dead but not
   * closed yet. A replaced stream loses its name, so a page replaced by its duplicate can't replace it back.
   *
   * @param continued - the name of the stream that the client continues
   * @throws RelayFullError when the user has too many streams, or was disconnected in the meantime
   */
  admit(slot: Slot, user: string | undefined, continued: string | undefined): void {
    if (user === undefined) {
      slot.admitted = { user, stream: undefined };
      return;
    }
    const { maxClientsPerUser } = this.#bounds;
    if (slot.disconnected.has(user))
      throw new RelayFullError('The session of this user has just ended. Retry later.', 'session-ended');
    const others = this.#of(user);
    const replaced = others.find(({ admitted }) => continued !== undefined && admitted?.stream === continued);
    if (others.length - (replaced ? 1 : 0) >= maxClientsPerUser)
      throw new RelayFullError(`This user has ${maxClientsPerUser} streams. Retry later.`, 'user');
    slot.admitted = { user, stream: maxClientsPerUser < Infinity ? randomBytes(4).toString('hex') : undefined };
    replaced?.end('replaced');
  }

  free(slot: Slot): void {
    this.#taken.delete(slot);
    if (this.#isClosed && this.#taken.size === 0) this.#onEmpty();
  }

  /** Also refuses this user in authorizations already under way. */
  disconnect(user: string): number {
    for (const { admitted, disconnected } of this.#taken) if (admitted === undefined) disconnected.add(user);
    const slots = this.#of(user);
    for (const slot of slots) slot.end('sessionEnded');
    return slots.length;
  }

  close(): void {
    this.#isClosed = true;
    for (const slot of [...this.#taken]) slot.end('closing');
    if (this.#taken.size === 0) this.#onEmpty();
  }

  // A replaced stream is still ending, but no longer counts for its user.
  #of(user: string): readonly Slot[] {
    return [...this.#taken].filter(({ admitted, endReason }) => admitted?.user === user && endReason !== 'replaced');
  }
}

export const closedError = (): RelayFullError => new RelayFullError('The relay is closed. Retry later.', 'closed');
