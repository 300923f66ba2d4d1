import { entriesOf } from './entries-of.js';
import type { Seen, Subscribed } from './seen.js';

export const frames = (log: readonly Seen[], { subscription }: Subscribed): readonly string[] => {
  const wrong: string[] = [];
  const received = new Map<number, number>();
  const socketOf = new Map<number, number>();
  let newest = 0;
  for (const { connection, payload } of entriesOf(log, 'frame')) {
    if (payload === undefined) {
      wrong.push('a frame was changed');
      continue;
    }
    const { socket, seq } = payload;
    if (payload.subscription !== subscription) wrong.push('a frame of another subscription');
    if ((socketOf.get(connection) ?? socket) !== socket)
      wrong.push(`connection ${connection} has frames of two sockets`);
    socketOf.set(connection, socket);
    if (connection < newest) wrong.push('a frame of an earlier connection');
    newest = Math.max(newest, connection);
    if (seq !== (received.get(socket) ?? 0) + 1) wrong.push(`frame ${seq} after frame ${received.get(socket) ?? 0}`);
    received.set(socket, seq);
  }
  return [...wrong, ...undelivered(log, received)];
};

// As long as the feed runs, every frame that was sent has arrived when the log is settled, unless the connection was cut.
const undelivered = (log: readonly Seen[], received: ReadonlyMap<number, number>): readonly string[] => {
  if (log.some(({ what }) => what === 'unsubscribed' || what === 'errored')) return [];
  const settled = log.slice(0, log.findLastIndex(({ what }) => what === 'settled') + 1);
  const cut = new Set(entriesOf(settled, 'cut').map(({ socket }) => socket));
  const sent = new Map<number, number>();
  for (const { socket, seq } of entriesOf(settled, 'sent')) sent.set(socket, seq);
  return [...sent]
    .filter(([socket, seq]) => !cut.has(socket) && (received.get(socket) ?? 0) < seq)
    .map(([socket, seq]) => `${seq} frames were sent and ${received.get(socket) ?? 0} delivered`);
};

// All frames that were sent before a close frame arrive before it is reported.
export const lostBeforeClose = (log: readonly Seen[]): readonly string[] => {
  const sent = new Map<number, number>();
  for (const { socket, seq } of entriesOf(log, 'sent')) sent.set(socket, seq);
  let last: { readonly socket: number; readonly seq: number } | undefined;
  return entriesOf(log, 'event', 'frame').flatMap((seen) => {
    if (seen.what === 'frame') {
      last = seen.payload;
      return [];
    }
    if (seen.event.type === 'opened') last = undefined;
    if (seen.event.type !== 'disconnected' || last === undefined) return [];
    const { closeCode } = seen.event.failure;
    const missing = (sent.get(last.socket) ?? 0) - last.seq;
    return closeCode !== undefined && closeCode !== 1006 && missing > 0
      ? [`${missing} frames were lost before a close`]
      : [];
  });
};

export const gaps = (log: readonly Seen[]): readonly string[] => {
  // The types of all events in order, frames included.
  const types = entriesOf(log, 'event', 'frame').map((seen) => (seen.what === 'event' ? seen.event.type : seen.what));
  return types.flatMap((type, n) => {
    if (type === 'gap' && types[n - 1] !== 'opened') return ['a gap without `opened` before it'];
    if (type !== 'opened') return [];
    const next = types[n + 1];
    if (!types.slice(0, n).includes('opened')) return next === 'gap' ? ['a gap before the first connection'] : [];
    // The log may end between the two.
    return next === undefined || next === 'gap' ? [] : ['a reconnect without a gap'];
  });
};
