import { readFileSync } from 'node:fs';

/** Reads the version from package.json, which lies as far from the source as from the built file. */
export const version = (): string => {
  const file = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
};
