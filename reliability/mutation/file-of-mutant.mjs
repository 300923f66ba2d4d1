import { readdirSync, readFileSync } from 'node:fs';

let files;

/** The source file that holds a mutant, found by the switches that Stryker writes into its copy of the sources. */
export const fileOfMutant = (mutant) => {
  files ??= new Map(
    readdirSync('src', { recursive: true })
      .filter((name) => name.endsWith('.ts'))
      .flatMap(mutantsIn),
  );
  return files.get(mutant) ?? '';
};

const mutantsIn = (name) => {
  const switches = readFileSync(`src/${name}`, 'utf8').matchAll(/stryMutAct_\w+\("(\d+)"\)/g);
  return [...switches].map(([, id]) => [id, name]);
};
