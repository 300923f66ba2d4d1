// Rules for the codecs of all libraries, with every `onInvalid`.
import { describe, expect, it, jest } from '@jest/globals';
import type { Either } from 'fp-ts/lib/Either.js';
import { map, Observable, of, Subject } from 'rxjs';
import type { Codec } from '../../src/operators/decode/codec.js';
import { DecodeError, type DecodeFailure } from '../../src/operators/decode/decode-failure.js';
import { decodeEither } from '../../src/operators/decode-either.js';
import { decodeWith, type DecodeOptions } from '../../src/operators/decode-with.js';
import { shareFeed } from '../../src/operators/share-feed.js';
import type { Decoded } from '../../src/operators/items/decoded.js';
import { ReplayedFrame } from '../../src/operators/items/replayed.js';
import { bytesReader, readFrame } from '../../src/protocol/event-line.js';
import type { AnyFrame, Frame } from '../../src/protocol/frame.js';
import { emitFrames } from '../../src/worker/block.js';
import { createOpenBlock } from '../../src/worker/open-block.js';
import { libraries, listOf } from './decode/schemas.js';
import { frameOf } from './stream.js';

type Operator = (codec: Codec<unknown>) => (source$: Observable<AnyFrame>) => Observable<unknown>;

const valueOf = map(({ value }: Decoded<unknown, AnyFrame>) => value);
const withOptions =
  (options: DecodeOptions): Operator =>
  (codec) =>
  (source$) =>
    source$.pipe(decodeWith(codec, options), valueOf);

/** Maps each frame to its value, and an invalid one to its messages. */
const either: Operator = (codec) => (source$) =>
  source$.pipe(
    decodeEither(codec),
    map((each: Either<DecodeFailure, Decoded<unknown, AnyFrame>>) =>
      each._tag === 'Right' ? each.right.value : each.left.issues,
    ),
  );

const operators: readonly [string, Operator][] = [
  ["decodeWith, 'drop'", withOptions({})],
  ["decodeWith, 'error'", withOptions({ onInvalid: 'error' })],
  ['decodeWith, a function', withOptions({ onInvalid: () => expect('onInvalid').toBe('not called') })],
  ['decodeWith, without compiling', withOptions({ compile: false })],
  ['decodeEither', either],
];

const texts = (...all: readonly string[]): readonly AnyFrame[] => all.map((text) => frameOf(text));

/** Emits frames one by one. Returns all outputs, with an error as the last one. */
const outcomeOf = (frames: readonly AnyFrame[], operator: (source$: Observable<AnyFrame>) => Observable<unknown>) => {
  const source$ = new Subject<AnyFrame>();
  const seen: unknown[] = [];
  const errors: unknown[] = [];
  operator(source$).subscribe({ next: (value) => seen.push(value), error: (error) => errors.push(error) });
  for (const frame of frames) source$.next(frame);
  return { seen, errors, isObserved: source$.observed };
};

const failingAt = (zero: number, error: unknown) => (n: number) => {
  if (n === zero) throw error;
  return n;
};

describe.each(libraries)('an error of a function in a codec: $name', ({ checked, changed }) => {
  const three = texts('{"n":1}', '{"n":0}', '{"n":2}');

  it.each(operators)('is the error of the stream, in the place of the frame: %s', (_name, operator) => {
    const bug = new Error('a bug');
    for (const codec of [checked((n) => failingAt(0, bug)(n) > 0), changed(failingAt(0, bug))]) {
      const { seen, errors, isObserved } = outcomeOf(three, operator(codec));
      expect(seen).toEqual([{ n: 1 }]);
      expect(errors).toHaveLength(1);
      expect(errors[0]).toBe(bug);
      expect(isObserved).toBe(false);
    }
  });

  it.each<[string, unknown]>([
    ['no Error', 'a text'],
    ['nothing', undefined],
    ['a RangeError', new RangeError('Invalid array length')],
    ['a TypeError', new TypeError('during a bug')],
  ])('is the error of the stream if it is %s', (_name, thrown) => {
    for (const codec of [checked((n) => failingAt(0, thrown)(n) > 0), changed(failingAt(0, thrown))])
      expect(outcomeOf(three, withOptions({})(codec)).errors).toEqual([thrown]);
  });

  it('is the error of the stream if the function recurses without end', () => {
    const endless = (n: number): number => (n === 0 ? endless(n) + 1 : n);
    const { errors } = outcomeOf(three, withOptions({})(changed(endless)));
    expect(errors).toEqual([expect.objectContaining({ message: 'Maximum call stack size exceeded' })]);
    expect(errors[0]).not.toBeInstanceOf(DecodeError);
  });

  it('does not end other subscriptions to the same feed', () => {
    const bug = new Error('a bug');
    const source$ = new Subject<AnyFrame>();
    const feed$ = source$.pipe(shareFeed());
    const seen: unknown[] = [];
    const sound: unknown[] = [];
    feed$.pipe(decodeWith(changed(failingAt(0, bug)))).subscribe({ error: (error) => seen.push(error) });
    feed$.pipe(decodeWith(checked(() => true)), valueOf).subscribe((value) => sound.push(value));
    for (const frame of three) source$.next(frame);
    expect(seen).toEqual([bug]);
    expect(sound).toEqual([{ n: 1 }, { n: 0 }, { n: 2 }]);
  });

  it('is thrown once: the function is called once per frame', () => {
    const change = jest.fn(failingAt(0, new Error('a bug')));
    outcomeOf(three, withOptions({})(changed(change)));
    expect(change.mock.calls.map(([n]) => n)).toEqual([1, 0]);
  });
});

// A few of the codecs take a quarter of a second for such a document.
jest.setTimeout(30_000);

const issue = { path: '', message: 'nested more than 100 levels deep: the codec ran out of stack' };
const small = '{"n":1,"next":null}';

describe.each(libraries)('a document that is nested too deeply: $name', ({ list }) => {
  const deep = listOf(20_000);
  const frames = texts(deep, small, listOf(20_000, '"x"'), small);
  const value = { n: 1, next: null };

  it('is an invalid frame, also as the first one, and is dropped', () => {
    for (const options of [{}, { compile: false }])
      expect(outcomeOf(frames, withOptions(options)(list()))).toEqual({
        ...{ seen: [value, value], errors: [], isObserved: true },
      });
  });

  it('is reported to a function', () => {
    const onInvalid = jest.fn<(failure: DecodeFailure) => void>();
    const { seen } = outcomeOf(frames, withOptions({ onInvalid })(list()));
    expect(seen).toEqual([value, value]);
    expect(onInvalid.mock.calls.map(([{ issues }]) => issues)).toEqual([[issue], [issue]]);
  });

  it("is a DecodeError with onInvalid 'error'", () => {
    const { errors } = outcomeOf(frames, withOptions({ onInvalid: 'error' })(list()));
    expect(errors).toEqual([expect.any(DecodeError)]);
    expect((errors[0] as DecodeError).failure.issues).toEqual([issue]);
  });

  it('is on the left of an Either', () => {
    expect(outcomeOf(frames, either(list())).seen).toEqual([[issue], value, [issue], value]);
  });

  it('is decoded if it has 100 levels', () => {
    const { seen } = outcomeOf(texts(listOf(100), listOf(100, '"x"')), either(list()));
    expect(seen).toEqual([JSON.parse(listOf(100)), expect.not.arrayContaining([issue])]);
  });
});

const relayed = { feed: 'market', connection: 1, receivedAt: 1, isBinary: false, encoding: 'utf8' };

/** Creates a frame as each source does. */
const hops: readonly [string, (text: string) => AnyFrame][] = [
  ['the service', (text) => frameOf(text)],
  ['a relay', (data) => readFrame({ ...relayed, data }, bytesReader)],
  ['a recording', (text) => new ReplayedFrame('market', Buffer.from(text), false, 1, 1, 0)],
  [
    'a worker',
    (text) => {
      const block = createOpenBlock(1);
      block.add(frameOf(text, 1));
      const received: AnyFrame[] = [];
      new Observable<Frame>((subscriber) => emitFrames(block.seal()!, 1, subscriber)).subscribe((frame) =>
        received.push(frame),
      );
      return received[0]!;
    },
  ],
];

describe.each(hops)('a frame of %s', (_name, hop) => {
  it.each(libraries)('is decoded, refused or fails in the same way: $name', ({ changed, list }) => {
    const bug = new Error('a bug');
    const onInvalid = jest.fn<(failure: DecodeFailure) => void>();
    const frames = [small, listOf(20_000), small].map(hop);
    const operator = (codec: Codec<unknown>) => withOptions({ onInvalid })(codec);
    expect(outcomeOf(frames, operator(list())).seen).toEqual([JSON.parse(small), JSON.parse(small)]);
    expect(onInvalid.mock.calls.map(([{ issues }]) => issues)).toEqual([[issue]]);
    expect(outcomeOf([hop('{"n":1}'), hop('{"n":0}')], operator(changed(failingAt(0, bug))))).toEqual({
      ...{ seen: [{ n: 1 }], errors: [bug], isObserved: false },
    });
  });
});

it('emits the frame itself with its value', () => {
  const [, hop] = hops[1]!;
  const frame = hop('{"n":1}');
  of(frame)
    .pipe(decodeWith(libraries[0]!.checked(() => true)))
    .subscribe((decoded) => expect(decoded.frame).toBe(frame));
  expect.assertions(1);
});
