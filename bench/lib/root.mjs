// The root folder of the project. It is found from a bundled file in another folder as well.
import { existsSync, mkdirSync } from 'node:fs';

const rootOf = (url) => (existsSync(new URL('package.json', url)) ? url : rootOf(new URL('../', url)));

/** The folder of package.json, a `file:` URL. */
export const root = rootOf(new URL('./', import.meta.url));

/** Returns a folder below the root. Creates it if it doesn't exist. */
export const folderOf = (path) => {
  const folder = new URL(path, root);
  mkdirSync(folder, { recursive: true });
  return folder;
};
