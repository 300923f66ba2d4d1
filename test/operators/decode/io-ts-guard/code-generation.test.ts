import { describe, expect, it } from '@jest/globals';
import { runBundled } from '../run-bundled.js';

/** Counts how often a function is created from text while frames are decoded in each possible way. */
const program = `
  import * as t from 'io-ts';
  import { of } from 'rxjs';
  import { Frame } from './src/protocol/frame.js';
  import { decodeWith } from './src/operators/decode-with.js';
  import { decodeEither } from './src/operators/decode-either.js';

  let tries = 0;
  globalThis.Function = new Proxy(Function, {
    construct: (target, args) => {
      tries += 1;
      return Reflect.construct(target, args);
    },
  });
  const texts = ['{"n":1}', '{"n":"x"}', '{"n":2}'];
  const frames$ = of(...texts.map((text) => new Frame('raw', Buffer.from(text), false, 0, 1)));
  const values = [];
  const codec = () => t.type({ n: t.number });
  const decodeAll = (options) => {
    const before = tries;
    const operators = [...Array(5)].flatMap(() => [decodeWith(codec(), options), decodeEither(codec(), options)]);
    const untried = tries - before;
    for (const operator of operators) frames$.pipe(operator).subscribe((each) => values.push((each.right ?? each).value?.n ?? each._tag));
    return [untried, tries - before];
  };
  const never = decodeAll({ compile: false });
  const first = decodeAll({ compile: true });
  const second = decodeAll();
  console.log(JSON.stringify({ never, first, second, values }));`;

const values = Array.from({ length: 15 }, () => [1, 2, 1, 'Left', 2]).flat();

describe('code generation', () => {
  it('is tried once where it is disallowed, at the first frame, and never with `compile: false`; the values are the same', async () => {
    expect(await runBundled(program, ['--disallow-code-generation-from-strings'])).toEqual({
      ...{ never: [0, 0], first: [0, 1], second: [0, 0], values },
    });
  }, 30_000);

  it('is tried once where it is allowed, plus once for each codec, and never with `compile: false`', async () => {
    expect(await runBundled(program)).toEqual({ never: [0, 0], first: [0, 11], second: [0, 10], values });
  }, 30_000);
});
