import { describe, it } from '@jest/globals';
import { memoryEngine } from '../../../src/cluster/index.js';
import { clusterEngineTests } from '../../../src/testing/index.js';

describe('the engine in memory', () => {
  const engine = memoryEngine();
  it.each(clusterEngineTests(() => [engine, engine]).map(({ name, run }) => [name, run] as const))('%s', (_, run) =>
    run(),
  );
});
