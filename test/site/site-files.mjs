import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';

/** The folder of the built site. */
export const site = resolve(import.meta.dirname, '../../site');

/** Returns the paths of all files of the site with this extension. */
export const filesOf = (ending) =>
  readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending));

export const textOf = (file) => readFileSync(join(site, file), 'utf8');

/** Returns the file behind an address of the site; `undefined` if there's none. */
export const fileOf = (path) => {
  const file = join(site, decodeURIComponent(path));
  const found = [file, join(file, 'index.html'), `${file}.html`].find(
    (each) => existsSync(each) && statSync(each).isFile(),
  );
  return found?.slice(site.length + 1);
};

const types = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.webp': 'image/webp',
  '.woff2': 'font/woff2',
};

/** Answers a request with a file of the site. */
export const answerFile = ({ url }, response) => {
  const file = fileOf(new URL(url, 'http://site').pathname);
  if (file === undefined) return response.writeHead(404).end();
  response.writeHead(200, { 'content-type': types[extname(file)] ?? 'text/plain; charset=utf-8' });
  return response.end(readFileSync(join(site, file)));
};
