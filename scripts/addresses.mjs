// The release check of addresses. The constant `repository` of meanings.ts sets them: texts of failures derive theirs from it, and so does package.json.
// Exits with 1 while the constant is empty, or package.json differs. `--write` writes package.json.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const source = 'src/protocol/failures/meanings.ts';

/** Returns the value of the constant in the text of its file. */
export const repositoryIn = (text) => {
  const [, value] = /^export const repository = '(.*)' as string;$/m.exec(text) ?? [];
  if (value === undefined) throw new Error(`${source} has no constant \`repository\` in one line.`);
  return value;
};

/** Returns the fields of package.json that contain addresses, as arguments of `npm pkg set`. */
const fieldsFor = (repository) => ({
  homepage: `${repository}#readme`,
  'bugs.url': `${repository}/issues`,
  'repository.type': 'git',
  'repository.url': `git+${repository}.git`,
});

/** Returns what keeps a release from having addresses: one sentence for each problem. */
export const addressProblems = (repository, manifest) => {
  const its = `${source}: the constant \`repository\``;
  if (repository === '') return [`${its} is empty. Set it to the address of the public repository.`];
  if (!/^https:\/\/[^\s/]+(\/[\w.-]+)+$/.test(repository) || repository.endsWith('.git'))
    return [`${its} must be an https: address without / or .git at its end, got ${repository}.`];
  return Object.entries(fieldsFor(repository))
    .filter(([path, value]) => path.split('.').reduce((at, name) => at?.[name], manifest) !== value)
    .map(([path, value]) => `package.json: \`${path}\` must be ${value}. Run npm run addresses -- --write.`);
};

/** Writes the fields into package.json of a folder. */
export const writeAddresses = (repository, cwd) => {
  const fields = Object.entries(fieldsFor(repository)).map(([path, value]) => `${path}=${value}`);
  execFileSync('npm', ['pkg', 'set', ...fields], { cwd });
};

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, '..');
  const repository = repositoryIn(readFileSync(join(root, source), 'utf8'));
  const problems = () => addressProblems(repository, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
  const isWriting = process.argv.includes('--write') && !problems().some((problem) => problem.startsWith(source));
  if (isWriting) writeAddresses(repository, root);
  for (const problem of problems()) console.error(problem);
  process.exitCode = problems().length === 0 ? 0 : 1;
}
