import { readdirSync, readFileSync } from 'node:fs';

let files;

/** Returns the source file of a mutant. Stryker writes a switch with the id of each mutant into its copy of the sources. */
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
