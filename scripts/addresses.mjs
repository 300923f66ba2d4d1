// The release check of addresses. The constant `repository` of meanings.ts sets them: texts of failures derive theirs from it, and so does
// package.json. Exits with 1 while the constant is empty, or package.json differs. `--write` writes package.json.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const source = 'src/protocol/failures/meanings.ts';
const namesOfFields = ['homepage', 'repository', 'bugs'];

/** Returns the value of the constant in the text of its file. */
export const repositoryIn = (text) => {
  const [, value] = /^export const repository = '(.*)' as string;$/m.exec(text) ?? [];
  if (value === undefined) throw new Error(`${source} has no constant \`repository\` in one line.`);
  return value;
};

/** Returns the fields of package.json that contain addresses. */
export const addressesOf = (repository) => ({
  homepage: `${repository}#readme`,
  repository: { type: 'git', url: `git+${repository}.git` },
  bugs: { url: `${repository}/issues` },
});

/** Returns what keeps a release from having addresses: one sentence for each problem. */
export const addressProblems = (repository, manifest) => {
  if (repository === '')
    return [`${source}: the constant \`repository\` is empty. Set it to the address of the public repository.`];
  if (!/^https:\/\/[^\s/]+(\/[\w.-]+)+$/.test(repository) || repository.endsWith('.git'))
    return [
      `${source}: the constant \`repository\` must be an https: address without / or .git at its end, got ${repository}.`,
    ];
  const expected = addressesOf(repository);
  return namesOfFields
    .filter((name) => JSON.stringify(manifest[name]) !== JSON.stringify(expected[name]))
    .map(
      (name) =>
        `package.json: \`${name}\` must be ${JSON.stringify(expected[name])}. Run npm run addresses -- --write.`,
    );
};

/** Returns the text of package.json with the addresses, right after the license. */
export const withAddresses = (text, repository) => {
  const others = Object.entries(JSON.parse(text)).filter(([name]) => !namesOfFields.includes(name));
  const place = others.findIndex(([name]) => name === 'license') + 1;
  const fields = [...others.slice(0, place), ...Object.entries(addressesOf(repository)), ...others.slice(place)];
  return `${JSON.stringify(Object.fromEntries(fields), undefined, 2)}\n`;
};

const main = (root, isWriting) => {
  const manifest = join(root, 'package.json');
  const repository = repositoryIn(readFileSync(join(root, source), 'utf8'));
  const text = readFileSync(manifest, 'utf8');
  const isUsable = addressProblems(repository, addressesOf(repository)).length === 0;
  if (isWriting && isUsable) writeFileSync(manifest, withAddresses(text, repository));
  return addressProblems(repository, JSON.parse(readFileSync(manifest, 'utf8')));
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const problems = main(fileURLToPath(new URL('..', import.meta.url)), process.argv.includes('--write'));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
