import { afterAll, beforeAll } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder for the files of a test file. */
export interface TempFolder {
  /** Returns the path of a file in the folder. */
  path(name: string): string;
  /** Writes a file and returns its path. */
  file(name: string, text: string): Promise<string>;
}

/** Creates a folder before the tests of a file, and removes it after them. */
export const tempFolder = (): TempFolder => {
  let folder = '';
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cli-test-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const path = (name: string): string => join(folder, name);
  return {
    path,
    file: async (name, text) => {
      await writeFile(path(name), text);
      return path(name);
    },
  };
};
