import { entriesOf } from './entries-of.js';
import type { Lifecycle, Seen } from './seen.js';

// One letter for each event: t(icket requested), i(ssued), o(pened), g(ap), f(rames), d(isconnected), r(econnecting), and s(topped) at the end.
// Watermarks may occur anywhere.
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
  const emitted = entriesOf(log, 'event', 'frame').map((seen) =>
    seen.what === 'frame' ? 'f' : letters[seen.event.type],
  );
  const text = emitted.join('').replace(/f+/g, 'f');
  return attempts.test(text) ? [] : [`the events are not a sequence of attempts: ${text.slice(-40)}`];
};

export const connectionsAtOnce = (log: readonly Seen[]): readonly string[] => {
  const open = new Set<number>();
  let requests = 0;
  const wrong: string[] = [];
  for (const seen of log) {
    if (seen.what === 'handshake') open.add(seen.socket);
    if (seen.what === 'gone' || seen.what === 'closed' || seen.what === 'cut') open.delete(seen.socket);
    if (seen.what === 'client-frame' && seen.opcode === 8) open.delete(seen.socket);
    if (seen.what === 'ticket-request') requests += 1;
    if (seen.what === 'ticket-answered') requests -= 1;
    if (seen.what === 'settled' && open.size > 1) wrong.push(`${open.size} connections at once`);
    if (seen.what === 'settled' && requests > 1) wrong.push(`${requests} ticket requests at once`);
  }
  return wrong;
};
