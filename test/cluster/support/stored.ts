import { expect } from '@jest/globals';
import type { FeedCluster } from '../../../src/cluster/index.js';
import { writeFrame } from '../../../src/operators/node/write-frame.js';
import { writeEventLine } from '../../../src/protocol/event-line.js';
import { type ClusterEvent, type FeedEvent, isClusterEvent } from '../../../src/protocol/event.js';
import type { Place, StoredOptions, StoredRecords } from '../../../src/protocol/place.js';

/** Each replica, and each read of a store, counts its connections. */
const withoutConnection = (line: string): string => line.replace(/"connection":\d+/, '"connection":0');

/** The lines that a page receives of events. */
export const linesOf = (events: readonly (FeedEvent | ClusterEvent)[]): readonly string[] =>
  events.flatMap((event) => {
    if (event.type === 'watermark' || isClusterEvent(event)) return [];
    return withoutConnection(event.type === 'frame' ? writeFrame(event) : writeEventLine(event));
  });

/** Reads what the store of a cluster has after a place, in parts and as lines. */
export const read = async (
  cluster: FeedCluster,
  after: Place,
  options: Partial<StoredOptions> = {},
): Promise<{ readonly records: readonly StoredRecords[]; readonly lines: readonly string[]; readonly end?: Place }> => {
  const records: StoredRecords[] = [];
  const all = { maxBytes: 8 * 1024 * 1024, signal: new AbortController().signal, ...options };
  for await (const each of cluster.stored(after, all)) records.push(each);
  const lines = records.flatMap(({ parts }) =>
    parts.flatMap((part) => {
      if (!(part instanceof Uint8Array)) return linesOf([part]);
      const fields = Buffer.from(part).toString().split('\n').slice(0, -1);
      expect(fields.every((field) => field.startsWith('data: {'))).toBe(true);
      return fields.map((field) => withoutConnection(field.slice('data: '.length)));
    }),
  );
  const end = records.at(-1)?.end;
  return { records, lines, ...(end && { end }) };
};

/** Notes what a replica emits from now on, and the place after each event. */
export const noting = (cluster: FeedCluster) => {
  const events: (FeedEvent | ClusterEvent)[] = [];
  const places: (Place | undefined)[] = [];
  const subscription = cluster.events$.subscribe({
    next: (event) => {
      events.push(event);
      places.push(cluster.position);
    },
    // The engine of a test may be closed first.
    error: () => undefined,
  });
  return { events, places, stop: () => subscription.unsubscribe() };
};
