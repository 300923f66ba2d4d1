import { describe, expect, it } from '@jest/globals';
import { Agent } from 'node:http';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import { type Frame, tradeFeed$, tradeFeedEvents$, type TradeFeedOptions } from '../../src/index.js';
import { optionsFor, until } from '../support/feed.js';
import { binary, close, type HandshakeStep, startWire, switching, text, wsFrame } from '../support/wire.js';

/** Node 20 copies memory that is marked as untransferable. Since Node 21 the caller receives a DataCloneError. */
const isCopied = process.versions.node.startsWith('20.');

/** No split. */
const WHOLE = 2 ** 30;

const payload = (n: number, bytes: number): string => `${n} `.padEnd(bytes, 'x');

/** The frames of a connection, split into writes, and the expected payloads. */
interface Sent {
  readonly what: string;
  readonly payloads: readonly string[];
  readonly writes: readonly Buffer[];
}

const cutEvery = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
const sent = (what: string, sizes: readonly number[], encode: (payload: string) => Buffer, cut: number): Sent => {
  const payloads = sizes.map((bytes, n) => payload(n, bytes));
  return { what, payloads, writes: cutEvery(Buffer.concat(payloads.map(encode)), cut) };
};
const fragmented = (whole: string): Buffer =>
  Buffer.concat([wsFrame(1, whole.slice(0, 5), false), wsFrame(9), wsFrame(0, whole.slice(5))]);
const sizes = (count: number, bytes: number): number[] => Array<number>(count).fill(bytes);

const streams: readonly Sent[] = [
  sent('many in one read', sizes(300, 100), text, WHOLE),
  sent('binary, many in one read', sizes(300, 100), (whole) => binary(Buffer.from(whole)), WHOLE),
  sent('split into reads within frames', sizes(60, 100), text, 250),
  sent('split within a head', sizes(60, 6_000), text, 6_005),
  // 60 frames of 102 bytes, and the first byte of the next one.
  sent('split within a head, many more in the same read', sizes(300, 100), text, 60 * 102 + 1),
  sent('each larger than a read', sizes(8, 100_000), text, WHOLE),
  sent('small and large, alternating', [100, 40_000, 100, 20_000, 100, 100, 70_000, 100], text, 10_000),
  sent('in fragments', sizes(40, 200), fragmented, WHOLE),
  sent('in fragments, each larger than a read', sizes(6, 90_000), fragmented, 30_000),
];

/** Writes the pieces in separate reads, then closes with a code that stops the feed. */
const sends =
  ({ writes }: Sent): HandshakeStep =>
  (peer) => {
    const rest = [switching(peer), ...writes, close(4001, 'connection replaced')];
    const next = (): void => {
      const bytes = rest.shift();
      if (bytes === undefined || peer.socket.destroyed) return;
      peer.socket.write(bytes, () => void setTimeout(next, 1));
    };
    next();
  };

/** Transfers the memory of a frame to another thread. Returns the name of the exception. */
const transferTo = (port: MessageChannel, { data }: Frame): string | undefined => {
  try {
    port.port1.postMessage(data, [data.buffer as ArrayBuffer]);
    return undefined;
  } catch (error) {
    return (error as Error).name;
  }
};

const modes: readonly (readonly [string, () => TradeFeedOptions])[] = [
  ['here', () => ({})],
  ["with a user's agent", () => ({ agent: new Agent() })],
  ['in a worker', () => ({ receiveIn: 'worker' })],
];

describe.each(modes)('frames %s', (_where, optionsOf) => {
  it.each(streams)('cannot be transferred, and all of them arrive: $what', async (stream) => {
    await using wire = await startWire({ handshake: [sends(stream)] });
    const port = new MessageChannel();
    const texts: string[] = [];
    const thrown = new Set<string | undefined>();
    const received: Frame[] = [];

    const failure: unknown = await new Promise((resolve) => {
      tradeFeed$('market', optionsFor(wire, optionsOf())).subscribe({
        next: (frame) => {
          thrown.add(transferTo(port, frame));
          texts.push(frame.text());
          received.push(frame);
        },
        error: resolve,
      });
    });

    expect(failure).toMatchObject({ code: 'connection-replaced', framesReceived: stream.payloads.length });
    expect(texts).toEqual(stream.payloads);
    expect([...thrown]).toEqual([isCopied ? undefined : 'DataCloneError']);
    // Later frames did not empty them.
    expect(received.map((frame) => frame.text())).toEqual(stream.payloads);
    // Node 20 sends a copy of the whole frame.
    for (const whole of isCopied ? stream.payloads : []) {
      const copy = receiveMessageOnPort(port.port2) as { readonly message: Uint8Array };
      expect(Buffer.from(copy.message).toString()).toBe(whole);
    }
    port.port1.close();
  });

  it('cause no gap and no failure when they are cloned with a transfer list', async () => {
    const stream = sent('', sizes(100, 1_000), text, 3_333);
    await using wire = await startWire({ handshake: [sends(stream)] });
    const seen = await until(tradeFeedEvents$('market', optionsFor(wire, { ...optionsOf() })), (event) => {
      if (event.type === 'frame') {
        try {
          structuredClone(event.data, { transfer: [event.data.buffer as ArrayBuffer] });
        } catch (error) {
          expect((error as Error).name).toBe('DataCloneError');
        }
      }
      return event.type === 'frame' && event.text().startsWith('99 ');
    });
    expect(seen.map(({ type }) => type).filter((type) => type !== 'frame' && type !== 'watermark')).toEqual([
      'ticket-requested',
      'ticket-issued',
      'opened',
    ]);
    expect(seen.flatMap((event) => (event.type === 'frame' ? [event.text()] : []))).toEqual(stream.payloads);
  });
});
