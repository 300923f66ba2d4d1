import { randomUUID } from 'node:crypto';
import { memoryEngine } from '../../src/cluster/index.js';
import { engineLog, type EngineLogOptions } from '../../src/log/engine-log.js';
import type { LineStore } from '../../src/log/line-store.js';
import { StoreAway } from '../../src/log/line-store.js';

/**
 * Opens a log in memory several times.
 *
 * @param change - changes how its store behaves
 * @param changes - the same for its engine
 */
export const memoryLog = (
  change: (store: LineStore) => Partial<LineStore> = () => ({}),
  changes: Partial<ReturnType<typeof memoryEngine>> = {},
) => {
  const memory = memoryEngine();
  const path = randomUUID();
  const line: NonNullable<typeof memory.line> = (spec) => {
    const store = memory.line!(spec);
    return { ...store, ...change(store) };
  };
  const isAway = (error: unknown): boolean => error instanceof StoreAway;
  const broker = { engine: { ...memory, ...changes, line }, connection: memory, isClosed: () => false };
  const parts = { ...broker, isAway, cursorKey: (consumer: string) => consumer };
  return (options: Omit<EngineLogOptions, 'name'> = {}) =>
    engineLog({ ...parts, path }, { name: 'market', ...options });
};
