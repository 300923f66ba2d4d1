/** One option of a command. `T` is what its text is read as; a switch takes no text and is `true` when given. */
export interface OptionSpec<T> {
  /** The placeholder of its value in the help; absent for a switch. */
  readonly value?: string;
  readonly short?: string;
  readonly help: string;
  /** Reads the text; gives `undefined` for one that is not allowed. */
  readonly read: (text: string) => T | undefined;
  /** What is allowed, in words: "must be …". */
  readonly allowed: string;
}

/** The options of a command, by name without the dashes. */
export type OptionTable = Readonly<Record<string, OptionSpec<unknown>>>;

/** What was given of an option table. */
export type OptionValues<O extends OptionTable> = {
  readonly [K in keyof O]?: O[K] extends OptionSpec<infer T> ? T : never;
};

type Named<T> = Omit<OptionSpec<T>, 'help'>;

/** A switch. */
export const given: Named<true> = { read: () => true, allowed: 'given without a value' };

/** Any text but none. */
export const text = (value: string): Named<string> => ({
  value,
  read: (given) => given || undefined,
  allowed: 'followed by a value',
});

/** A whole number within bounds. */
export const wholeNumber = (value: string, from: number, to = Number.MAX_SAFE_INTEGER): Named<number> => ({
  value,
  read: (given) => (/^\d+$/.test(given) && Number(given) >= from && Number(given) <= to ? Number(given) : undefined),
  allowed: to === Number.MAX_SAFE_INTEGER ? `a whole number, ${from} or more` : `a whole number from ${from} to ${to}`,
});

/** A number of things a second. */
export const perSecond: Named<number> = {
  value: 'N',
  read: (given) => (isDecimal(given) && Number(given) > 0 && Number(given) <= 100_000 ? Number(given) : undefined),
  allowed: 'a number above 0, up to 100000',
};

const unitMs = new Map([
  ['', 1_000],
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** A time, read as ms: seconds, or with a unit. A timer keeps no more than 2^31-1 ms. */
export const timeMs: Named<number> = {
  value: 'TIME',
  read: (given) => {
    const amount = given.replace(/[a-z]*$/, '');
    const ms = Number(amount) * (unitMs.get(given.slice(amount.length)) ?? NaN);
    return isDecimal(amount) && ms <= 2 ** 31 - 1 ? ms : undefined;
  },
  allowed: 'a time of at most 24 days, such as 30, 1.5s, 10m or 2h',
};

const unitBytes = new Map([
  ['', 1],
  ['k', 1e3],
  ['m', 1e6],
  ['g', 1e9],
  ['t', 1e12],
]);

/** A size, read as bytes: in steps of 1000, as it is shown. */
export const sizeBytes: Named<number> = {
  value: 'SIZE',
  read: (given) => {
    const [, amount = '', unit = ''] = /^([\d.]+)([kmgt]?)b?$/i.exec(given) ?? [];
    const bytes = Number(amount) * (unitBytes.get(unit.toLowerCase()) ?? NaN);
    return isDecimal(amount) && bytes >= 1 && bytes <= Number.MAX_SAFE_INTEGER ? Math.floor(bytes) : undefined;
  },
  allowed: 'a size such as 500kB, 100MB, 2GB or 1TB',
};

/** How many times as fast. */
export const speed: Named<number> = {
  value: 'N|max',
  read: (given) => {
    if (given === 'max') return Infinity;
    return isDecimal(given) && Number(given) > 0 && Number(given) <= 1e6 ? Number(given) : undefined;
  },
  allowed: 'a number above 0, up to 1000000, or max',
};

/** One of the given words. */
export const word = <W extends string>(...words: readonly W[]): Named<W> => ({
  value: words.join('|'),
  read: (given) => words.find((word) => word === given),
  allowed: words.join(' or '),
});

const isDecimal = (given: string): boolean => /^\d+(\.\d+)?$/.test(given);
