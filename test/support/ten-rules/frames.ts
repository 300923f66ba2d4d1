import { of } from './of.js';
import type { Seen, Subscribed } from './seen.js';

export const frames = (log: readonly Seen[], { subscription }: Subscribed): readonly string[] => {
  const wrong: string[] = [];
  const got = new Map<number, number>();
  const socketOf = new Map<number, number>();
  let newest = 0;
  for (const { connection, payload } of of(log, 'frame')) {
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
    if (seq !== (got.get(socket) ?? 0) + 1) wrong.push(`frame ${seq} after frame ${got.get(socket) ?? 0}`);
    got.set(socket, seq);
  }
  return [...wrong, ...undelivered(log, got)];
};

// Until the end, and where nothing cut the connection off, all that was sent has come once things are quiet.
const undelivered = (log: readonly Seen[], got: ReadonlyMap<number, number>): readonly string[] => {
  if (log.some(({ what }) => what === 'unsubscribed' || what === 'errored')) return [];
  const quiet = log.slice(0, log.findLastIndex(({ what }) => what === 'settled') + 1);
  const cut = new Set(of(quiet, 'cut').map(({ socket }) => socket));
  const sent = new Map<number, number>();
  for (const { socket, seq } of of(quiet, 'sent')) sent.set(socket, seq);
  return [...sent]
    .filter(([socket, seq]) => !cut.has(socket) && (got.get(socket) ?? 0) < seq)
    .map(([socket, seq]) => `${seq} frames were sent and ${got.get(socket) ?? 0} delivered`);
};

// A close frame that was told of came after all that was sent over its connection.
export const lostBeforeClose = (log: readonly Seen[]): readonly string[] => {
  const sent = new Map<number, number>();
  for (const { socket, seq } of of(log, 'sent')) sent.set(socket, seq);
  let last: { readonly socket: number; readonly seq: number } | undefined;
  return of(log, 'event', 'frame').flatMap((seen) => {
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
  // What is told, in order; a frame is none of the lifecycle.
  const types = of(log, 'event', 'frame').map((seen) => (seen.what === 'event' ? seen.event.type : seen.what));
  return types.flatMap((type, n) => {
    if (type === 'gap' && types[n - 1] !== 'opened') return ['a gap that no opening leads to'];
    if (type !== 'opened') return [];
    const next = types[n + 1];
    if (!types.slice(0, n).includes('opened')) return next === 'gap' ? ['a gap before the first connection'] : [];
    // The end may have come between the two.
    return next === undefined || next === 'gap' ? [] : ['a reconnect without a gap'];
  });
};
