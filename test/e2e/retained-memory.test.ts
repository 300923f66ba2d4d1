import { describe, expect, it } from '@jest/globals';
import { bundledPrograms } from '../support/bundled-programs.js';
import { runProgram } from '../support/run-program.js';

const program = bundledPrograms('test/e2e/programs', ['retained-memory.mjs']);

describe('the memory that an operator retains next to conflate, measured by the garbage collector', () => {
  it.each(['queue', 'queue of a part', 'window', 'window of a part'])(
    'is at most 1.5 times the bytes of its frames: %s',
    async (operator) => {
      const { code, stdout, stderr } = await runProgram(program('retained-memory.mjs'), [operator], {}, [
        '--expose-gc',
      ]);
      expect([code, stderr]).toEqual([0, '']);
      expect(Number(stdout)).toBeGreaterThan(0.9);
      expect(Number(stdout)).toBeLessThanOrEqual(1.5);
    },
  );
});
