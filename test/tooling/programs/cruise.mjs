// Checks the imports of projects with the rules of this repository, and prints a JSON list with the violations of each. Arguments: the folders.
import { resolve } from 'node:path';
import { cruise } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';

const options = await extractDepcruiseOptions(resolve('.dependency-cruiser.cjs'));
const violations = [];
for (const folder of process.argv.slice(2)) {
  // The rules contain paths that are relative to the working directory.
  process.chdir(folder);
  const { output } = await cruise(['src', 'test'], options, undefined, { tsConfig: extractTSConfig('tsconfig.json') });
  violations.push(output.summary.violations);
}
console.log(JSON.stringify(violations));
