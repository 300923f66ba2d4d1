import { describe, expect, it } from '@jest/globals';
import { runProgram } from '../support/run-program.js';

describe('memory that an operator keeps alive next to conflate, as the garbage collector counts it', () => {
  it.each(['queue', 'queue of a part', 'window', 'window of a part'])(
    '%s: the bytes of its frames',
    async (operator) => {
      const { code, stdout, stderr } = await runProgram('kept-alive.mjs', [operator], {}, ['--expose-gc']);
      expect([code, stderr]).toEqual([0, '']);
      expect(Number(stdout)).toBeGreaterThan(0.9);
      expect(Number(stdout)).toBeLessThanOrEqual(1.5);
    },
  );
});
