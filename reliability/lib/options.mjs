import { parseArgs } from 'node:util';

/**
 * Reads options by name with their defaults. Exits with 2 if a number isn't valid.
 *
 * @param defaults - a number, a text, `false` for a flag, or `undefined` for a text that can be missing
 * @param least - the minimum of some whole numbers; 0 for others
 * @param positive - the names of numbers above 0 that needn't be whole
 * @param args - the command line, without the name of the program
 */
export const readOptions = (defaults, { least = {}, positive = [], args = process.argv.slice(2) } = {}) => {
  const names = Object.keys(defaults);
  const types = names.map((name) => [name, { type: defaults[name] === false ? 'boolean' : 'string' }]);
  const { values } = parseArgs({ args, options: Object.fromEntries(types) });
  const read = (name) => {
    const [value, fallback, minimum] = [values[name], defaults[name], least[name] ?? 0];
    if (value === undefined) return fallback;
    const isPositive = positive.includes(name);
    if (typeof fallback !== 'number' && !isPositive) return value;
    if (isPositive ? Number(value) > 0 : /^\d+$/.test(value) && Number(value) >= minimum) return Number(value);
    console.error(`--${name} must be ${isPositive ? 'a number above 0' : `a whole number, ${minimum} or more`}.`);
    process.exit(2);
  };
  return Object.fromEntries(names.map((name) => [name, read(name)]));
};
