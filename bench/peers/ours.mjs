// This library, with its public functions: ticket, handshake, reconnects, and RxJS operators after it.
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { filter, map, scan, tap } from 'rxjs';
import { tradeFeed$ } from '../../dist/index.js';
import { hold } from '../support/hold.mjs';

const read = { text: (frame) => frame.text(), bytes: (frame) => frame.data };
const readers = {
  text: (take) => (frame) => take(read.text(frame).length),
  bytes: (take) => (frame) => take(read.bytes(frame).length),
  held: (take, size) => hold(size, readers.text(take)),
};

/** Cheap operators, as an application has them. */
const pipes = {
  0: (frames$, mode, take, size) => frames$.subscribe(readers[mode](take, size)),
  3: (frames$, mode, take) =>
    frames$
      .pipe(
        filter((frame) => frame.connection > 0),
        map(read[mode]),
        filter((payload) => payload.length > 2),
      )
      .subscribe((payload) => take(payload.length)),
  6: (frames$, mode, take) => {
    let seen = 0;
    frames$
      .pipe(
        filter((frame) => frame.connection > 0),
        tap(() => (seen += 1)),
        map(read[mode]),
        filter((payload) => payload.length > 2),
        map((payload) => payload.length),
        scan((last, length) => (seen > 0 ? length : last), 0),
      )
      .subscribe(take);
  },
};

export const open = ({ origin, path, mode, size, take, operators = 0, isPlain = false }) => {
  const baseUrl = origin.replace('ws', 'http') + path;
  // A custom agent disables the fast path.
  const Agent = origin.startsWith('wss:') ? HttpsAgent : HttpAgent;
  const frames$ = tradeFeed$('market', { baseUrl, apiKey: 'bench-key', ...(isPlain && { agent: new Agent() }) });
  pipes[operators](frames$, mode, take, size);
};
