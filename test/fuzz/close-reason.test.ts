import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isUtf8 } from 'node:buffer';
import { frameOf } from '../support/server-bytes.js';
import { expectedFailure } from '../support/failure-table.js';
import { plantedKey, plantedTicket } from './failure-rules.js';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { goodHead, goodTicket } from './answers.js';
import { type Scripted, startScripted } from './scripted.js';
import { character } from '../support/character.js';

const codes = fc.oneof(
  { arbitrary: fc.constantFrom(1000, 1001, 1006, 1008, 1009, 1011, 1013, 4000, 4001, 4002, 4003, 4003), weight: 3 },
  { arbitrary: fc.nat(65_535), weight: 1 },
);
const known = fc.constantFrom('access expired', 'access revoked', 'connection replaced', 'server shutdown', '');
const pieces = fc.oneof(
  known,
  fc.constantFrom(plantedKey, plantedTicket, plantedKey.toUpperCase(), `Bearer ${plantedTicket}`),
  fc.constantFrom(
    '\x1b]0;title\x07',
    '\x1b[2J',
    '\r\nlevel=info forged',
    '\0',
    '\u202e',
    '\u2028',
    '\u009b31m',
    '"',
    '$&',
  ),
  fc.string({ unit: character, maxLength: 20 }),
);
const reasons = fc.oneof(
  { arbitrary: known.map((reason) => Buffer.from(reason)), weight: 2 },
  { arbitrary: fc.array(pieces, { maxLength: 3 }).map((some) => Buffer.from(some.join(''))), weight: 4 },
  { arbitrary: fc.uint8Array({ maxLength: 123 }).map((bytes) => Buffer.from(bytes)), weight: 1 },
);

// RFC 6455, 7.4: the codes that a close frame may contain.
const maySend = (code: number): boolean =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);

const redacted = (reason: string): string =>
  [plantedKey, plantedTicket].reduce((text, secret) => text.replace(new RegExp(secret, 'gi'), '[secret]'), reason);

describe(`a close frame of a hostile server, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => void (scripted = await startScripted()));
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });

  it(
    'is a failure of the table with the reason as sent, without secrets; or is an invalid frame',
    () =>
      fuzz('close reasons', fc.tuple(codes, reasons), 96, async ([closeCode, bytes]) => {
        const reason = bytes.subarray(0, 123);
        const frame = frameOf(8, Buffer.concat([Buffer.from([closeCode >> 8, closeCode & 255]), reason]));
        const { code, failure } = await scripted.run({
          ticket: goodTicket,
          handshake: { bytes: (request) => [Buffer.concat([Buffer.from(goodHead(request)), frame])], end: 'end' },
        });
        const isRight = maySend(closeCode) && isUtf8(reason);
        const expected = expectedFailure({ stage: 'stream', closeCode, reason: reason.toString() });
        expect(code).toBe(isRight ? expected.code : 'invalid-frame');
        expect(failure.closeCode).toBe(isRight ? closeCode : undefined);
        if (isRight) expect(failure.reason).toBe(redacted(reason.toString()));
        return code;
      }),
    timeoutFor(250),
  );
});
