import { describe, expect, it } from '@jest/globals';
import { inspect } from 'node:util';
import { formatFor } from '../../src/cli/output.js';
import { frameAt } from '../cli/support/events.js';
import { fakeContext, FakeOutput } from '../cli/support/fakes.js';
import { optionsFor, outcomeOf } from '../support/feed.js';
import { accept, close, startWire, text } from '../support/wire.js';

/** Characters that end a line, move the cursor, set colors, or reverse text. */
const harmful = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/;

const forged = 'bye\r\n[Nest] 1 - LOG signed in as root\u001b[2K\u001b]0;title\u0007\u009b31m\u202e';

describe('a text of the service in a log', () => {
  it('cannot end a line or move the cursor, because no message keeps control characters of a close reason', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), close(4999, forged))] });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure.reason).toBe(forged);
    expect(failure.message).toContain('signed in as root');
    expect(failure.message).not.toMatch(harmful);
    // A log also prints the stack, which starts with the whole message.
    expect(failure.stack?.split('\n')[0]).toContain(failure.advice);
    expect(inspect(failure).split('\n')[0]).toContain(failure.advice);
    expect(inspect(failure)).not.toMatch(/[\u001b\u0007\r]/);
    expect(JSON.stringify(failure)).not.toMatch(/[\u0000-\u001f]/);
  });
});

// Every character below U+0300, with escape sequences and C1 controls, and the characters that reverse text.
const everything = `${String.fromCharCode(...Array(0x300).keys())}\u061c\u200e\u200f\u2028\u2029\u202e\u2066\u2069`;
const harmfulToTerminal = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

it.each([{}, { json: true as const }])('no payload can control a terminal, in text or in JSON (%j)', (options) => {
  const terminal = fakeContext({ env: { TERM: 'xterm' }, stdout: new FakeOutput({ columns: 80, rows: 24 }) });
  const line = String(formatFor(options, terminal)(frameAt(1, everything)));
  expect(line).not.toMatch(harmfulToTerminal);
  expect(line.split('\n')).toHaveLength(2);
  // The JSON still has the same value, and a pipe gets the original bytes.
  if ('json' in options) expect(JSON.parse(line)).toMatchObject({ data: everything });
  else expect(String(formatFor(options, fakeContext())(frameAt(1, everything)))).toBe(`${everything}\n`);
});
