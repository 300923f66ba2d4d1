// Checks the package as npm would publish it: the files in the tarball and their size, publint, and are-the-types-wrong. Reads dist.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';

/** Limits of the tarball. */
const maxBytes = 376_000;
const maxFiles = 175;

const { name, exports, bin } = JSON.parse(readFileSync('package.json', 'utf8'));
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

/** Returns the relative links and images of a document, outside its code. */
const relativeLinks = (text) =>
  [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link)
    .filter((link) => !/^([a-z]+:|#)/i.test(link));

try {
  // Without `--ignore-scripts` npm would build again.
  const packed = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [{ filename, files, size }] = JSON.parse(packed);
  const inside = files.map(({ path }) => path);

  for (const path of ['README.md', 'LICENSE', ...pathsIn(exports), ...pathsIn(bin)]) {
    if (!inside.includes(path.replace(/^\.\//, ''))) fail(`Missing in the package: ${path}`);
  }
  for (const path of inside) {
    const isDocument = /^(README\.md|LICENSE|docs\/([a-z-]+\/)?[a-z-]+\.(md|svg))$/.test(path);
    const isBuilt = /^dist\/[\w/-]+(\.d\.ts|\.js|\.cjs|-license\.txt)$/.test(path);
    const isCommand = path === 'bin/rx-trade-feed.js';
    if (!isDocument && !isBuilt && !isCommand && path !== 'package.json') fail(`Should not be in the package: ${path}`);
  }
  for (const path of inside.filter((path) => path.endsWith('.md'))) {
    for (const link of relativeLinks(readFileSync(path, 'utf8'))) {
      const target = posix.join(posix.dirname(path), link.replace(/#.*$/, ''));
      if (!inside.includes(target))
        fail(`${path} links to ${link}, which is not in the package. Name the file in code instead.`);
    }
  }
  if (size > maxBytes) fail(`The package has ${size} bytes, ${maxBytes} are allowed.`);
  if (inside.length > maxFiles) fail(`The package has ${inside.length} files, ${maxFiles} are allowed.`);
  const tarball = join(folder, filename);
  run('node_modules/publint/src/cli.js', 'run', tarball, '--strict');
  const types = run('node_modules/@arethetypeswrong/cli/dist/index.js', tarball, '--profile', 'esm-only', '--no-color');
  for (const entry of Object.keys(exports).map((path) => path.replace(/^\./, name))) {
    if (!types.includes(`"${entry}"`)) fail(`are-the-types-wrong did not check ${entry}`);
  }
  if (!failed) console.log(`${inside.length} files, ${Math.round(size / 1000)} kB packed`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
