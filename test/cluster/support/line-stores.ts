import type { ClusterEngine } from '../../../src/cluster/engine.js';
import type { Stored } from '../../../src/log/line-store.js';
import { headOf, lineStoreTests, nameOf } from '../../../src/testing/line-store-tests.js';

/** Opens an engine's store, and records what it says of messages. */
export const openStore = (engine: ClusterEngine) => {
  const store = engine.line!({ kind: 'line', name: 'main', headOf });
  const reports: Stored[] = [];
  store.stored$.subscribe((stored) => reports.push(stored));
  return { engine, store, reports };
};

export const refusals = (reports: readonly Stored[]): readonly string[] =>
  reports.flatMap((stored) => ('refused' in stored ? [`${stored.refused}: ${(stored.error as Error).message}`] : []));

/** Returns the names of the messages that a subscriber receives. */
export const received = (engine: ClusterEngine): readonly string[] => {
  const names: string[] = [];
  engine.subscribe('rtf.v2.main.feed').subscribe((bytes) => names.push(nameOf(bytes)));
  return names;
};

/** Runs the tests of a store. @param settled - waits until the server has handled what `other` has subscribed to */
export const runStoreTests = async (
  [one, other]: readonly [ClusterEngine, ClusterEngine],
  settled: () => Promise<unknown>,
  clear: () => Promise<unknown>,
): Promise<void> => {
  for (const run of Object.values(lineStoreTests())) {
    await run({ one, other, account: 'main', settled });
    await clear();
  }
};
