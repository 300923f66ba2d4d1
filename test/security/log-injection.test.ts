import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { inspect } from 'node:util';
import { createTradeFeedError } from '../../src/protocol/failures/classify.js';
import { optionsFor, outcomeOf } from '../support/feed.js';
import { accept, close, startWire, text } from '../support/wire.js';
import { cases } from '../support/cases.js';
import { character } from '../support/character.js';

/** Characters that end a line, move a cursor, set colours, or reverse text. */
const harmful = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/;

const forged = 'bye\r\n[Nest] 1 - LOG signed in as root\u001b[2K\u001b]0;title\u0007\u009b31m\u202e';

describe('a text of the service in a log', () => {
  it('cannot end a line or move a cursor: a message with a close reason has no control character', async () => {
    await using wire = await startWire({ handshake: [accept(text('a'), close(4999, forged))] });
    const { failure } = await outcomeOf(optionsFor(wire));
    expect(failure.reason).toBe(forged);
    expect(failure.message).toContain('signed in as root');
    expect(failure.message).not.toMatch(harmful);
    // A log also prints the stack. Its first line is the whole message.
    expect(failure.stack?.split('\n')[0]).toContain(failure.advice);
    expect(inspect(failure).split('\n')[0]).toContain(failure.advice);
    expect(inspect(failure)).not.toMatch(/[\u001b\u0007\r]/);
    expect(JSON.stringify(failure)).not.toMatch(/[\u0000-\u001f]/);
  });

  it('is safe in the message of every failure, for any reason and detail', () => {
    const anything = fc.string({ unit: character });
    fc.assert(
      fc.property(anything, anything, (reason, detail) => {
        expect(createTradeFeedError({ stage: 'stream', closeCode: 1011, reason, detail }).message).not.toMatch(harmful);
      }),
      { numRuns: cases(100) },
    );
  });
});
