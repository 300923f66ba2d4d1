import { bodies } from './guard-bodies.js';
import { tests } from './guard-tests.js';
import type { Writer } from './guard-text.js';
import type { Tagged } from './tagged.js';
import { unionTags } from './union-tags.js';

/** The body of a function with the parameter `captured` that returns a guard, and the captured values: user values that are not names or literals. */
export interface GuardSource {
  readonly text: string;
  readonly captured: readonly unknown[];
}

/** Writes the guard of a codec that changes nothing. The guard returns whether the decoder would return its input. */
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
      // Before the body: a recursive type calls its own function.
      names.set(part, name);
      const body = bodies.get(kindOf(part))?.(part as Required<Tagged>, writer) ?? unknown;
      functions.push(`const ${name} = (v) => {\n${body.join('\n')}\n};`);
      return name;
    },
  };
  const test = `return (v) => Boolean(${writer.test(codec, 'v')});`;
  const constants = captured.map((_, n) => `const c${n} = captured[${n}];`);
  return { text: [...prelude, ...constants, ...functions, test].join('\n'), captured };
};

const prelude = [
  `'use strict';`,
  'const { isArray } = Array, { keys } = Object, hasOwn = Object.prototype.hasOwnProperty;',
];

// The guard refuses each document of an unknown type, so that the decoder checks it.
const unknown = ['return false;'];

// A union with tags tests one member; any other union tests its members in order.
const kindOf = (codec: Tagged): string | undefined =>
  codec._tag === 'UnionType' && unionTags(codec) ? 'TaggedUnionType' : codec._tag;
