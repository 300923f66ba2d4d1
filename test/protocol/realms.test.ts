import { describe, expect, it } from '@jest/globals';
import { right } from 'fp-ts/lib/Either.js';
import * as t from 'io-ts';
import { firstValueFrom, from, of, throwError, toArray } from 'rxjs';
import { once } from 'node:events';
import { runInNewContext } from 'node:vm';
import { Decoded, decodeWith, Frame, isTradeFeedError, requestTicket, toReadable } from '../../src/index.js';
import { whereBytes, whereField } from '../../src/index.js';
import { bytesOf, withOwnBytes } from '../../src/operators/items/item.js';
import { writeFrame } from '../../src/operators/node/write-frame.js';
import { isBytes, isError, isUrl } from '../../src/protocol/type-guards.js';

/** Evaluates an expression in another realm, whose classes aren't those of this one. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- names the type of the expression
const foreign = <T>(expression: string): T => runInNewContext(expression, { Buffer, URL }) as T;

const foreignBytes = (text: string): Uint8Array => foreign(`Uint8Array.of(${Buffer.from(text).join()})`);
const frameOf = (data: Uint8Array, isBinary = false) => new Frame<Uint8Array>('raw', data, isBinary, 5, 1);

describe('values of another realm, such as jsdom, an iframe or node:vm', () => {
  it('really have other classes in these tests', () => {
    expect([foreignBytes('') instanceof Uint8Array, foreign('new Error()') instanceof Error]).toEqual([false, false]);
  });

  it('are told apart by what they are, not by their class', () => {
    expect(['Uint8Array.of(1)', 'new Uint8Array(2).subarray(1)', 'Buffer.from("a")'].map(foreign).map(isBytes)).toEqual(
      [true, true, true],
    );
    expect(
      ['new Int8Array(1)', 'new DataView(new ArrayBuffer(1))', 'new ArrayBuffer(1)', '[1]', '"a"', 'null']
        .map(foreign)
        .map(isBytes),
    ).toEqual(Array(6).fill(false));
    expect(['new Error()', 'new (class Own extends TypeError {})()'].map(foreign).map(isError)).toEqual([true, true]);
    expect([new DOMException('a'), new TypeError()].map(isError)).toEqual([true, true]);
    expect(
      ['({ message: "a" })', '"Error"', 'null', '({ get [Symbol.toStringTag]() { throw 1; } })']
        .map(foreign)
        .map(isError),
    ).toEqual(Array(4).fill(false));
    expect([new URL('http://a'), 'http://a', { href: 'http://a' }].map(isUrl)).toEqual([true, false, false]);
  });

  it('are decoded in a frame, with a byte order mark and whatever is not ASCII', () => {
    for (const text of ['{"n":1}', '', '{"n":"€ 漢 🙂"}', '\ufeffwith a byte order mark'])
      expect(frameOf(foreignBytes(text)).text()).toBe(text);
    expect(frameOf(foreignBytes('{"n":1}')).json()).toEqual({ n: 1 });
    expect(frameOf(foreign('Buffer.from(`{"n":"€"}`)')).text()).toBe('{"n":"€"}');
    expect(frameOf(foreign('new Uint8Array(new SharedArrayBuffer(2)).fill(65)')).text()).toBe('AA');
  });

  it('pass operators as if they were of this realm', async () => {
    const frames = from(['{"to":"a"}', '{"to":"b"}'].map((text) => frameOf(foreignBytes(text))));
    const texts = (frames$: typeof frames) =>
      firstValueFrom(frames$.pipe(toArray())).then((all) => all.map((each) => each.text()));
    expect(await texts(frames.pipe(whereBytes(foreignBytes('"b"'))))).toEqual(['{"to":"b"}']);
    expect(await texts(frames.pipe(whereField('to', foreign<Set<string>>('new Set(["b"])'))))).toEqual(['{"to":"b"}']);
    expect(await texts(frames.pipe(whereField('to', foreign<string[]>('["b"]'))))).toEqual(['{"to":"b"}']);
    const decoded = frames.pipe(decodeWith(t.type({ to: t.string })), toArray());
    expect((await firstValueFrom(decoded)).map(({ value }) => value.to)).toEqual(['a', 'b']);
  });

  it('are written as the same line as those of this realm', () => {
    for (const isBinary of [false, true])
      for (const text of ['{"n":"€"}', '\ufffd'])
        expect(writeFrame(frameOf(foreignBytes(text), isBinary))).toBe(
          writeFrame(frameOf(Buffer.from(text), isBinary)),
        );
  });

  it('count with their bytes, and are copied out of a larger buffer', () => {
    const sparse = foreign<Uint8Array>('new Uint8Array(1000).subarray(0, 10)');
    expect(bytesOf(sparse)).toBe(10);
    expect(withOwnBytes(sparse).buffer.byteLength).toBe(10);
    expect(withOwnBytes(frameOf(sparse)).data.buffer.byteLength).toBe(10);
    const either = Object.assign(foreign<object>('({})'), right(new Decoded(1, frameOf(sparse))));
    expect((withOwnBytes(either) as unknown as { right: Decoded<number> }).right.frame.data.buffer.byteLength).toBe(10);
  });

  it('are the error of a Node stream, unchanged', async () => {
    const error = foreign<Error>('new RangeError("theirs")');
    const stream = toReadable()(throwError(() => error));
    stream.read();
    expect((await once(stream, 'error'))[0]).toBe(error);
  });

  it('say why a function returned no API key', async () => {
    const apiKey = () => Promise.reject(foreign<Error>('new Error("the vault is sealed")'));
    const ticket = firstValueFrom(of('raw' as const).pipe(requestTicket({ baseUrl: 'http://127.0.0.1:9', apiKey })));
    await expect(ticket).rejects.toMatchObject({ message: expect.stringContaining('the vault is sealed') });
  });

  it('are failures, if a copy of this library made them', () => {
    const copy = foreign(
      'Object.assign(new Error("a"), { name: "TradeFeedError", code: "not-entitled", verdict: "stop" })',
    );
    expect(isTradeFeedError(copy)).toBe(true);
  });
});
