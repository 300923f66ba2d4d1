// Checks the package as npm would publish it: the files in the tarball, publint, and are-the-types-wrong. Reads dist.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'package-'));
let failed = false;

const fail = (text) => {
  failed = true;
  console.error(text);
};

const run = (...args) => {
  try {
    return execFileSync(process.execPath, args, { encoding: 'utf8' });
  } catch ({ stdout, stderr }) {
    fail(stdout + stderr);
    return '';
  }
};

/** Returns all paths in a value of package.json, at any depth. */
const pathsIn = (value) => (typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(pathsIn));

try {
  // Without `--ignore-scripts` npm would build again.
  const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename, files, size }] = JSON.parse(packed);
  const inside = files.map(({ path }) => path);

  for (const path of ['README.md', 'CHANGELOG.md', 'LICENSE', ...pathsIn(exports), ...pathsIn(bin)]) {
    if (!inside.includes(path.replace(/^\.\//, ''))) fail(`Missing in the package: ${path}`);
  }
  for (const path of inside) {
    const isMeta = /^(README\.md|CHANGELOG\.md|LICENSE|package\.json)$/.test(path);
    const source = path.replace(/^dist\//, 'src/').replace(/(?:\.d)?\.(c?)[jt]s(?:\.map)?$/, '.$1ts');
    if (!isMeta && !(path.startsWith('dist/') && existsSync(source))) fail(`Should not be in the package: ${path}`);
  }
  const tarball = join(folder, filename);
  run('node_modules/publint/src/cli.js', 'run', tarball, '--strict');
  run('node_modules/@arethetypeswrong/cli/dist/index.js', tarball, '--profile', 'esm-only', '--no-color');
  if (!failed) console.log(`${inside.length} files, ${Math.round(size / 1024)} KiB packed`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
