import { catchError, defer, map, type Observable, of } from 'rxjs';
import type { TicketSettings } from '../options.js';
import { invalidOption } from '../protocol/rules.js';
import { isCredential, Secret } from '../protocol/secret.js';
import { attemptFailure } from './attempt-failure.js';
import { deadline } from './deadline.js';

/**
 * Emits the API key of this attempt, as a `Secret`.
 *
 * Emits once. Errors with `api-key-unavailable` when the user's function throws, rejects or takes longer than
 * `ticketTimeoutMs`, and with `invalid-options` when it returns a value that is not a valid key.
 */
export const apiKey$ = (settings: TicketSettings): Observable<Secret> => {
  const { apiKey, ticketTimeoutMs } = settings;
  if (apiKey instanceof Secret) return of(apiKey);
  const unavailable = (detail: string, cause?: unknown) =>
    attemptFailure(settings, { stage: 'ticket', code: 'api-key-unavailable', detail, cause });
  return defer(async () => apiKey()).pipe(
    deadline(ticketTimeoutMs, () => new Error(`no answer in ${ticketTimeoutMs} ms`)),
    catchError((cause: unknown) => {
      throw unavailable(cause instanceof Error ? cause.message : 'it rejected', cause);
    }),
    map((key) => {
      if (!isCredential(key))
        throw invalidOption('apiKey', 'a function that returns a string of visible ASCII characters');
      return new Secret(key);
    }),
  );
};
