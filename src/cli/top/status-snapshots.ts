import { catchError, defer, exhaustMap, type Observable, of, timer } from 'rxjs';
import { type Dispatcher, request } from 'undici';
import { readStatus } from './read-status.js';
import type { Snapshot } from './snapshot.js';

/** How a status is requested. */
export interface StatusRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly dispatcher: Dispatcher;
}

/** Requests the status of an app at intervals, and emits each answer. A request that fails is a status with its problem. */
export const statusSnapshots$ = (url: URL, settings: StatusRequest, everyMs = 1_000): Observable<Snapshot> =>
  timer(0, everyMs).pipe(
    exhaustMap(() => defer(() => requestStatus(url, settings)).pipe(catchError((error: unknown) => of(failed(error))))),
  );

/** How long an app may be silent, in ms. */
const silenceMs = 5_000;
const timeouts = { headersTimeout: silenceMs, bodyTimeout: silenceMs };

const requestStatus = async (url: URL, { headers, dispatcher }: StatusRequest): Promise<Snapshot> => {
  const accept = { accept: 'application/json' };
  const answer = await request(url, { dispatcher, headers: { ...headers, ...accept }, ...timeouts });
  const type = String(answer.headers['content-type'] ?? 'no type');
  const isStatus = answer.statusCode === 200 && type.includes('json');
  if (!isStatus) {
    // A stream never ends.
    answer.body.on('error', () => undefined).destroy();
    const what = answer.statusCode === 200 ? type.split(';', 1).join('') : `HTTP ${answer.statusCode}`;
    return problem(`The address answers with ${what} instead of a status as JSON.`);
  }
  const body: unknown = await answer.body.json();
  return readStatus(body) ?? problem('The JSON at this address is not a status.');
};

const problem = (text: string): Snapshot => ({ state: 'unknown', problem: text });

const failed = (error: unknown): Snapshot => {
  const { message, code } = error as NodeJS.ErrnoException;
  return problem(`No status: ${message || String(code)}`);
};
