import { expect, it } from '@jest/globals';
import { formatFor } from '../../src/cli/output.js';
import { frameAt } from '../cli/support/events.js';
import { fakeContext, FakeOutput } from '../cli/support/fakes.js';

// Every character below U+0300, with escape sequences and C1 controls, and the characters that reverse text.
const everything = `${String.fromCharCode(...Array(0x300).keys())}\u061c\u200e\u200f\u2028\u2029\u202e\u2066\u2069`;
const harmful = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

it.each([{}, { json: true as const }])('no payload can control a terminal, in text or in JSON (%j)', (options) => {
  const terminal = fakeContext({ env: { TERM: 'xterm' }, stdout: new FakeOutput({ columns: 80, rows: 24 }) });
  const line = String(formatFor(options, terminal)(frameAt(1, everything)));
  expect(line).not.toMatch(harmful);
  expect(line.split('\n')).toHaveLength(2);
  // The JSON still has the same value, and a pipe gets the original bytes.
  if ('json' in options) expect(JSON.parse(line)).toMatchObject({ data: everything });
  else expect(String(formatFor(options, fakeContext())(frameAt(1, everything)))).toBe(`${everything}\n`);
});
