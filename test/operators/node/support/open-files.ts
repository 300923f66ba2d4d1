import { readdirSync, readlinkSync } from 'node:fs';

/** Returns the open files of this process on Linux; an empty list on other systems. */
export const openFiles = (): readonly string[] => readdirOf('/proc/self/fd').map(targetOf);

const readdirOf = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder).map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
};

// The descriptor that lists the folder is closed by now.
const targetOf = (link: string): string => {
  try {
    return readlinkSync(link);
  } catch {
    return '';
  }
};
