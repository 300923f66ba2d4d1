import { inspect } from 'node:util';

/** Returns as text everything that a value references: all own properties, without prototypes, and every way to print it. */
export const everythingIn = (value: unknown, seen = new Set<unknown>()): string => {
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString('latin1');
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value))
    return String(value);
  seen.add(value);
  const own = Reflect.ownKeys(value).map(
    (key) => `${String(key)}=${everythingIn((value as Record<PropertyKey, unknown>)[key], seen)}`,
  );
  return [
    value instanceof Error ? String(value) : '',
    JSON.stringify(value),
    inspect(value, { depth: null, showHidden: true, getters: true }),
    ...own,
  ].join('\n');
};
