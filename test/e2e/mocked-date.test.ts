import { describe, expect, it } from '@jest/globals';
import { bundledPrograms } from '../support/bundled-programs.js';
import { runProgram } from '../support/run-program.js';

const program = bundledPrograms('test/e2e/programs', ['mocked-date.mjs']);

describe('a program that mocks Date with node:test', () => {
  it.each(['2001-02-03T04:05:06.000Z', '2099-12-31T23:58:00.000Z'])(
    'receives frames from the local service: %s',
    async (now) => {
      const { code, stdout, stderr } = await runProgram(program('mocked-date.mjs'), [String(Date.parse(now))], {});
      const expiresAt = new Date(Date.parse(now) + 60_000).toISOString();
      const lines = [`${expiresAt} 60000`, 'ticket-requested', 'ticket-issued', 'opened', 'hi'];
      expect(stdout.trim().split('\n')).toEqual(lines);
      expect(code).toBe(0);
      expect(stderr.replace(/^.*(ExperimentalWarning|--trace-warnings).*\n/gm, '')).toBe('');
    },
  );
});
