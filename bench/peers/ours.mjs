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

export const open = ({ url, mode, size, take, operators = 0, isPlain = false }) => {
  // A custom agent disables the fast path.
  const Agent = url.startsWith('wss:') ? HttpsAgent : HttpAgent;
  const options = { baseUrl: url.replace('ws', 'http'), apiKey: 'bench-key', ...(isPlain && { agent: new Agent() }) };
  pipes[operators](tradeFeed$('market', options), mode, take, size);
};
