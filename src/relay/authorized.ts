import type { IncomingMessage } from 'node:http';
import { catchError, defer, map, type Observable, throwError, timeout } from 'rxjs';
import { clampMs } from '../protocol/rules.js';
import { RelayFullError } from './relay-full-error.js';

/** Who a client is, for `maxClientsPerUser` and `relay.disconnect`. */
export interface RelayUser {
  /** The same for every client of this user: not empty. */
  readonly id: string;
}

/** Says who may receive: `true` or a user lets the client in. */
export type Authorize = (request: IncomingMessage) => boolean | RelayUser | Promise<boolean | RelayUser>;

/** The error of a client that is not let in. */
export class NotAuthorizedError extends Error {
  override readonly name = 'NotAuthorizedError';
  /** The HTTP status that says so. */
  readonly status: 403 | 500;

  constructor(status: 403 | 500, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Emits the id of the user of a request, or `undefined` for one without, once `authorize` lets it in.
 *
 * Errors with a {@link NotAuthorizedError} when it does not, or throws, and with a `RelayFullError` when it gives no answer in time.
 */
export const authorized$ = (
  authorize: Authorize,
  request: IncomingMessage,
  timeoutMs: number,
): Observable<string | undefined> =>
  defer(async (): Promise<unknown> => authorize(request)).pipe(
    // What was thrown is for the app alone: it may say anything.
    catchError(() => throwError(() => new NotAuthorizedError(500, 'The authorization failed.'))),
    map((answer) => userIdIn(answer)),
    timeout({ first: clampMs(timeoutMs), with: () => throwError(tookTooLong) }),
  );

/** Anything but `true` and a user with an id lets nobody in. */
const userIdIn = (answer: unknown): string | undefined => {
  if (answer === true) return undefined;
  const { id } = Object(answer) as Partial<Record<keyof RelayUser, unknown>>;
  if (typeof id === 'string' && id !== '') return id;
  throw new NotAuthorizedError(403, 'This relay does not let you in.');
};

const tookTooLong = () => new RelayFullError('The authorization took too long. Come back later.', 'authorize-timeout');
