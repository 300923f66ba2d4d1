import { of } from './of.js';
import type { Lifecycle, Seen } from './seen.js';

// One letter an event: an attempt is t(icket requested), i(ssued), o(pened) with its g(ap), f(rames), d(isconnected), r(econnecting); the last one
// may end with s(topped). Watermarks come between any two of them.
const attempts = /^(t(i(og?f*)?)?dr)*(t(i(og?f*)?)?d?s?)?$/;
const letters: Readonly<Record<Lifecycle['type'], string>> = {
  'ticket-requested': 't',
  'ticket-issued': 'i',
  opened: 'o',
  gap: 'g',
  disconnected: 'd',
  reconnecting: 'r',
  stopped: 's',
  watermark: '',
};

export const grammar: (log: readonly Seen[]) => readonly string[] = (log) => {
  const told = of(log, 'event', 'frame').map((seen) => (seen.what === 'frame' ? 'f' : letters[seen.event.type]));
  const text = told.join('').replace(/f+/g, 'f');
  return attempts.test(text) ? [] : [`the events are no attempts one after another: ${text.slice(-40)}`];
};

export const connectionsAtOnce = (log: readonly Seen[]): readonly string[] => {
  const open = new Set<number>();
  let asked = 0;
  const wrong: string[] = [];
  for (const seen of log) {
    if (seen.what === 'handshake') open.add(seen.socket);
    if (seen.what === 'gone' || seen.what === 'closed' || seen.what === 'cut') open.delete(seen.socket);
    if (seen.what === 'client-frame' && seen.opcode === 8) open.delete(seen.socket);
    if (seen.what === 'ticket-request') asked += 1;
    if (seen.what === 'ticket-answered') asked -= 1;
    if (seen.what === 'settled' && open.size > 1) wrong.push(`${open.size} connections at once`);
    if (seen.what === 'settled' && asked > 1) wrong.push(`${asked} ticket requests at once`);
  }
  return wrong;
};
