// Imports modules and prints the packages that this loads. CommonJS packages, and those they require, end up in the
// cache of `require`; the imports of the built files name the others.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const packageIn = (path) => /^(?:@[^/]+\/)?[^/]+/.exec(path)[0];
const visited = new Set();
const importedBy = (url) => {
  if (visited.has(url)) return [];
  visited.add(url);
  const imports = [...readFileSync(new URL(url), 'utf8').matchAll(/\b(?:from|import) ?"([.@a-z][^"]*)"/g)].map(
    ([, to]) => to,
  );
  return imports.flatMap((to) => (to.startsWith('.') ? importedBy(new URL(to, url).href) : packageIn(to)));
};

const names = process.argv.slice(2);
for (const name of names) await import(name);
const required = Object.keys(createRequire(import.meta.url).cache).flatMap((path) => {
  const [, inPackage] = /.*node_modules\/(.+)/.exec(path) ?? [];
  return inPackage ? packageIn(inPackage) : [];
});
const imported = names.flatMap((name) => importedBy(import.meta.resolve(name)));
const packages = [...required, ...imported].filter((name) => !name.startsWith('node:'));
console.log(JSON.stringify([...new Set(packages)].sort()));
