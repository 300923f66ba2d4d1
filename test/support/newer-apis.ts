/**
 * Deletes APIs that are newer than the oldest supported browser (docs/browsers.md). Returns the names it couldn't delete.
 *
 * Other contexts run this function's source text, so it mustn't refer to anything outside.
 */
export const withoutNewerApis = (): string[] => {
  const root = globalThis as unknown as Record<string, object | undefined>;
  const prototypeOf = (value: unknown): object | undefined => Object.getPrototypeOf(value) as object | undefined;
  const owners: (readonly [object | undefined, string])[] = [
    [root['URL'], 'canParse parse'],
    [root['AbortSignal'], 'any'],
    [root['Promise'], 'withResolvers try'],
    [root['Object'], 'groupBy'],
    [root['Map'], 'groupBy'],
    [root['Array'], 'fromAsync'],
    [Array.prototype, 'toSorted toReversed toSpliced with'],
    [prototypeOf(Uint8Array.prototype), 'toSorted toReversed with'],
    [Uint8Array, 'fromBase64 fromHex'],
    [Uint8Array.prototype, 'toBase64 toHex setFromBase64'],
    [Set.prototype, 'union intersection difference isSubsetOf'],
    [String.prototype, 'isWellFormed toWellFormed'],
    [
      prototypeOf(prototypeOf([][Symbol.iterator]())),
      'map filter take drop flatMap toArray forEach some every find reduce',
    ],
    [root['Error'], 'isError'],
    [root['RegExp'], 'escape'],
  ];
  return owners.flatMap(([owner, names]) =>
    names.split(' ').filter((name) => {
      if (owner) Reflect.deleteProperty(owner, name);
      return owner !== undefined && (owner as Record<string, unknown>)[name] !== undefined;
    }),
  );
};
