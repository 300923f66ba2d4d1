import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc, { type Arbitrary } from 'fast-check';
import { goodHead, goodTicket, type Script, ticketFields } from './answers.js';
import { fuzz, seed, timeoutFor } from './fuzz.js';
import { httpAround, type HttpBytes, rightHandshake, rightTicket, written } from './http-bytes.js';
import { type Scripted, startScripted } from './scripted.js';

/** One attempt: ticket response, handshake and stream. Most are valid, so that an attempt starts with the state that the last one left. */
type Attempt =
  | { readonly ticket: HttpBytes; readonly handshake?: undefined; readonly bytes?: undefined }
  | { readonly ticket?: undefined; readonly handshake: HttpBytes; readonly bytes?: undefined }
  | { readonly ticket?: undefined; readonly handshake?: undefined; readonly bytes: Uint8Array };

// The test ignores the wait that the server demands.
const atOnce = (http: HttpBytes): HttpBytes => ({
  ...http,
  headers: http.headers.filter((header) => !header.startsWith('Retry-After')),
});

const attempt: Arbitrary<Attempt> = fc.oneof(
  httpAround(rightTicket(JSON.stringify(ticketFields('@WSS@')))).map((ticket) => ({ ticket: atOnce(ticket) })),
  httpAround(rightHandshake).map((handshake) => ({ handshake: atOnce(handshake) })),
  fc.constantFrom([0x88, 2, 0x03, 0xe9], [0x83, 0], [0x81, 1], []).map((bytes) => ({ bytes: Uint8Array.from(bytes) })),
);

const scriptOf = ({ ticket, handshake, bytes }: Attempt): Script => ({
  ticket: ticket ? written(ticket) : goodTicket,
  handshake: handshake
    ? written(handshake)
    : {
        bytes: (request) => [Buffer.concat([Buffer.from(goodHead(request)), bytes ?? Buffer.of(0x88, 2, 0x03, 0xe9)])],
        end: 'end',
      },
});

const maxAttempts = 5;

describe(`one feed and many attempts at a hostile server, with FUZZ_SEED=${seed}`, () => {
  let scripted: Scripted;
  beforeAll(async () => {
    scripted = await startScripted();
  });
  afterAll(async () => {
    await scripted[Symbol.asyncDispose]();
  });

  it(
    'ends each attempt with a clear failure, and leaves no connection open',
    () =>
      fuzz('attempts, one after the other', fc.array(attempt, { minLength: 2, maxLength: 6 }), 48, async (attempts) => {
        const codes = await scripted.runAll(attempts.map(scriptOf), {
          ticketTimeoutMs: 150,
          handshakeTimeoutMs: 150,
          idleTimeoutMs: 50,
          backoff: { maxAttempts },
        });
        expect(codes.length).toBeLessThanOrEqual(maxAttempts + 1);
        return `${codes.length} attempts`;
      }),
    timeoutFor(60),
  );
});
