import { memoryEngine } from '../../../src/cluster/index.js';
import { engineSuite } from '../engine-suite.js';

engineSuite('in memory', () => {
  const engine = memoryEngine();
  return [engine, engine];
});
