import type { IncomingMessage } from 'node:http';
import { catchError, defer, map, type Observable, throwError, timeout } from 'rxjs';
import { clampMs } from '../protocol/rules.js';
import { RelayFullError } from './relay-full-error.js';

/** The user of a client, for `maxClientsPerUser` and `relay.disconnect`. */
export interface RelayUser {
  /** Not empty, and the same for every client of this user. */
  readonly id: string;
}

/** Decides whether a request may receive the feed: `true` or a user allows it. */
export type Authorize = (request: IncomingMessage) => boolean | RelayUser | Promise<boolean | RelayUser>;

/** The error for a client that `authorize` refuses (403), or for which `authorize` or `select` fails (500). */
export class NotAuthorizedError extends Error {
  override readonly name = 'NotAuthorizedError';
  /** The HTTP status of the answer. */
  readonly status: 403 | 500;

  constructor(status: 403 | 500, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Emits the id of the user of a request, or `undefined` for `true`, once `authorize` allows the request.
 *
 * Errors with a {@link NotAuthorizedError} when `authorize` refuses or throws, and with a `RelayFullError` when it takes too long.
 */
export const authorized$ = (
  authorize: Authorize,
  request: IncomingMessage,
  timeoutMs: number,
): Observable<string | undefined> =>
  defer(async () => userIdIn(await authorize(request))).pipe(
    // The text of the app's error may be private, so it stays on the server.
    catchError(() =>
      throwError(
        () =>
          new NotAuthorizedError(
            500,
            'The authorization failed: the function `authorize` of the server threw an error.',
          ),
      ),
    ),
    map((id) => {
      if (id === false) throw new NotAuthorizedError(403, 'This client is not authorized. Sign in again.');
      return id;
    }),
    timeout({ first: clampMs(timeoutMs), with: () => throwError(timeoutError) }),
  );

/** Returns the id of the user, `undefined` for `true`, and `false` for any other result. */
const userIdIn = (result: unknown): string | false | undefined => {
  if (result === true) return undefined;
  const { id } = Object(result) as Partial<Record<keyof RelayUser, unknown>>;
  return typeof id === 'string' && id !== '' && id;
};

const timeoutError = () =>
  new RelayFullError('The authorization took longer than `authorizeTimeoutMs`. Retry later.', 'authorize-timeout');
