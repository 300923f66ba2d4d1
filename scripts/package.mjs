// Checks the package as npm would publish it: the files in the tarball and their size, publint, and are-the-types-wrong. Reads dist.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';

/** Limits of the tarball. */
const maxBytes = 430_000;
const maxFiles = 180;

const { name, exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
const problems = [];

/** Returns what a program writes. */
const run = (...args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) problems.push(stdout + stderr);
  return stdout;
};

/** Returns all paths in a value of package.json, at any depth. */
const pathsIn = (value) => (typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(pathsIn));

/** Returns the files that relative links and images of a document lead to, outside its code. */
const linkedFrom = (path) =>
  [
    ...readFileSync(path, 'utf8')
      .replaceAll(/^```[\s\S]*?^```/gm, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ]
    .filter(([, link]) => !/^([a-z]+:|#)/i.test(link))
    .map(([, link]) => posix.join(posix.dirname(path), link.replace(/#.*$/, '')));

const allowed = [
  /^(README\.md|LICENSE|package\.json|bin\/rx-trade-feed\.js|docs\/([a-z-]+\/)?[a-z-]+\.(md|svg))$/,
  /^dist\/[\w/-]+(\.d\.ts|\.js|\.cjs|-license\.txt)$/,
];

const folder = mkdtempSync(join(tmpdir(), 'package-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
// Without `--ignore-scripts` npm would build again.
const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
const [{ filename, files, size }] = JSON.parse(execFileSync('npm', pack, { stdio: ['ignore', 'pipe', 'ignore'] }));
const inside = new Set(files.map(({ path }) => path));

for (const path of ['README.md', 'LICENSE', ...pathsIn(exports), ...pathsIn(bin)])
  if (!inside.has(path.replace(/^\.\//, ''))) problems.push(`Missing in the package: ${path}`);
for (const path of inside) {
  if (!allowed.some((form) => form.test(path))) problems.push(`Should not be in the package: ${path}`);
  for (const target of path.endsWith('.md') ? linkedFrom(path) : [])
    if (!inside.has(target))
      problems.push(`${path} links to ${target}, which is not in the package. Name the file in code instead.`);
}
if (size > maxBytes) problems.push(`The package has ${size} bytes, ${maxBytes} are allowed.`);
if (inside.size > maxFiles) problems.push(`The package has ${inside.size} files, ${maxFiles} are allowed.`);
run('node_modules/publint/src/cli.js', 'run', join(folder, filename), '--strict');
const attw = ['node_modules/@arethetypeswrong/cli/dist/index.js', '--profile', 'esm-only', '--no-color'];
const types = run(...attw, join(folder, filename));
for (const entry of Object.keys(exports).map((path) => path.replace(/^\./, name)))
  if (!types.includes(`"${entry}"`)) problems.push(`are-the-types-wrong did not check ${entry}`);

for (const problem of problems) console.error(problem);
console.log(`${inside.size} files, ${Math.round(size / 1000)} kB packed`);
process.exitCode = problems.length === 0 ? 0 : 1;
