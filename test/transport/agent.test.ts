import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:http';
import { of, take, tap, toArray, firstValueFrom, map } from 'rxjs';
import { type Feed, openConnection, requestTicket } from '../../src/index.js';
import { closed, optionsFor } from '../support/feed.js';
import { accept, binary, close, type HandshakeStep, startWire, text, type Wire, wsFrame } from '../support/wire.js';

const frames$ = (wire: Wire) =>
  of<Feed>('market').pipe(requestTicket(optionsFor(wire)), openConnection({ ...optionsFor(wire), agent: new Agent() }));

// Only ws reads the socket of an agent.
describe("with a user's agent", () => {
  it('delivers text, binary and fragmented frames in order', async () => {
    const fragmented = Buffer.concat([wsFrame(1, 'c', false), wsFrame(9), wsFrame(0, 'd')]);
    await using wire = await startWire({
      handshake: [accept(text('a'), binary(Buffer.from('b')), fragmented, text('e'))],
    });
    const seen = frames$(wire).pipe(
      map((frame) => `${frame.text()} ${frame.isBinary}`),
      take(4),
      toArray(),
    );
    await expect(firstValueFrom(seen)).resolves.toEqual(['a false', 'b true', 'cd false', 'e false']);
    await Promise.all([...wire.open].map(closed));
    expect(wire.opcodes).toEqual([10, 8]);
  });

  it('emits the frames before a close, then its failure, at once, although the server keeps the socket open', async () => {
    await using wire = await startWire({
      handshake: [accept(text('a'), close(4003, 'access expired'), text('late'))],
      staysOpen: true,
      ignoresClose: true,
    });
    const seen: string[] = [];
    // The closing handshake would be aborted after 1 s.
    const cut = new Promise((_, reject) => setTimeout(reject, 700, new Error('not at once')).unref());
    const ended = frames$(wire).forEach((frame) => {
      seen.push(frame.text());
    });
    await expect(Promise.race([ended, cut])).rejects.toMatchObject({ code: 'access-expired', framesReceived: 1 });
    expect(seen).toEqual(['a']);
  });

  it('stays connected between reads, and each frame has the time of its read', async () => {
    let push: (frame: Buffer) => void = () => undefined;
    const open: HandshakeStep = (peer, wire, n) => {
      push = (frame) => void peer.socket.write(frame);
      accept(text('a'))(peer, wire, n);
    };
    await using wire = await startWire({ handshake: [open] });
    const later = () => setTimeout(() => push(text('b')), 50);
    const [a, b] = await firstValueFrom(
      frames$(wire).pipe(
        tap((frame) => frame.text() === 'a' && later()),
        take(2),
        toArray(),
      ),
    );
    expect([a?.text(), b?.text()]).toEqual(['a', 'b']);
    expect((b?.receivedAt ?? 0) - (a?.receivedAt ?? 0)).toBeGreaterThanOrEqual(40);
    await Promise.all([...wire.open].map(closed));
  });
});
