/** The check of an option: a function, and a text that describes the allowed values. */
export type Check = readonly [is: (value: unknown) => boolean, allowed: string];

/** The checks of options, by name. */
export type Checks = Readonly<Record<string, Check | Group>>;

/** The checks of an option that is an object. */
export interface Group {
  readonly within: Checks;
  /** Whether all fields are required. */
  readonly all?: true;
}

/** Throws a TypeError with the name and the allowed values if the check fails. The error never contains a string value, which may be a secret. */
export const checkValue = (name: string, value: unknown, [is, allowed]: Check): void => {
  if (is(value)) return;
  const actual = typeof value === 'number' ? String(value) : value === null ? 'null' : typeof value;
  throw new TypeError(`\`${name}\` must be ${allowed}; got ${actual}.`);
};

/** Throws a TypeError for the first option that is unknown or fails its check. `undefined` means the default. */
export const checkOptions = (value: unknown, { within, all }: Group, name?: string): void => {
  checkValue(name ?? 'options', value, object);
  const fields = value as Record<string, unknown>;
  const path = (key: string): string => (name === undefined ? key : `${name}.${key}`);
  const unknown = Object.keys(fields).find((key) => !Object.hasOwn(within, key));
  if (unknown !== undefined) {
    throw new TypeError(`\`${path(unknown)}\` is not an option; allowed are ${Object.keys(within).join(', ')}.`);
  }
  for (const [key, check] of Object.entries(within)) {
    const field = fields[key];
    if (field === undefined && all !== true) continue;
    if ('within' in check) checkOptions(field, check, path(key));
    else checkValue(path(key), field, check);
  }
};

/** Returns the fields that are not `undefined`, so that a spread keeps the defaults of the others. */
export const definedOnly = <T extends object>(options: T | undefined): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as never;

/** Creates the check of a number within bounds. */
export const numberIn = (from: number, to: number, unit: string): Check => [
  (value) => typeof value === 'number' && value >= from && value <= to,
  `a number of ${unit} from ${from} to ${to}`,
];

/** Creates the check of a whole number within bounds. */
export const integerIn = (from: number, to: number): Check => [
  (value) => Number.isInteger(value) && Number(value) >= from && Number(value) <= to,
  `a whole number from ${from} to ${to}`,
];

/** The check of a whole number from 0, or Infinity. */
export const count: Check = [
  (value) => value === Infinity || (Number.isInteger(value) && Number(value) >= 0),
  'a whole number from 0, or Infinity',
];

/** The check of a boolean. */
export const boolean: Check = [(value) => typeof value === 'boolean', 'true or false'];

/** Creates the check of a value that must be one of the words. */
export const oneOf = (...words: readonly string[]): Check => [
  (value) => words.some((word) => word === value),
  words.map((word) => `"${word}"`).join(' or '),
];

/** The check of an RxJS scheduler. */
export const scheduler: Check = [
  (value) => typeof (value as { schedule?: unknown } | null | undefined)?.schedule === 'function',
  'an RxJS SchedulerLike',
];

const object: Check = [
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'an object of options',
];
