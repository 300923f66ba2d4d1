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
  defer(async () => userIdIn(await authorize(request))).pipe(
    // The error of the app may say anything: it does not leave the server.
    catchError(() => throwError(() => new NotAuthorizedError(500, 'The authorization failed.'))),
    map((id) => {
      if (id === false) throw new NotAuthorizedError(403, 'This relay does not let you in.');
      return id;
    }),
    timeout({ first: clampMs(timeoutMs), with: () => throwError(tookTooLong) }),
  );

/** Returns the id of the user, `undefined` for `true`, and `false` for anything else. */
const userIdIn = (answer: unknown): string | false | undefined => {
  if (answer === true) return undefined;
  const { id } = Object(answer) as Partial<Record<keyof RelayUser, unknown>>;
  return typeof id === 'string' && id !== '' && id;
};

const tookTooLong = () => new RelayFullError('The authorization took too long. Come back later.', 'authorize-timeout');
