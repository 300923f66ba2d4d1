import { bodies } from './guard-bodies.js';
import { tests } from './guard-tests.js';
import type { Writer } from './guard-text.js';
import type { Tagged } from './tagged.js';
import { unionTags } from './union-tags.js';

/** The body of a function of `captured` that gives a guard, and those values: what is the user's own, and no name or literal. */
export interface GuardSource {
  readonly text: string;
  readonly captured: readonly unknown[];
}

/** Writes the guard of a codec that changes nothing: it tells whether the decoder would give back the very value that it was given. */
export const guardSource = (codec: Tagged): GuardSource => {
  const captured: unknown[] = [];
  const functions: string[] = [];
  const names = new Map<Tagged, string>();
  const writer: Writer = {
    capture: (value) => `c${captured.push(value) - 1}`,
    test: (part, x) => tests.get(kindOf(part))?.(part as Required<Tagged>, x, writer) ?? `${writer.name(part)}(${x})`,
    name: (part) => {
      const known = names.get(part);
      if (known !== undefined) return known;
      const name = `g${names.size}`;
      // Before its body: a recursion calls itself.
      names.set(part, name);
      const body = bodies.get(kindOf(part))?.(part as Required<Tagged>, writer) ?? unknown;
      functions.push(`const ${name} = (v) => {\n${body.join('\n')}\n};`);
      return name;
    },
  };
  const whole = `return (v) => Boolean(${writer.test(codec, 'v')});`;
  const constants = captured.map((_, n) => `const c${n} = captured[${n}];`);
  return { text: [...prelude, ...constants, ...functions, whole].join('\n'), captured };
};

const prelude = [
  `'use strict';`,
  'const { isArray } = Array, { keys } = Object, own = Object.prototype.hasOwnProperty;',
];

// Left to the decoder.
const unknown = ['return false;'];

// A union with tags asks one member, any other all of them in turn.
const kindOf = (codec: Tagged): string | undefined =>
  codec._tag === 'UnionType' && unionTags(codec) ? 'TaggedUnionType' : codec._tag;
