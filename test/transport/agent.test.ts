import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:http';
import { of, take, toArray, firstValueFrom, map } from 'rxjs';
import { type Feed, openConnection, requestTicket } from '../../src/index.js';
import { closed, optionsFor } from '../support/feed.js';
import { accept, binary, close, startWire, text, type Wire, wsFrame } from '../support/wire.js';

const frames$ = (wire: Wire) =>
  of<Feed>('market').pipe(requestTicket(optionsFor(wire)), openConnection({ ...optionsFor(wire), agent: new Agent() }));

// Such a socket is read by ws alone.
describe("through a user's own agent", () => {
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

  it('delivers all that came before a close, then its failure, at once, though the server keeps the socket open', async () => {
    await using wire = await startWire({
      handshake: [accept(text('a'), close(4003, 'access expired'), text('late'))],
      staysOpen: true,
    });
    const seen: string[] = [];
    await expect(
      frames$(wire).forEach((frame) => {
        seen.push(frame.text());
      }),
    ).rejects.toMatchObject({ code: 'access-expired', framesReceived: 1 });
    expect(seen).toEqual(['a']);
  });
});
