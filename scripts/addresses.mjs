// The release check of addresses. The constant `repository` of meanings.ts sets them: texts of failures derive theirs from it, and so does
// package.json. Exits with 1 while the constant is empty, or package.json differs. `--write` writes package.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const source = 'src/protocol/failures/meanings.ts';

/** Returns the value of the constant in the text of its file. */
export const repositoryIn = (text) => {
  const [, value] = /^export const repository = '(.*)' as string;$/m.exec(text) ?? [];
  if (value === undefined) throw new Error(`${source} has no constant \`repository\` in one line.`);
  return value;
};

/** Returns the fields of package.json that contain addresses. */
export const addressesOf = (repository) => ({
  homepage: `${repository}#readme`,
  bugs: { url: `${repository}/issues` },
  repository: { type: 'git', url: `git+${repository}.git` },
});

/** Returns what keeps a release from having addresses: one sentence for each problem. */
export const addressProblems = (repository, manifest) => {
  if (repository === '')
    return [`${source}: the constant \`repository\` is empty. Set it to the address of the public repository.`];
  if (!/^https:\/\/[^\s/]+(\/[\w.-]+)+$/.test(repository) || repository.endsWith('.git'))
    return [
      `${source}: the constant \`repository\` must be an https: address without / or .git at its end, got ${repository}.`,
    ];
  return Object.entries(addressesOf(repository))
    .map(([name, value]) => [name, JSON.stringify(value)])
    .filter(([name, value]) => JSON.stringify(manifest[name]) !== value)
    .map(([name, value]) => `package.json: \`${name}\` must be ${value}. Run npm run addresses -- --write.`);
};

/** Returns the text of package.json with the addresses before the license, as npm orders them. */
export const withAddresses = (text, repository) => {
  const addresses = addressesOf(repository);
  const others = Object.entries(JSON.parse(text)).filter(([name]) => !(name in addresses));
  const license = others.findIndex(([name]) => name === 'license');
  const fields = others.toSpliced(license, 0, ...Object.entries(addresses));
  return `${JSON.stringify(Object.fromEntries(fields), undefined, 2)}\n`;
};

const main = (isWriting) => {
  const repository = repositoryIn(readFileSync(source, 'utf8'));
  const text = readFileSync('package.json', 'utf8');
  const isUsable = addressProblems(repository, addressesOf(repository)).length === 0;
  if (!isWriting || !isUsable) return addressProblems(repository, JSON.parse(text));
  writeFileSync('package.json', withAddresses(text, repository));
  return [];
};

if (import.meta.filename === process.argv[1]) {
  process.chdir(join(import.meta.dirname, '..'));
  const problems = main(process.argv.includes('--write'));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
