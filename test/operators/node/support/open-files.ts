import { readdirSync, readlinkSync } from 'node:fs';

/** The files that this process has open, as Linux tells it; elsewhere none. */
export const openFiles = (): readonly string[] => readdirOf('/proc/self/fd').map(targetOf);

const readdirOf = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder).map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
};

// The one that lists the folder is closed by now.
const targetOf = (link: string): string => {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
};
