import * as t from 'io-ts';
import type { Clients, Snapshot } from './snapshot.js';

// Fields of other types, and unknown fields, would not make a status unusable. So each part is read alone.
const connection = t.intersection([
  t.type({ state: t.keyof({ connecting: null, live: null, reconnecting: null, stopped: null, idle: null }) }),
  t.partial({ failure: t.type({ code: t.string }) }),
]);
const stats = t.partial({
  framesPerSecond: t.number,
  bytesPerSecond: t.number,
  gaps: t.number,
  lostMs: t.number,
  dropped: t.number,
  reconnects: t.record(t.string, t.number),
});
const clients = t.array(t.type({ sent: t.number, missed: t.number }));
const cluster = t.intersection([t.type({ role: t.string, replica: t.string }), t.partial({ owner: t.string })]);

/**
 * Reads the status of an app: `relay.status()`, with `connection` (of `connectionStatus`), `stats` (of `feedStats`), `lastFrameAt` and `cluster`.
 * Each part may be missing. Returns `undefined` if there is no part.
 */
export const readStatus = (body: unknown): Snapshot | undefined => {
  if (!t.UnknownRecord.is(body)) return undefined;
  const { lastFrameAt, authorizing } = body;
  const ofConnection = connection.is(body['connection']) ? body['connection'] : undefined;
  const ofRelay = clients.is(body['clients']) ? body['clients'] : undefined;
  const parts = {
    stats: stats.is(body['stats']) ? body['stats'] : undefined,
    lastFrameAt: t.number.is(lastFrameAt) ? lastFrameAt : undefined,
    clients: ofRelay && totals(ofRelay, t.number.is(authorizing) ? authorizing : 0),
    cluster: cluster.is(body['cluster']) ? body['cluster'] : undefined,
  };
  if (ofConnection === undefined && Object.values(parts).every((part) => part === undefined)) return undefined;
  return { state: ofConnection?.state ?? 'unknown', problem: ofConnection?.failure?.code, ...parts };
};

const totals = (all: t.TypeOf<typeof clients>, authorizing: number): Clients => ({
  count: all.length,
  authorizing,
  sent: all.reduce((sum, { sent }) => sum + sent, 0),
  missed: all.reduce((sum, { missed }) => sum + missed, 0),
});
