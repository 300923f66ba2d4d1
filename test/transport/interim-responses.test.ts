import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Duplex } from 'node:stream';
import { firstValueFrom, take, toArray } from 'rxjs';
import { proxyFromEnvironment, tradeFeed$ } from '../../src/index.js';
import { withoutInterimResponses } from '../../src/transport/interim-responses.js';
import { cases } from '../support/cases.js';
import { optionsFor } from '../support/feed.js';
import { accept, close, issue, startWire, text, type WireScript } from '../support/wire.js';

const duplex = () => {
  const socket = withoutInterimResponses(
    new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() }),
  );
  const read = (): string => {
    const chunks: Buffer[] = [];
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null)
      chunks.push(chunk);
    return Buffer.concat(chunks).toString('latin1');
  };
  return { socket, read, receive: (text: string) => socket.push(Buffer.from(text, 'latin1')) };
};

const interim = fc
  .tuple(fc.constantFrom(100, 102, 103, 199), fc.constantFrom('', 'x: y\r\n', 'x: HTTP/1.1 200 OK\r\ny: z\r\n'))
  .map(([status, fields]) => `HTTP/1.1 ${status} Any\r\n${fields}\r\n`);
const response = fc.constantFrom(
  'HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nHTTP/1.1 100',
  'HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.0 503 Busy\r\n\r\n',
  'HTTP/1.1 1xx\r\n\r\n',
  'SSH-2.0-x',
  'H',
);

describe('withoutInterimResponses', () => {
  it('removes every 1xx before a response, and nothing else, however the bytes are split', () => {
    const answers = fc.array(fc.tuple(fc.array(interim, { maxLength: 3 }), response), { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(answers, fc.infiniteStream(fc.integer({ min: 1, max: 30 })), (each, sizes) => {
        const { socket, read, receive } = duplex();
        for (const [before, answer] of each) {
          socket.write('a request');
          const bytes = before.join('') + answer;
          for (let at = 0; at < bytes.length;) {
            const { value: size } = sizes.next() as { value: number };
            receive(bytes.slice(at, at + size));
            at += size;
          }
          // What might still become a 1xx is emitted at the end.
          if (answer === 'H') {
            socket.push(null);
            expect(read()).toBe(answer);
            return;
          }
          expect(read()).toBe(answer);
        }
      }),
      { numRuns: cases(1_000) },
    );
  });
});

const heads = {
  hints: 'HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n',
  goOn: 'HTTP/1.1 100 Continue\r\n\r\n',
  several: 'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Go on\r\nx: 1\r\n\r\nHTTP/1.1 199 Later\r\n\r\n',
};

/** Writes these heads before the ticket and before the 101, alone or in one write with the answer. */
const informing = (before: string, isAlone: boolean): WireScript => {
  const then = (socket: Duplex | null, answer: () => void): void => {
    if (!isAlone) socket?.cork();
    socket?.write(before);
    if (isAlone) setTimeout(answer, 5);
    else answer();
    socket?.uncork();
  };
  return {
    ticket: [(response, wire, n) => then(response.socket, () => issue()(response, wire, n))],
    handshake: [(peer, wire, n) => then(peer.socket, () => accept(text('a'), close(4003, ''))(peer, wire, n))],
  };
};

describe.each([true, false])('unexpected informational answers (alone: %s)', (isAlone) => {
  it.each(Object.entries(heads))(
    'are skipped before each ticket over one connection and before the 101: %s',
    async (_, before) => {
      await using wire = await startWire(informing(before, isAlone));
      const feed$ = tradeFeed$('market', optionsFor(wire, { backoff: { stableAfterMs: 0 } }));
      const frames = await firstValueFrom(feed$.pipe(take(2), toArray()));
      expect(frames.map((frame) => frame.text())).toEqual(['a', 'a']);
      expect(wire.tickets).toHaveLength(2);
      expect(wire.connections).toBe(3);
    },
  );

  it('are also skipped by the dispatcher of proxyFromEnvironment', async () => {
    await using wire = await startWire(informing(heads.goOn + heads.hints, isAlone));
    // The same dispatcher connects to loopback hosts directly.
    const proxy = await proxyFromEnvironment({ env: { HTTPS_PROXY: 'http://127.0.0.1:1' } });
    expect((await firstValueFrom(tradeFeed$('market', optionsFor(wire, proxy)))).text()).toBe('a');
  });
});
