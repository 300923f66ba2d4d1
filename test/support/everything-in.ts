import { inspect } from 'node:util';

/** Returns everything a value references as text: all own properties, without prototypes, and every way to print it. */
export const everythingIn = (value: unknown, visited = new Set<unknown>()): string => {
  if (typeof value === 'string') return value;
  if (Buffer.isBuffer(value)) return value.toString('latin1');
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || visited.has(value))
    return String(value);
  visited.add(value);
  const own = Reflect.ownKeys(value).map(
    (key) => `${String(key)}=${everythingIn((value as Record<PropertyKey, unknown>)[key], visited)}`,
  );
  return [
    value instanceof Error ? String(value) : '',
    JSON.stringify(value),
    inspect(value, { depth: null, showHidden: true, getters: true }),
    ...own,
  ].join('\n');
};
