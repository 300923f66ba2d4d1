import { parseArgs } from 'node:util';

/**
 * Reads options that are whole numbers, by name with their defaults. Exits with 2 if one isn't, or is less than its minimum.
 *
 * @param least - the minimum of some options; 0 for others
 * @param args - the command line, without the name of the program
 */
export const wholeNumbers = (defaults, least = {}, args = process.argv.slice(2)) => {
  const options = Object.entries(defaults).map(([name, value]) => [name, { type: 'string', default: String(value) }]);
  const { values } = parseArgs({ args, options: Object.fromEntries(options) });
  for (const [name, value] of Object.entries(values)) {
    if (/^\d+$/.test(value) && Number(value) >= (least[name] ?? 0)) continue;
    console.error(`--${name} must be a whole number, ${least[name] ?? 0} or more.`);
    process.exit(2);
  }
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, Number(value)]));
};
