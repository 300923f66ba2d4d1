// The root of the project, also from a file that was bundled into another folder.
import { existsSync, mkdirSync } from 'node:fs';

const rootOf = (url) => (existsSync(new URL('package.json', url)) ? url : rootOf(new URL('../', url)));

/** The folder of package.json, a `file:` URL. */
export const root = rootOf(new URL('./', import.meta.url));

/** Gives a folder below the root, which is made when it is not there. */
export const folderOf = (path) => {
  const folder = new URL(path, root);
  mkdirSync(folder, { recursive: true });
  return folder;
};
