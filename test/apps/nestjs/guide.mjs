// Reads the files and commands of the guide for NestJS.
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const guide = readFileSync(new URL('../../../docs/nestjs.md', import.meta.url), 'utf8');
const fences = [...guide.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
  language,
  code,
}));

/** Writes the files of the guide. A code fence whose first line is a path is a file. */
export const writeFiles = async (folder, { change = (code) => code, without = [] } = {}) => {
  for (const { code } of fences) {
    const [, path] = /^\/\/ (\S+\.(?:ts|js))\n/.exec(code) ?? [];
    if (path === undefined || without.includes(path)) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), change(code));
  }
};

/** Returns the packages to install for a version of NestJS, with the tarball instead of this package. */
export const packagesToInstall = (version, tarball) => {
  const [, names] = fences
    .filter(({ language }) => language === 'bash')
    .flatMap(({ code }) => code.split('\n'))
    .map((line) => /^npm install (.+?) # (NestJS \d+)$/.exec(line) ?? [])
    .find(([, , label]) => label === `NestJS ${version}`);
  return names.split(' ').map((name) => (name === 'rx-trade-feed' ? tarball : name));
};
