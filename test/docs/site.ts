import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './fences.js';

/** Returns a page with its generated parts. */
type Generate = (page: string, ...from: readonly unknown[]) => string;

/** The functions of `scripts/site` that tests call. */
interface SiteLibrary {
  readonly diagrams: Readonly<Record<string, unknown>>;
  readonly runNamed: (name: string) => Promise<object>;
  readonly altTextOf: (run: object) => string;
  readonly diagramSvg: (run: object) => string;
  readonly failurePages: () => readonly { readonly name: string; readonly codes: readonly string[] }[];
  readonly failureAddresses: () => Readonly<Record<string, string>>;
  readonly failurePage: Generate;
  readonly failureIndex: Generate;
  readonly commandLinePage: Generate;
  readonly limitSources: Readonly<Record<string, string>>;
  readonly limitsPage: Generate;
}

/** Imports JavaScript modules as one object, by paths relative to `scripts/site`. */
export const siteLibrary = async (...files: readonly string[]): Promise<SiteLibrary> => {
  const library = {};
  // Loads one after the other, because jest's module loader loses a module that two imports load at once.
  for (const file of files) Object.assign(library, await import(pathToFileURL(join(root, 'scripts/site', file)).href));
  return library as SiteLibrary;
};
